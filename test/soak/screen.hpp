// Standard output: a terminal that is redrawn in place and put back as it was, or plain lines.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::soak {

enum class style { plain, bold, dim, red, green, yellow, cyan };

class screen {
public:
    // A reader of standard output that has gone must not end this program by a signal. A closed
    // standard descriptor must not be given to a socket.
    static void protect_descriptors();

    screen();
    screen(const screen&) = delete;
    ~screen();

    // Whether pictures can be drawn.
    bool is_terminal() const noexcept { return terminal_; }
    // False once no reader is left for what is written.
    bool open() const noexcept { return open_; }

    // `text` in a colour where there are colours (a terminal, and NO_COLOR is not set).
    std::string paint(style look, std::string_view text) const;

    // Takes over the whole terminal. From then on it is put back by `leave`, the destructor or, if
    // this process ends without (a crash, SIGKILL), by a small process that waits for that.
    void enter();
    void leave();

    // The height of the terminal.
    std::size_t rows() const noexcept { return size().rows; }
    // Shows these lines from the top of the terminal, as many and as much of them as fit.
    void draw(const std::vector<std::string>& lines);
    // One line of plain text, or several.
    void print(std::string_view text);

private:
    struct extent {
        std::size_t rows = 24;
        std::size_t columns = 80;
    };
    static extent size() noexcept;
    void write(std::string_view bytes) noexcept;

    bool terminal_ = false;
    bool colours_ = false;
    bool open_ = true;
    bool entered_ = false;
    int guard_pipe_ = -1;
    pid_t guard_ = -1;
};

} // namespace redlock::soak
