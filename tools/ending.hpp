// The end of the tool by a signal, so that its parent sees what has ended it. A shell then ends the
// script or the loop around the tool, and systemd reports no failure.

#pragma once

namespace cli {

/// A status of the tool that is not an exit status: the number of a signal is added to it.
inline constexpr int by_signal = 0x100;
/// Times the number of a signal, it is added as well if the terminal has sent that to the command
/// alone: the rest of the tool's process group gets it too.
inline constexpr int of_group = 0x200;

/// Ends the tool if `status` contains `by_signal`. Otherwise returns the exit status.
int ending(int status);

} // namespace cli
