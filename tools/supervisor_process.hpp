// The supervisor's own side. It uses only system calls that do not wait.

#pragma once

#include "supervisor.hpp"

#include <signal.h>
#include <sys/types.h>
#include <termios.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cli {

/// A message of the tool to the supervisor. After a `start` come the variables, each with a final
/// zero.
struct supervisor_order {
    enum class kind : int { start, deadline, stop, forward, resume, seek_terminal, share_terminal };
    kind what = kind::start;
    int value = 0;
    std::int64_t time_ns = 0; ///< of `redlock::clock`
};

class supervisor_process {
public:
    /// To be created with all signals blocked. The command gets `mask_of_command`.
    supervisor_process(int channel, supervisor_rules rules, const sigset_t& mask_of_command);
    [[noreturn]] void run();

private:
    enum class phase { idle, running, ending, killing };

    /// Reads one order and carries it out; false if there is none. A deadline is only noted: the
    /// next order may have a later one.
    bool hear();
    void resume() const;
    void make_group();
    void drop_group();
    void signal_command(int number) const;
    void start(redlock::time_point deadline, std::string variables);
    [[noreturn]] void become_command(pid_t supervisor, int failures, std::string variables);
    void set_deadline(redlock::time_point deadline);
    void end_by(redlock::time_point kill_at);
    void kill_now();
    void ask_to_end();
    void reap();
    void leader_ended(int status);
    void leader_stopped(int number);
    bool seek_terminal();
    void look_at_clock();
    void arm(redlock::time_point at) const;
    void report(supervisor_report::kind what, int value) const noexcept;
    [[noreturn]] void leave(int left);
    bool hand_terminal_to(pid_t group) const;
    bool give_terminal_to_leader();
    void take_terminal_back(bool restore);
    bool may_have_terminal() const;

    int channel_;
    supervisor_rules rules_;
    int signals_ = -1;
    int timer_ = -1;
    sigset_t mask_of_command_;
    pid_t tool_group_;
    phase phase_ = phase::idle;
    pid_t group_ = -1; // of the command, until that has ended
    bool group_leader_lives_ = false;
    int group_error_ = 0;
    pid_t leader_ = -1; // the command
    bool leader_lives_ = false;
    bool stop_asked_ = false;                // by the tool, not by the terminal
    bool had_terminal_ = false;              // when it was stopped
    bool needs_terminal_ = false;            // it was stopped for that
    std::optional<termios> terminal_before_; // as it was when the command first got it
    redlock::time_point term_at_ = redlock::time_point::max();
    redlock::time_point kill_at_ = redlock::time_point::max();
    redlock::time_point give_up_at_ = redlock::time_point::max();
    std::vector<pid_t> asked_;
};

} // namespace cli
