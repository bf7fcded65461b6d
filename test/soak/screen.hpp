// Standard output: a terminal on which each picture is painted over the one before, or plain lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::soak {

enum class style { plain, bold, dim, red, green, yellow, cyan };

class screen {
public:
    screen();

    // Whether pictures can be drawn.
    bool is_terminal() const noexcept { return terminal_; }

    // `text` in a colour where there are colours (a terminal, and NO_COLOR is not set).
    std::string paint(style look, std::string_view text) const;

    // The height of the terminal.
    std::size_t rows() const noexcept { return size().rows; }
    // Shows these lines from the top of the terminal, as many and as much of them as fit.
    void draw(const std::vector<std::string>& lines) const;
    // One line of plain text, or several.
    void print(std::string_view text) const;

private:
    struct extent {
        std::size_t rows = 24;
        std::size_t columns = 80;
    };
    static extent size() noexcept;

    bool terminal_ = false;
    bool colours_ = false;
};

} // namespace redlock::soak
