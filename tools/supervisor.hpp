// Between the tool and the command stands a process that does one thing: it ends the command in
// time. It is forked before anything else happens, shares no memory with the tool, and has the
// deadline on a timer of its own. So the command ends in time also while the tool is stopped, hangs
// or is killed. It adopts what the command leaves behind, so nothing the command started gets away.
//
// - The tool dies: the connection between the two ends, and the supervisor ends the command.
// - The supervisor dies: the command is killed by its parent-death signal, and the tool, which
// adopts
//   the rest, kills that.
// - The supervisor is stopped, or hangs: the tool kills it before the deadline, and so the command.
// - Both are killed in one moment: the command dies, and what it had started may live on.

#pragma once

#include <redlock/clock.hpp>

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace cli {

/// What the supervisor tells.
struct supervisor_report {
    enum class kind : int {
        started, ///< `value` is the command's process id
        failed,  ///< it could not be executed; `value` is errno
        due,     ///< the deadline came near, and the command was told to end
        ended,   ///< the command itself has ended; `value` is its wait status
        stopped, ///< it was stopped from the terminal
        gone,    ///< nothing of it is left; the supervisor ends. `value`: how many would not die
        died,    ///< made up by this side: the supervisor was killed. `value`: as with `gone`
    };
    kind what = kind::died;
    int value = 0;
};

/// What cannot be changed once the supervisor is there.
struct supervisor_rules {
    std::vector<std::string> command;
    /// TERM comes this long before the deadline.
    std::chrono::nanoseconds grace{};
    /// KILL comes this long before the deadline, so that it has happened by then.
    std::chrono::nanoseconds kill_margin{};
    /// What the command leaves behind when it ends by itself is left alone.
    bool leave_daemons = false;
};

/// The tool's end. Not thread-safe; must be made before there is a second thread.
class supervisor {
public:
    /// Forks. Throws `failure`.
    explicit supervisor(supervisor_rules rules);
    /// Has the command killed if it runs, and waits until it is.
    ~supervisor();
    supervisor(const supervisor&) = delete;
    supervisor& operator=(const supervisor&) = delete;

    /// Starts the command with these variables ("NAME=value") beside the tool's own.
    void start(redlock::time_point deadline, const std::vector<std::string>& variables);
    void set_deadline(redlock::time_point deadline);
    /// TERM now, and KILL at `kill_at` at the latest.
    void stop(redlock::time_point kill_at);
    /// Sends a signal to the command's process group.
    void forward(int number);
    /// Gives the terminal back to the command, which was stopped, and has it go on.
    void resume();

    /// When the command should be gone, and the supervisor has not said so: it is stopped, or
    /// hangs.
    redlock::time_point overdue_at() const noexcept;
    /// Kills the supervisor, and so the command; what that started is killed by `read`.
    void kill() const noexcept;

    /// Becomes readable when there is a report.
    int descriptor() const noexcept { return channel_; }
    /// Waits for one.
    supervisor_report read();

private:
    void send(const void* data, std::size_t size) noexcept;

    bool wait_for_report(redlock::time_point until) const noexcept;

    std::chrono::nanoseconds grace_;
    std::chrono::nanoseconds kill_margin_;
    redlock::time_point kill_at_ = redlock::time_point::max(); // as the supervisor was told
    bool ending_ = false;
    int channel_ = -1;
    pid_t pid_ = -1;
    bool ended_ = false;
};

/// Whether a command of this name can be found, as execvp would: 0, or the errno that it would
/// give.
int look_for(const std::string& command);

} // namespace cli
