// The type of a stream socket that child processes do not inherit, where the system has one.
#pragma once

#include <redlock/version.hpp>

#include <sys/socket.h>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace process {

#if defined(__linux__) && !defined(REDLOCK_PORTABLE)
inline constexpr int stream_socket = SOCK_STREAM | SOCK_CLOEXEC;
#else
inline constexpr int stream_socket = SOCK_STREAM;
#endif

}}}} // namespace redlock::REDLOCK_ABI::testing::process
