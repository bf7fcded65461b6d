// The version of the library, and the name of its binary interface.

#pragma once

#include <boost/asio/version.hpp>

#define REDLOCK_VERSION_MAJOR 0        ///< of these headers; moves when the API breaks
#define REDLOCK_VERSION_MINOR 1        ///< before 1.0 it moves then, too
#define REDLOCK_VERSION_PATCH 0        ///< moves with corrections
#define REDLOCK_VERSION_STRING "0.1.0" ///< the three, with points between them

// Handlers and executors of Asio cross the border between a program and the compiled library, so
// both must have been built with one Asio. The inline namespace carries its version: a mismatch is
// a link error that names both, in place of a crash.
#define REDLOCK_DETAIL_ABI_(asio) v0_asio_##asio
#define REDLOCK_DETAIL_ABI(asio) REDLOCK_DETAIL_ABI_(asio)
/// The name of the inline namespace.
#define REDLOCK_ABI REDLOCK_DETAIL_ABI(BOOST_ASIO_VERSION)

namespace redlock { inline namespace REDLOCK_ABI {

/// The version of the compiled library, for comparison with `REDLOCK_VERSION_STRING`, which is that
/// of the headers. Thread-safe; does not throw.
const char* version() noexcept;

}} // namespace redlock::REDLOCK_ABI
