// The supervisor and the terminal: when the command has it, and what a stop of the command means.

#include "process_tree.hpp"
#include "supervisor_process.hpp"
#include "terminal.hpp"

#include <unistd.h>

#include <utility>

namespace cli {

void supervisor_process::resume() const {
    if (redlock::clock::now() < kill_at_) { // the order may come too late
        signal_command(SIGCONT);
    }
}

// Whether the command needs the terminal is known when it uses it. Unless the job is in the
// background, the command then gets it, and otherwise when the job is in the foreground.
void supervisor_process::leader_stopped(int number) {
    needs_terminal_ = number == SIGTTIN || number == SIGTTOU;
    if (needs_terminal_) {
        if (!seek_terminal()) {
            report(supervisor_report::kind::halted, number);
        }
        return;
    }
    had_terminal_ = foreground_group() == group_;
    const bool in_foreground = hand_terminal_to(tool_group_);
    const bool stops = number == SIGTSTP;
    const bool is_job = tool_group_ == ::getppid(); // of a shell; else the script must go on
    const bool follows = std::exchange(stop_asked_, false) && stops && !had_terminal_;
    report(
        follows                              ? supervisor_report::kind::followed
        : in_foreground || (stops && is_job) ? supervisor_report::kind::stopped
                                             : supervisor_report::kind::halted,
        number);
}

bool supervisor_process::seek_terminal() {
    if (!leader_lives_ || !needs_terminal_ || !give_terminal_to_leader()) {
        return false;
    }
    needs_terminal_ = false;
    resume();
    return true;
}

// SIGTTOU would stop a background process that changes the foreground group. It is blocked in the
// supervisor, and for a moment in the command.
//
// The shell has taken the terminal if it continues the tool in the background. A tool above this
// one may have left it with its own group, and the command may have given it to a group of its own.
bool supervisor_process::hand_terminal_to(pid_t group) const {
    const pid_t now = foreground_group();
    if (now <= 0 || now == group) {
        return now == group;
    }
    const bool ours =
        now == tool_group_ || now == group_
        || (group == tool_group_ ? is_below(now, ::getpid()) : is_supervised(::getppid(), now));
    return ours && give_terminal(group);
}

bool supervisor_process::give_terminal_to_leader() {
    const auto now = terminal_settings();
    if (!hand_terminal_to(group_)) {
        return false;
    }
    terminal_before_ = terminal_before_ ? terminal_before_ : now;
    return true;
}

// A command that did not end by itself may have left it without echo.
void supervisor_process::take_terminal_back(bool restore) {
    const bool was_away = foreground_group() != tool_group_;
    if (hand_terminal_to(tool_group_) && was_away && restore && terminal_before_) {
        set_terminal(*terminal_before_);
    }
}

// From the start. A pager, or the script that has started the tool in its background, may use the
// terminal: then the command gets it when it needs it, which only its stop shows.
bool supervisor_process::may_have_terminal() const {
    return foreground_group() == tool_group_
           && (is_interactive() || fails_in_background() || is_alone(::getppid(), tool_group_));
}

} // namespace cli
