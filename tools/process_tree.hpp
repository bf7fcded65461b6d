// The processes below this one, in whichever groups and sessions. Orphans among them are its
// children: it is their reaper (PR_SET_CHILD_SUBREAPER).

#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace cli {

inline constexpr const char* supervisor_name = "redlock-superv"; // 15 characters at most
inline constexpr const char* group_leader_name = "redlock-group";

/// \name Interval and limit of the wait for processes that die
/// \{
inline constexpr std::chrono::milliseconds look_again{1};
inline constexpr std::chrono::seconds dying_max{10};
/// \}

/// Whether /proc is that of this process's PID namespace. Otherwise none of the following finds
/// anything, or its numbers are those of other processes.
bool sees_processes();

/// Children of this process. Those that have ended count until they are reaped, so that none of
/// these numbers can belong to another process.
std::vector<pid_t> children();

void send_to_children(int number);

/// Whether a process group consists of this process, and perhaps of a leader of ours.
bool is_alone(pid_t pid, pid_t group);

/// Whether a process blocks a signal that has been sent to it.
bool is_pending(pid_t pid, int number);

/// Whether a process is below another one.
bool is_below(pid_t pid, pid_t above);

/// Whether a process runs under a supervisor whose tool has this process group.
bool is_supervised(pid_t pid, pid_t group);

/// Children and what is below them, so that all can be killed at once. A child of a process that
/// dies becomes ours only after that: a deep tree would die level by level. Some that are not
/// children are left out if there are many, or if the system has no process descriptors.
class descendants {
public:
    /// Finds them. No child may be reaped before the last call of `kill`.
    descendants();
    ~descendants();
    descendants(const descendants&) = delete;
    descendants& operator=(const descendants&) = delete;

    void kill() const noexcept; // parents last

private:
    struct process {
        pid_t pid;
        int descriptor; // -1 for a child
    };
    void add_children_of(process parent);

    std::vector<process> all_; // parents first
};

/// Kills all children, and their children as they become ours, and waits for them. Returns how many
/// did not die in some seconds: those of another user, or those that wait for a device.
int kill_all_children();

} // namespace cli
