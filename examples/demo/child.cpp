#include "child.hpp"

#include <fmt/format.h>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace demo {
namespace {

// What this program ignores or blocks, the child must not.
void reset_signals() noexcept {
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE}) {
        std::signal(number, SIG_DFL);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

} // namespace

child::child(const std::function<int()>& body) {
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) {
        throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
    }
    if (pid_ == 0) {
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        // The parent may have died before the line above.
        if (::getppid() != parent) {
            ::_exit(126);
        }
        reset_signals();
        int status = 125;
        try {
            status = body();
        } catch (...) {
            // The body reports its own errors. An exception that passed on would unwind the
            // parent's stack, whose destructors end the masters.
        }
        ::_exit(status);
    }
}

child::child(child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      status_(std::exchange(other.status_, 0)) {}

child& child::operator=(child&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(status_, other.status_);
    return *this;
}

child::~child() {
    kill();
}

bool child::running() noexcept {
    int wait_status = 0;
    if (pid_ > 0 && ::waitpid(pid_, &wait_status, WNOHANG) == pid_) {
        ended(wait_status);
    }
    return pid_ > 0;
}

bool child::stop() noexcept {
    if (!running()) {
        return false;
    }
    ::kill(pid_, SIGSTOP);
    int wait_status = 0;
    while (::waitpid(pid_, &wait_status, WUNTRACED) < 0) {
        if (errno != EINTR) {
            return false;
        }
    }
    if (WIFSTOPPED(wait_status)) {
        return true;
    }
    ended(wait_status);
    return false;
}

void child::resume() noexcept {
    if (running()) {
        ::kill(pid_, SIGCONT);
    }
}

void child::kill() noexcept {
    if (!running()) {
        return;
    }
    ::kill(pid_, SIGKILL);
    int wait_status = 0;
    while (::waitpid(pid_, &wait_status, 0) < 0 && errno == EINTR) {
    }
    ended(wait_status);
}

void child::ended(int wait_status) noexcept {
    pid_ = -1;
    status_ = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

} // namespace demo
