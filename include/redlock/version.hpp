// The version of the library and the name of its ABI.

#pragma once

#include <boost/asio/version.hpp>

/// Major version of these headers; changes when the API breaks.
#define REDLOCK_VERSION_MAJOR 0
/// Minor version; before 1.0 it also changes when the API breaks.
#define REDLOCK_VERSION_MINOR 9
#define REDLOCK_VERSION_PATCH 0        ///< patch version; changes with bug fixes
#define REDLOCK_VERSION_STRING "0.9.0" ///< the three numbers, separated by dots

// Asio handlers and executors cross the boundary between a program and the compiled library, so
// both must be built with the same version of Asio. The inline namespace contains that version: a
// mismatch is a link error that names both, instead of a crash.
#define REDLOCK_DETAIL_ABI_(asio) v0_asio_##asio
#define REDLOCK_DETAIL_ABI(asio) REDLOCK_DETAIL_ABI_(asio)
/// The name of the inline namespace.
#define REDLOCK_ABI REDLOCK_DETAIL_ABI(BOOST_ASIO_VERSION)

namespace redlock { inline namespace REDLOCK_ABI {

/// Returns the version of the compiled library. Compare it with `REDLOCK_VERSION_STRING`, the
/// version of the headers. Thread-safe. Never throws.
const char* version() noexcept;

}} // namespace redlock::REDLOCK_ABI
