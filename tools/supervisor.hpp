// The supervisor is a process between the tool and the command with one task: it stops the command
// in time. It is forked before anything else happens, shares no memory with the tool, and has a
// timer of its own for the deadline. So the command ends in time even if the tool is stopped, hangs
// or is killed. It adopts the processes that the command leaves, so none of them escapes.
//
// - The tool dies: the connection between the two ends, and the supervisor stops the command. If
//   the supervisor was stopped before, it goes on.
// - The supervisor dies: the parent-death signal kills the command. The tool adopts the other
//   processes and kills them.
// - The supervisor is stopped: when the command has to end, the tool continues it. If it is stopped
//   again or hangs, the tool kills it before the deadline, and so the command.
// - Not covered: neither can run until the deadline (docs/cli.md). If both are killed, the command
//   dies, but processes it started live on.

#pragma once

#include <redlock/clock.hpp>

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace cli {

struct supervisor_order;

/// A report of the supervisor.
struct supervisor_report {
    enum class kind : int {
        started,     ///< `value` is the command's process id
        failed,      ///< the command could not be executed; `value` is errno
        due,         ///< the deadline came near, and TERM was sent to the command
        interrupted, ///< the terminal has sent signal `value`, INT or QUIT, to the command alone
        ended,       ///< the command itself has ended; `value` is its wait status
        stopped,     ///< the command was stopped by signal `value`, and with it the shell's job
        followed,    ///< the command was stopped by TSTP, as the tool has been or is to be, alone
        halted,      ///< the command alone was stopped by signal `value`
        gone,        ///< no process is left; the supervisor ends. `value`: how many did not die
        died,        ///< added by this side: the supervisor was killed. `value`: as with `gone`
    };
    kind what = kind::died;
    int value = 0;
};

/// Settings that cannot change after the supervisor was started.
struct supervisor_rules {
    std::vector<std::string> command;
    /// TERM is sent this long before the deadline.
    std::chrono::nanoseconds grace{};
    /// KILL is sent this long before the deadline, so that it has happened by then.
    std::chrono::nanoseconds kill_margin{};
    /// Processes that the command leaves when it ends by itself may live on.
    bool leave_daemons = false;
};

/// The tool's side. Not thread-safe; must be created before there is a second thread.
class supervisor {
public:
    /// Forks. Throws `failure`.
    explicit supervisor(supervisor_rules rules);
    /// Kills the command if it runs, and waits for its end.
    ~supervisor();
    supervisor(const supervisor&) = delete;
    supervisor& operator=(const supervisor&) = delete;

    /// Starts the command with these variables ("NAME=value") in addition to the tool's own.
    void start(
        redlock::time_point deadline,
        std::chrono::milliseconds grace,
        const std::vector<std::string>& variables);
    void set_deadline(redlock::time_point deadline);
    /// TERM now, and KILL at `kill_at` at the latest. A supervisor that was stopped goes on.
    void stop(redlock::time_point kill_at);
    /// Sends a signal to the command's process group.
    void forward(int number);
    /// Continues the stopped command, with the terminal if the tool's job has it.
    void resume();
    /// Continues a command that was stopped because it needs the terminal, once the job has it.
    void seek_terminal();
    /// Another process of the tool's group needs the terminal.
    void share_terminal();

    /// Time after which the supervisor is stopped or hangs, if it has not reported the end of the
    /// command.
    redlock::time_point overdue_at() const noexcept;
    /// Kills what the command has started, the command, and the supervisor last.
    void kill() const;

    /// Becomes readable when there is a report.
    int descriptor() const noexcept { return channel_; }
    /// Waits for a report.
    supervisor_report read();

private:
    void send(const void* data, std::size_t size) noexcept;
    void send(supervisor_order order) noexcept;
    void wake() const noexcept;

    bool wait_for_report(redlock::time_point until) const noexcept;

    std::chrono::nanoseconds grace_;
    std::chrono::nanoseconds kill_margin_;
    redlock::time_point kill_at_ = redlock::time_point::max(); // as sent to the supervisor
    bool ending_ = false;
    int channel_ = -1;
    pid_t pid_ = -1;
    bool ended_ = false;
};

/// Whether a command with this name can be found, as execvp does: 0, or its errno.
int look_for(const std::string& command);

} // namespace cli
