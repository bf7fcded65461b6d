#include "append_command.hpp"

#include <algorithm>
#include <charconv>

namespace redlock::core {

namespace {

constexpr std::size_t digits_max = 20;                       // of 64 bits
constexpr std::size_t length_bytes_max = 1 + digits_max + 2; // with mark and end of line

// Writes "$42\r\n" and returns the end. Most lengths have one or two digits.
char* write_length(char* at, char mark, std::size_t length) {
    *at++ = mark;
    if (length < 10) {
        *at++ = static_cast<char>('0' + length);
    } else if (length < 100) {
        *at++ = static_cast<char>('0' + length / 10);
        *at++ = static_cast<char>('0' + length % 10);
    } else {
        at = std::to_chars(at, at + digits_max, length).ptr;
    }
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

char* write_argument(char* at, std::string_view argument) {
    at = write_length(at, '$', argument.size());
    at = std::copy(argument.begin(), argument.end(), at);
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

} // namespace

void append_command(std::string& out, std::span<const std::string_view> arguments) {
    std::size_t room = length_bytes_max;
    for (const std::string_view argument : arguments) {
        room += length_bytes_max + argument.size() + 2;
    }
    const std::size_t before = out.size();
    out.resize(before + room);
    char* at = write_length(out.data() + before, '*', arguments.size());
    for (const std::string_view argument : arguments) {
        at = write_argument(at, argument);
    }
    out.resize(static_cast<std::size_t>(at - out.data()));
}

void append_array(std::string& out, std::size_t arguments) {
    char head[length_bytes_max];
    out.append(head, write_length(head, '*', arguments));
}

void append_argument(std::string& out, std::string_view argument) {
    constexpr std::size_t usual_max = 64; // one append in place of three for nearly all
    char bytes[length_bytes_max + usual_max + 2];
    if (argument.size() <= usual_max) {
        out.append(bytes, write_argument(bytes, argument));
    } else {
        out.append(bytes, write_length(bytes, '$', argument.size()))
            .append(argument)
            .append("\r\n");
    }
}

void argument_buffer::add(std::string_view argument) {
    char* const at = room(length_bytes_max + argument.size() + 2);
    used_ += static_cast<std::size_t>(write_argument(at, argument) - at);
}

void argument_buffer::add_formatted(std::string_view bytes) {
    std::ranges::copy(bytes, room(bytes.size()));
    used_ += bytes.size();
}

} // namespace redlock::core
