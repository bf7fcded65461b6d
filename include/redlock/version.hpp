// The version of the library and the name of its ABI.

#pragma once

#include <boost/asio/version.hpp>

#include <version>

/// Version of these headers, as Boost has it: 100,000 times the major number, which changes when
/// the API breaks, plus 100 times the minor one, plus the patch number. Before 1.0 the minor one
/// also changes when the API breaks.
#define REDLOCK_VERSION 900
#define REDLOCK_VERSION_STRING "0.9.0" ///< the same as text

#if !defined(__cpp_rtti)
#error "redlock needs RTTI, as Boost.Asio's type-erased executors do: compile without -fno-rtti"
#endif
#if defined(__clang__) && __clang_major__ < 15 && __cplusplus > 202002L                            \
    && defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE >= 12
// libstdc++ then compares types by address, Asio makes two reactors, and the program hangs.
#error "redlock does not work with clang 14 and C++23: use C++20, libc++ or a later clang"
#endif

// Asio handlers, executors and standard containers cross the boundary between a program and the
// compiled library. So both must be built with the same version of Asio and with the same macros
// for its reactor and for layouts. The inline namespace contains them: a mismatch is a link error
// that names both, instead of a crash.
#if defined(_GLIBCXX_DEBUG)
#define REDLOCK_DETAIL_CONTAINERS _debug
#else
#define REDLOCK_DETAIL_CONTAINERS
#endif
#if defined(BOOST_ASIO_DISABLE_THREADS)
#define REDLOCK_DETAIL_THREADS _nothreads
#else
#define REDLOCK_DETAIL_THREADS
#endif
#if defined(BOOST_ASIO_ENABLE_HANDLER_TRACKING)
#define REDLOCK_DETAIL_TRACKING _tracking
#else
#define REDLOCK_DETAIL_TRACKING
#endif
#if defined(BOOST_ASIO_DISABLE_EPOLL)
#define REDLOCK_DETAIL_REACTOR _noepoll
#else
#define REDLOCK_DETAIL_REACTOR
#endif
#define REDLOCK_DETAIL_ABI_(asio, a, b, c, d) v0_asio_##asio##a##b##c##d
#define REDLOCK_DETAIL_ABI(asio, a, b, c, d) REDLOCK_DETAIL_ABI_(asio, a, b, c, d)
/// The name of the inline namespace.
#define REDLOCK_ABI                                                                                \
    REDLOCK_DETAIL_ABI(                                                                            \
        BOOST_ASIO_VERSION,                                                                        \
        REDLOCK_DETAIL_CONTAINERS,                                                                 \
        REDLOCK_DETAIL_THREADS,                                                                    \
        REDLOCK_DETAIL_TRACKING,                                                                   \
        REDLOCK_DETAIL_REACTOR)

namespace redlock { inline namespace REDLOCK_ABI {

/// Returns the version of the compiled library. Compare it with `REDLOCK_VERSION_STRING`, the
/// version of the headers. Thread-safe. Never throws.
const char* version() noexcept;

}} // namespace redlock::REDLOCK_ABI
