#include "supervisor.hpp"

#include "exit_code.hpp"
#include "process_tree.hpp"
#include "supervisor_process.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace cli {

supervisor::supervisor(supervisor_rules rules)
    : grace_(rules.grace),
      kill_margin_(rules.kill_margin) {
    if (!sees_processes()) {
        throw failure(
            exit_code::internal,
            "cannot start the supervisor: /proc is not that of this PID namespace, so what the "
            "command starts would not be found; mount -t proc proc /proc");
    }
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw failure(
            exit_code::internal,
            fmt::format("cannot start the supervisor: {}", std::strerror(errno)));
    }
    // Processes that a killed supervisor leaves become children of this process.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    // Until the supervisor has a process group of its own, a signal to the tool's group reaches it
    // as well. It must not die of it.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &before);
    pid_ = ::fork();
    if (pid_ == 0) {
        ::close(ends[0]);
        supervisor_process(ends[1], std::move(rules), before).run();
    }
    const int error = errno;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::close(ends[1]);
    if (pid_ < 0) {
        ::close(ends[0]);
        throw failure(
            exit_code::internal,
            fmt::format("cannot start the supervisor: {}", std::strerror(error)));
    }
    channel_ = ends[0];
}

supervisor::~supervisor() {
    ::shutdown(channel_, SHUT_WR);
    wake();
    const auto now = redlock::clock::now();
    kill_at_ = std::min(kill_at_, now + grace_);
    // Without a command, the only event is the end of one process.
    while (!ended_) {
        if (!wait_for_report(overdue_at())) {
            kill();
        }
        read();
    }
    ::close(channel_);
}

void supervisor::send(const void* data, std::size_t size) noexcept {
    // If the supervisor is gone, the next read shows it. One that is stopped until its buffer is
    // full must not block the tool: the tool stops the command instead.
    while (::send(channel_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR) {
    }
}

void supervisor::send(supervisor_order order) noexcept {
    send(&order, sizeof order);
}

// Half of the margin is for the supervisor, half for the tool.
redlock::time_point supervisor::overdue_at() const noexcept {
    return kill_at_ == redlock::time_point::max() ? kill_at_ : kill_at_ + kill_margin_ / 2;
}

// If it was stopped, it goes on. Otherwise this process would have to kill it, and would be the
// only one left that kills what the command has started.
void supervisor::wake() const noexcept {
    if (!ended_) { // not yet reaped, as below
        ::kill(pid_, SIGCONT);
    }
}

void supervisor::kill() const {
    if (!ended_) {            // not yet reaped: nobody else can have its number
        descendants().kill(); // it last: this process may be killed in between
        ::kill(pid_, SIGKILL);
    }
}

bool supervisor::wait_for_report(redlock::time_point until) const noexcept {
    constexpr std::chrono::milliseconds look_again{100}; // poll does not count a suspended machine
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(
            std::clamp<redlock::clock::duration>(until - redlock::clock::now(), {}, look_again));
        pollfd report{channel_, POLLIN, 0};
        if (::poll(&report, 1, static_cast<int>(left.count())) > 0) {
            return true;
        }
        if (redlock::clock::now() >= until) {
            return false;
        }
    }
}

void supervisor::start(
    redlock::time_point deadline,
    std::chrono::milliseconds grace,
    const std::vector<std::string>& variables) {
    grace_ = grace;
    kill_at_ = deadline - kill_margin_;
    supervisor_order order{
        supervisor_order::kind::start,
        static_cast<std::int32_t>(grace.count()),
        deadline.time_since_epoch().count()};
    std::string packet(reinterpret_cast<const char*>(&order), sizeof order);
    for (const std::string& one : variables) {
        packet += one;
        packet += '\0';
    }
    send(packet.data(), packet.size());
}

void supervisor::set_deadline(redlock::time_point deadline) {
    if (!ending_) {
        kill_at_ = deadline - kill_margin_;
    }
    send({supervisor_order::kind::deadline, 0, deadline.time_since_epoch().count()});
}

void supervisor::stop(redlock::time_point kill_at) {
    ending_ = true;
    kill_at_ = std::min(kill_at_, kill_at);
    send({supervisor_order::kind::stop, 0, kill_at.time_since_epoch().count()});
    wake();
}

void supervisor::forward(int number) {
    send({supervisor_order::kind::forward, number, 0});
}

void supervisor::resume() {
    send({supervisor_order::kind::resume, 0, 0});
}

void supervisor::seek_terminal() {
    send({supervisor_order::kind::seek_terminal, 0, 0});
}

void supervisor::share_terminal() {
    send({supervisor_order::kind::share_terminal, 0, 0});
}

supervisor_report supervisor::read() {
    supervisor_report out;
    ssize_t size = 0;
    do { // NOLINT(cppcoreguidelines-avoid-do-while)
        size = ::recv(channel_, &out, sizeof out, 0);
        // The supervisor may end before it reads our last order: its last reports still arrive.
    } while (size < 0 && (errno == EINTR || errno == ECONNRESET));
    const bool told = size == sizeof out;
    ended_ = !told || out.what == supervisor_report::kind::gone;
    if (ended_) {
        ::kill(pid_, SIGKILL); // it may have been stopped after its last report
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    if (!told) {
        // It was killed; that killed the command, and the other processes are our children now.
        return {supervisor_report::kind::died, kill_all_children()};
    }
    return out;
}

int look_for(const std::string& command) {
    const auto runnable = [](const std::string& path) {
        struct stat found {};
        if (::stat(path.c_str(), &found) != 0) {
            return errno == EACCES ? EACCES : ENOENT;
        }
        return S_ISDIR(found.st_mode)                                        ? EISDIR
               : S_ISREG(found.st_mode) && ::access(path.c_str(), X_OK) == 0 ? 0
                                                                             : EACCES;
    };
    if (command.empty()) {
        return ENOENT;
    }
    if (command.find('/') != std::string::npos) {
        return runnable(command);
    }
    const char* const set = std::getenv("PATH");
    std::string_view path = set == nullptr ? "/bin:/usr/bin" : set;
    int worst = ENOENT;
    while (true) {
        const std::size_t end = path.find(':');
        const std::string directory(path.substr(0, end));
        const int error = runnable((directory.empty() ? "." : directory) + "/" + command);
        if (error == 0) {
            return 0;
        }
        worst = error == EACCES ? EACCES : worst;
        if (end == std::string_view::npos) {
            return worst;
        }
        path.remove_prefix(end + 1);
    }
}

} // namespace cli
