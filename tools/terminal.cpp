#include "terminal.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace cli {
namespace {

class terminal {
public:
    terminal() noexcept : open_(::open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)) {}
    ~terminal() {
        if (open_ >= 0) {
            ::close(open_);
        }
    }
    terminal(const terminal&) = delete;
    terminal& operator=(const terminal&) = delete;

    // A jail may have no /dev/tty.
    int descriptor() const noexcept { return open_ >= 0 ? open_ : STDIN_FILENO; }

private:
    int open_;
};

} // namespace

pid_t foreground_group() noexcept {
    return ::tcgetpgrp(terminal().descriptor());
}

bool give_terminal(pid_t to) noexcept {
    return ::tcsetpgrp(terminal().descriptor(), to) == 0;
}

std::optional<termios> terminal_settings() noexcept {
    termios out{};
    return ::tcgetattr(terminal().descriptor(), &out) == 0 ? std::optional(out) : std::nullopt;
}

void set_terminal(const termios& to) noexcept {
    ::tcsetattr(terminal().descriptor(), TCSANOW, &to);
}

bool fails_in_background() noexcept {
    struct sigaction now {};
    return ::sigaction(SIGTTIN, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

bool is_interactive() noexcept {
    return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1
           && ::isatty(STDERR_FILENO) == 1;
}

} // namespace cli
