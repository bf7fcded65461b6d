#include "supervisor_process.hpp"

#include "process_tree.hpp"
#include "terminal.hpp"
#include "terminating_signals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace cli {

supervisor_process::supervisor_process(
    int channel, supervisor_rules rules, const sigset_t& mask_of_command)
    : channel_(channel),
      rules_(std::move(rules)),
      mask_of_command_(mask_of_command),
      tool_group_(::getpgrp()) {
    // A signal that kills the tool's whole group must not reach the supervisor.
    ::setpgid(0, 0);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    // If the tool dies, this process must act, even if it is stopped.
    ::prctl(PR_SET_PDEATHSIG, SIGCONT);
    ::prctl(PR_SET_NAME, supervisor_name);
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    signals_ = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    make_group();
}

// A process that leads its group cannot begin a session: setsid(1) would start the command in the
// background and end. So the group has another leader. Signals do nothing to it but stay pending.
void supervisor_process::make_group() {
    const pid_t self = ::getpid();
    group_ = ::fork();
    group_error_ = errno;
    if (group_ == 0) {
        ::prctl(PR_SET_NAME, group_leader_name);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::close(channel_);
        while (::getppid() == self) {
            ::pause();
        }
        ::_exit(0);
    }
    group_leader_lives_ = group_ > 0;
    ::setpgid(group_, group_);
}

void supervisor_process::drop_group() {
    if (group_leader_lives_) {
        ::kill(group_, SIGKILL);
        ::waitpid(group_, nullptr, 0);
    }
    group_leader_lives_ = false;
    group_ = -1;
}

void supervisor_process::signal_command(int number) const {
    const pid_t own = ::getpgid(leader_);
    if (group_leader_lives_ || own == group_) { // otherwise others may have its number
        ::kill(-group_, number);
    }
    if (own != group_) { // it has made a group or a session of its own
        ::kill(own == leader_ ? -leader_ : leader_, number);
    }
}

void supervisor_process::run() {
    std::array<pollfd, 3> waits{
        pollfd{channel_, POLLIN, 0}, pollfd{signals_, POLLIN, 0}, pollfd{timer_, POLLIN, 0}};
    while (true) {
        if (::poll(waits.data(), waits.size(), -1) < 0) {
            continue;
        }
        // The orders first: the lease may have been renewed while this process was stopped.
        if (waits[0].fd >= 0 && waits[0].revents != 0) {
            while (hear()) {
            }
            waits[0].fd = channel_;
            look_at_clock();
        }
        if (waits[2].revents != 0) {
            std::uint64_t expirations = 0;
            [[maybe_unused]] const auto size = ::read(timer_, &expirations, sizeof expirations);
            look_at_clock();
        }
        if (waits[1].revents != 0) {
            signalfd_siginfo signal{};
            while (::read(signals_, &signal, sizeof signal) > 0) {
            }
            reap();
        }
    }
}

