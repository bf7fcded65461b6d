// fork, exec and a pair of sockets.
#include "worker_process.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

using clock = std::chrono::steady_clock;

} // namespace

worker_process::worker_process(const std::string& name) {
    // Not pipes: those raise SIGPIPE when the worker has ended.
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw std::runtime_error(fmt::format("socketpair: {}", std::strerror(errno)));
    }
    line_ = descriptor(ends[0]);
    const descriptor theirs(ends[1]);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) {
        throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
    }
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) {
            ::_exit(126);
        }
        ::dup2(theirs.get(), STDIN_FILENO);
        ::dup2(theirs.get(), STDOUT_FILENO);
        ::execl("/proc/self/exe", "quorum_bench", worker_option, name.c_str(), nullptr);
        ::_exit(127);
    }
}

worker_process::worker_process(worker_process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      line_(std::move(other.line_)),
      received_(std::move(other.received_)) {}

worker_process::~worker_process() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
}

void worker_process::write_line(const std::string& text) {
    const auto line = text + '\n';
    for (std::size_t sent = 0; sent < line.size();) {
        const auto n = ::send(line_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR) {
            throw std::runtime_error(fmt::format("a worker has ended: {}", std::strerror(errno)));
        }
        sent += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
}

std::string worker_process::read_line(std::chrono::milliseconds limit) {
    const auto give_up_at = clock::now() + limit;
    for (;;) {
        if (const auto end = received_.find('\n'); end != std::string::npos) {
            auto line = received_.substr(0, end);
            received_.erase(0, end + 1);
            return line;
        }
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(give_up_at - clock::now());
        pollfd waits{line_.get(), POLLIN, 0};
        if (left.count() <= 0 || ::poll(&waits, 1, static_cast<int>(left.count())) == 0) {
            throw std::runtime_error(fmt::format("a worker was silent for {} ms", limit.count()));
        }
        std::array<char, 4096> chunk;
        const auto n = ::read(line_.get(), chunk.data(), chunk.size());
        if (n == 0 || (n < 0 && errno != EINTR)) {
            throw std::runtime_error("a worker has ended");
        }
        received_.append(chunk.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
    }
}

} // namespace bench
