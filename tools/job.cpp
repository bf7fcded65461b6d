#include "job.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <memory>
#include <utility>

namespace cli {

job::job(asio::io_context& io, std::function<void()> wanted)
    : wanted_(std::move(wanted)),
      signals_(io) {
    ::sigemptyset(&blocked_);
    ::sigaddset(&blocked_, SIGTTIN);
    ::sigaddset(&blocked_, SIGTTOU);
    ::sigprocmask(SIG_BLOCK, &blocked_, &before_);
    if (const int fd = ::signalfd(-1, &blocked_, SFD_CLOEXEC | SFD_NONBLOCK); fd >= 0) {
        signals_.assign(fd);
        listen();
    }
}

job::~job() {
    take(); // they must not stop the tool now
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void job::listen() {
    signals_.async_wait(
        asio::posix::stream_descriptor::wait_read,
        [this, mine = std::weak_ptr(self_)](const boost::system::error_code& error) {
            if (!error && !mine.expired()) {
                if (take()) {
                    wanted_();
                }
                listen();
            }
        });
}

bool job::take() const noexcept {
    constexpr timespec no_wait{};
    bool any = false;
    while (::sigtimedwait(&blocked_, nullptr, &no_wait) > 0) {
        any = true;
    }
    return any;
}

bool job::stop(bool group) {
    sigset_t continued;
    sigset_t before;
    ::sigemptyset(&continued);
    ::sigaddset(&continued, SIGCONT);
    ::sigprocmask(SIG_BLOCK, &continued, &before);
    struct sigaction stops {};
    struct sigaction usual {};
    stops.sa_handler = SIG_DFL;
    ::sigaction(SIGTSTP, nullptr, &usual);
    if (usual.sa_handler != SIG_IGN) {
        ::sigaction(SIGTSTP, &stops, nullptr);
    }
    ::kill(group ? 0 : ::getpid(), SIGTSTP); // returns when the tool is continued
    ::sigaction(SIGTSTP, &usual, nullptr);
    constexpr timespec no_wait{};
    const bool stopped = ::sigtimedwait(&continued, nullptr, &no_wait) > 0;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return stopped;
}

} // namespace cli