bool supervisor_process::hear() {
    std::array<char, 8192> packet{};
    const ssize_t size = ::recv(channel_, packet.data(), packet.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    supervisor_order order;
    if (size < static_cast<ssize_t>(sizeof order)) {
        // The tool is dead or has closed the connection.
        if (phase_ == phase::idle) {
            leave(0);
        }
        channel_ = -1 - channel_; // poll ignores it; reports are still tried
        end_by(redlock::clock::now() + rules_.grace);
        return false;
    }
    std::memcpy(&order, packet.data(), sizeof order);
    const redlock::time_point time{redlock::clock::duration(order.time_ns)};
    switch (order.what) {
    case supervisor_order::kind::start:
        rules_.grace = std::chrono::milliseconds(order.value);
        start(time, std::string(packet.data() + sizeof order, packet.data() + size));
        break;
    case supervisor_order::kind::deadline:
        set_deadline(time);
        break;
    case supervisor_order::kind::stop:
        end_by(time);
        break;
    case supervisor_order::kind::forward:
        if (leader_lives_) {
            signal_command(order.value);
            stop_asked_ = order.value == SIGTSTP;
            if (std::ranges::count(terminating_signals, order.value) > 0) {
                resume(); // a stopped process does not receive it
            }
        }
        break;
    case supervisor_order::kind::resume:
        if (leader_lives_) {
            if (had_terminal_ || may_have_terminal()) {
                give_terminal_to_leader();
            }
            resume();
        }
        break;
    case supervisor_order::kind::seek_terminal:
        seek_terminal();
        break;
    case supervisor_order::kind::share_terminal:
        if (hand_terminal_to(tool_group_)) {
            ::kill(-tool_group_, SIGCONT); // they try again
        } else if (leader_lives_) {
            signal_command(SIGTSTP); // a job in the background stops as a whole
            stop_asked_ = true;
        }
        break;
    }
    return true;
}

void supervisor_process::start(redlock::time_point deadline, std::string variables) {
    if (redlock::clock::now() >= deadline - rules_.kill_margin) {
        report(
            supervisor_report::kind::due, 0); // one of us stood still: there is no time to run it
        leave(0);
    }
    std::array<int, 2> failures{};
    if (group_ < 0 || ::pipe2(failures.data(), O_CLOEXEC) != 0) {
        report(supervisor_report::kind::failed, group_ < 0 ? group_error_ : errno);
        leave(0);
    }
    const pid_t self = ::getpid();
    terminal_before_ = may_have_terminal() ? terminal_settings() : std::nullopt;
    leader_ = ::fork();
    if (leader_ == 0) {
        become_command(self, failures[1], std::move(variables));
    }
    const int fork_error = errno;
    ::close(failures[1]);
    int error = leader_ < 0 ? fork_error : 0;
    if (leader_ > 0) {
        // Empty if the program was executed, which closes the pipe.
        while (::read(failures[0], &error, sizeof error) < 0 && errno == EINTR) {
        }
    }
    ::close(failures[0]);
    if (error != 0) {
        report(supervisor_report::kind::failed, error);
        leave(0);
    }
    leader_lives_ = true;
    phase_ = phase::running;
    report(supervisor_report::kind::started, leader_);
    set_deadline(deadline); // the clock is looked at after the orders that have arrived by then
    reap();
}

void supervisor_process::become_command(pid_t supervisor, int failures, std::string variables) {
    ::setpgid(0, group_);
    if (may_have_terminal()) {
        hand_terminal_to(group_);
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The supervisor may have died before the line above.
    if (::getppid() != supervisor) {
        ::_exit(1);
    }
    // A tool above this one may have set variables that this one does not set.
    for (const char* const name :
         {"REDLOCK_RESOURCE",
          "REDLOCK_TOKEN",
          "REDLOCK_DEADLINE",
          "REDLOCK_FENCING_TOKEN",
          "REDLOCK_SLOT"}) {
        ::unsetenv(name);
    }
    for (char* one = variables.data(); one < variables.data() + variables.size();
         one += std::strlen(one) + 1) {
        ::putenv(one);
    }
    std::vector<char*> words;
    for (std::string& word : rules_.command) {
        words.push_back(word.data());
    }
    words.push_back(nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_of_command_, nullptr);
    ::execvp(words.front(), words.data());
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(failures, &error, sizeof error);
    ::_exit(1);
}

void supervisor_process::set_deadline(redlock::time_point deadline) {
    if (phase_ != phase::running) {
        return; // the time of a command that is being stopped is not extended
    }
    term_at_ = deadline - rules_.grace;
    kill_at_ = deadline - rules_.kill_margin;
}

void supervisor_process::end_by(redlock::time_point kill_at) {
    kill_at_ = std::min(kill_at_, kill_at);
    ask_to_end();
    look_at_clock();
}

void supervisor_process::look_at_clock() {
    const auto now = redlock::clock::now();
    if (phase_ == phase::running && now >= std::min(term_at_, kill_at_)) {
        report(supervisor_report::kind::due, 0);
        ask_to_end();
    }
    if (phase_ == phase::killing
        || ((phase_ == phase::running || phase_ == phase::ending) && now >= kill_at_)) {
        kill_now();
        reap();
        if (now >= give_up_at_) {
            leave(std::max(1, static_cast<int>(children().size())));
        }
        arm(now + look_again);
    } else {
        arm(phase_ == phase::running ? std::min(term_at_, kill_at_) : kill_at_);
    }
}

void supervisor_process::ask_to_end() {
    if (phase_ != phase::running && phase_ != phase::ending) {
        return;
    }
    phase_ = phase::ending;
    if (leader_lives_) {
        signal_command(SIGTERM);
        signal_command(SIGCONT); // a stopped process does not receive it
        asked_.push_back(leader_);
    }
    for (const pid_t one : children()) {
        if (one != group_ && std::find(asked_.begin(), asked_.end(), one) == asked_.end()) {
            // A child that its parent has just left to us, in any group.
            ::kill(one, SIGTERM);
            ::kill(one, SIGCONT);
            asked_.push_back(one);
        }
    }
}

void supervisor_process::kill_now() {
    if (phase_ != phase::killing) {
        phase_ = phase::killing;
        give_up_at_ = redlock::clock::now() + dying_max;
    }
    const descendants all; // found before their parents die
    if (leader_lives_) {
        signal_command(SIGKILL);
    }
    all.kill();
}

void supervisor_process::reap() {
    while (true) {
        int status = 0;
        siginfo_t ended{};
        // Checks the command before it is reaped: until then no other process can have its group.
        if (leader_lives_
            && ::waitid(P_PID, static_cast<id_t>(leader_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0
            && ended.si_pid == leader_) {
            if (phase_ == phase::running && !rules_.leave_daemons) {
                phase_ = phase::ending;
                kill_at_ = std::min(kill_at_, redlock::clock::now() + rules_.grace);
                signal_command(SIGTERM);
                signal_command(SIGCONT);
            }
            ::waitpid(leader_, &status, 0);
            leader_ended(status);
            continue;
        }
        // Checks the command once more: it may have ended between the check above and this line.
        siginfo_t next{};
        if (::waitid(P_ALL, 0, &next, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0) {
            if (errno == ECHILD && phase_ != phase::idle) {
                leave(0);
            }
            break;
        }
        const pid_t one = next.si_pid;
        if (one == 0) {
            break;
        }
        if (leader_lives_ && one == leader_) {
            siginfo_t stop{};
            if (::waitid(P_PID, static_cast<id_t>(one), &stop, WSTOPPED | WNOHANG) == 0
                && stop.si_pid == one) {
                leader_stopped(stop.si_status);
            }
            continue; // its end is handled above
        }
        if (::waitpid(one, &status, WNOHANG | WUNTRACED) == group_ && !WIFSTOPPED(status)) {
            group_leader_lives_ = false; // somebody has killed it, perhaps with the whole group
        }
        asked_.erase(std::remove(asked_.begin(), asked_.end(), one), asked_.end());
    }
    if (phase_ == phase::ending && !leader_lives_) {
        ask_to_end(); // includes children whose parents have died
    }
    if (phase_ == phase::killing) {
        send_to_children(SIGKILL);
    }
    if (phase_ == phase::ending) {
        arm(kill_at_);
    }
}

void supervisor_process::leader_ended(int status) {
    leader_lives_ = false;
    const auto by_us = std::remove(asked_.begin(), asked_.end(), leader_);
    const bool ended_itself = by_us == asked_.end() && !WIFSIGNALED(status);
    asked_.erase(by_us, asked_.end());
    // The terminal has sent it to the command's group alone, whatever the command did about it.
    for (const int number : {SIGINT, SIGQUIT}) {
        if (group_leader_lives_ && foreground_group() == group_ && is_pending(group_, number)) {
            report(supervisor_report::kind::interrupted, number);
        }
    }
    take_terminal_back(!ended_itself);
    drop_group();
    report(supervisor_report::kind::ended, status);
    if (phase_ == phase::running) { // other processes may stay
        leave(0);
    }
}

void supervisor_process::arm(redlock::time_point at) const {
    itimerspec when{};
    if (at != redlock::time_point::max()) {
        const auto since = std::max<std::int64_t>(1, at.time_since_epoch().count());
        when.it_value.tv_sec = since / 1'000'000'000;
        when.it_value.tv_nsec = since % 1'000'000'000;
    }
    ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
}

void supervisor_process::report(supervisor_report::kind what, int value) const noexcept {
    const supervisor_report it{what, value};
    // Does not wait: a stopped tool must not block the supervisor.
    ::send(channel_ < 0 ? -1 - channel_ : channel_, &it, sizeof it, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void supervisor_process::leave(int left) {
    hand_terminal_to(tool_group_);
    drop_group();
    report(supervisor_report::kind::gone, left);
    ::_exit(0);
}

} // namespace cli
