#include "screen.hpp"

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace redlock::soak {
namespace {

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

screen::screen() {
    const char* const kind = std::getenv("TERM");
    const char* const no_color = std::getenv("NO_COLOR");
    terminal_ = ::isatty(STDOUT_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
    colours_ = terminal_ && (no_color == nullptr || *no_color == '\0');
}

std::string screen::paint(style look, std::string_view text) const {
    static constexpr std::array codes{0, 1, 2, 31, 32, 33, 36};
    return colours_
               ? fmt::format("\x1b[{}m{}\x1b[0m", codes.at(static_cast<std::size_t>(look)), text)
               : std::string(text);
}

screen::extent screen::size() noexcept {
    winsize now{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &now) != 0 || now.ws_row == 0 || now.ws_col == 0) {
        return {};
    }
    return {now.ws_row, now.ws_col};
}

void screen::draw(const std::vector<std::string>& lines) const {
    const extent limit = size();
    // In place: each line is cleared to its end, and the rest of the screen below the last one.
    std::string picture = "\x1b[H";
    for (std::size_t i = 0; i < lines.size() && i < limit.rows; ++i) {
        picture += i == 0 ? "" : "\r\n";
        picture += clipped(lines[i], limit.columns) + "\x1b[K";
    }
    fmt::print("{}\x1b[J", picture);
    std::fflush(stdout);
}

void screen::print(std::string_view text) const {
    fmt::print("{}\n", text);
    std::fflush(stdout);
}

} // namespace redlock::soak
