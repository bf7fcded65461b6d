#include "screen.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace redlock::soak {
namespace {

constexpr std::string_view take_over = "\x1b[?1049h\x1b[?25l\x1b[2J";
constexpr std::string_view put_back = "\x1b[0m\x1b[?25h\x1b[?1049l";

// The process that puts the terminal back if the demo cannot. It holds the other end of a pipe,
// which the system closes whatever ends the demo; a byte in it means that there is nothing to do.
[[noreturn]] void guard_terminal(int pipe_end) {
    ::setpgid(0, 0); // Ctrl-C and a closing terminal are for the demo
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTTOU}) {
        std::signal(number, SIG_IGN);
    }
    char byte = 0;
    ssize_t size = 0;
    while ((size = ::read(pipe_end, &byte, 1)) < 0 && errno == EINTR) {
    }
    if (size == 0) {
        [[maybe_unused]] const auto written =
            ::write(STDOUT_FILENO, put_back.data(), put_back.size());
    }
    ::_exit(0);
}

// The first `width` visible characters.
std::string clipped(const std::string& line, std::size_t width) {
    std::string out;
    std::size_t visible = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\x1b') {
            const auto end = line.find('m', i);
            out.append(line, i, end - i + 1);
            i = end;
        } else if (visible < width) {
            out += line[i];
            ++visible;
        }
    }
    return out;
}

} // namespace

void screen::protect_descriptors() {
    std::signal(SIGPIPE, SIG_IGN);
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(number, F_GETFD) < 0) {
            ::open("/dev/null", O_RDWR); // the lowest free number, which is this one
        }
    }
}

screen::screen() {
    const char* const kind = std::getenv("TERM");
    const char* const no_color = std::getenv("NO_COLOR");
    terminal_ = ::isatty(STDOUT_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
    colours_ = terminal_ && (no_color == nullptr || *no_color == '\0');
}

screen::~screen() {
    leave();
}

std::string screen::paint(style look, std::string_view text) const {
    static constexpr std::array<std::string_view, 7> codes{"0", "1", "2", "31", "32", "33", "36"};
    if (!colours_ || look == style::plain) {
        return std::string(text);
    }
    std::string out = "\x1b[";
    out.append(codes.at(static_cast<std::size_t>(look))).append("m").append(text);
    return out.append("\x1b[0m");
}

void screen::enter() {
    std::array<int, 2> ends{};
    if (!terminal_ || entered_ || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return;
    }
    guard_ = ::fork();
    if (guard_ == 0) {
        ::close(ends[1]);
        guard_terminal(ends[0]);
    }
    ::close(ends[0]);
    guard_pipe_ = ends[1];
    entered_ = true;
    write(take_over);
}

void screen::leave() {
    if (!entered_) {
        return;
    }
    entered_ = false;
    write(put_back);
    if (guard_ > 0) {
        [[maybe_unused]] const auto written = ::write(guard_pipe_, "x", 1);
        while (::waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    ::close(guard_pipe_);
}

screen::extent screen::size() noexcept {
    winsize now{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &now) != 0 || now.ws_row == 0 || now.ws_col == 0) {
        return {};
    }
    return {now.ws_row, now.ws_col};
}

void screen::draw(const std::vector<std::string>& lines) {
    const extent limit = size();
    // In place: each line is cleared to its end, and the rest of the screen below the last one.
    std::string picture = "\x1b[H";
    for (std::size_t i = 0; i < lines.size() && i < limit.rows; ++i) {
        picture += i == 0 ? "" : "\r\n";
        picture += clipped(lines[i], limit.columns) + "\x1b[K";
    }
    write(picture + "\x1b[J");
}

void screen::print(std::string_view text) {
    std::string line(text);
    write(line += '\n');
}

void screen::write(std::string_view bytes) noexcept {
    while (open_ && !bytes.empty()) {
        const auto written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
        if (written > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno != EINTR && errno != EAGAIN) {
            open_ = false;
        }
    }
}

} // namespace redlock::soak
