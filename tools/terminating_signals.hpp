// The signals that ask a program to end.

#pragma once

#include <array>
#include <csignal>

namespace cli {

inline constexpr std::array terminating_signals{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

} // namespace cli
