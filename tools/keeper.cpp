#include "keeper.hpp"

#include "exit_code.hpp"
#include "keeper_process.hpp"

#include <fmt/format.h>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace cli {

keeper::keeper(keeper_rules rules) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw failure(
            exit_code::internal, fmt::format("cannot make a keeper: {}", std::strerror(errno)));
    }
    // What the keeper leaves, should it be killed, comes to this process.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_ = ::fork();
    if (pid_ == 0) {
        ::close(ends[0]);
        keeper_process(ends[1], std::move(rules)).run();
    }
    ::close(ends[1]);
    if (pid_ < 0) {
        const int error = errno;
        ::close(ends[0]);
        throw failure(
            exit_code::internal, fmt::format("cannot make a keeper: {}", std::strerror(error)));
    }
    channel_ = ends[0];
}

keeper::~keeper() {
    ::shutdown(channel_, SHUT_WR);
    while (!ended_) {
        read();
    }
    ::close(channel_);
}

void keeper::send(const void* data, std::size_t size) noexcept {
    // A keeper that is gone shows when it is listened to.
    while (::send(channel_, data, size, MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
}

void keeper::start(redlock::time_point deadline, const std::vector<std::string>& variables) {
    keeper_order order{keeper_order::kind::start, 0, deadline.time_since_epoch().count()};
    std::string packet(reinterpret_cast<const char*>(&order), sizeof order);
    for (const std::string& one : variables) {
        packet += one;
        packet += '\0';
    }
    send(packet.data(), packet.size());
}

void keeper::set_deadline(redlock::time_point deadline) {
    const keeper_order order{keeper_order::kind::deadline, 0, deadline.time_since_epoch().count()};
    send(&order, sizeof order);
}

void keeper::stop(redlock::time_point kill_at) {
    const keeper_order order{keeper_order::kind::stop, 0, kill_at.time_since_epoch().count()};
    send(&order, sizeof order);
}

void keeper::forward(int number) {
    const keeper_order order{keeper_order::kind::forward, number, 0};
    send(&order, sizeof order);
}

void keeper::resume() {
    const keeper_order order{keeper_order::kind::resume, 0, 0};
    send(&order, sizeof order);
}

keeper_report keeper::read() {
    keeper_report out;
    ssize_t size = 0;
    do { // NOLINT(cppcoreguidelines-avoid-do-while)
        size = ::recv(channel_, &out, sizeof out, 0);
        // A keeper that ended before it read our last order: its last words still come.
    } while (size < 0 && (errno == EINTR || errno == ECONNRESET));
    const bool told = size == sizeof out;
    ended_ = !told || out.what == keeper_report::kind::gone;
    if (ended_) {
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    if (!told) {
        // It was killed; by its death the command was, and the rest is ours by now.
        kill_all_children();
        return {keeper_report::kind::died, 0};
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
