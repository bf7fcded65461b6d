// The controlling terminal. It is opened for each call: a job may get one, and lose it, at any
// time, and an open one would keep the session of a terminal from its end.

#pragma once

#include <sys/types.h>
#include <termios.h>

#include <optional>

namespace cli {

/// The process group in the foreground, or -1 without a terminal.
pid_t foreground_group() noexcept;

/// Returns whether the group has it then. The caller has blocked SIGTTOU.
bool give_terminal(pid_t to) noexcept;

/// The settings of the terminal: echo, lines and so on. None without a terminal.
std::optional<termios> terminal_settings() noexcept;
/// The caller has blocked SIGTTOU, or is in the foreground.
void set_terminal(const termios& to) noexcept;

/// Whether a process that uses the terminal from the background gets an error, and is not stopped:
/// so a shell starts a command whose output it substitutes.
bool fails_in_background() noexcept;

/// Whether standard input, output and error are all a terminal.
bool is_interactive() noexcept;

} // namespace cli
