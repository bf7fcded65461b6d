// Strict on purpose: no inline commands, no tolerance for a missing carriage return.
#include "resp_wire.hpp"

#include <charconv>
#include <stdexcept>

namespace redlock::test {
namespace wire {

std::string status(std::string_view text) {
    return "+" + std::string(text) + "\r\n";
}

std::string error(std::string_view text) {
    return "-" + std::string(text) + "\r\n";
}

std::string integer(std::int64_t value) {
    return ":" + std::to_string(value) + "\r\n";
}

std::string bulk(std::string_view value) {
    return "$" + std::to_string(value.size()) + "\r\n" + std::string(value) + "\r\n";
}

std::string nil() {
    return "$-1\r\n";
}

std::string array(const std::vector<std::string>& encoded_elements) {
    std::string result = "*" + std::to_string(encoded_elements.size()) + "\r\n";
    for (const std::string& element : encoded_elements) {
        result += element;
    }
    return result;
}

} // namespace wire

void request_parser::feed(std::string_view bytes) {
    buffer_.erase(0, used_);
    used_ = 0;
    buffer_.append(bytes);
}

std::optional<std::size_t> request_parser::header(std::size_t& at, char type) const {
    constexpr std::size_t line_max = 32;
    constexpr std::size_t number_max = 512u * 1024 * 1024;
    if (at >= buffer_.size()) {
        return std::nullopt;
    }
    if (buffer_[at] != type) {
        throw std::runtime_error(std::string("Protocol error: expected '") + type + "'");
    }
    const std::size_t end = buffer_.find("\r\n", at);
    if (end == std::string::npos) {
        if (buffer_.size() - at > line_max) {
            throw std::runtime_error("Protocol error: endless header");
        }
        return std::nullopt;
    }
    std::size_t number = 0;
    const char* last = buffer_.data() + end;
    const auto [stop, error] = std::from_chars(buffer_.data() + at + 1, last, number);
    if (error != std::errc() || stop != last || number > number_max) {
        throw std::runtime_error("Protocol error: invalid length");
    }
    at = end + 2;
    return number;
}

std::optional<std::vector<std::string>> request_parser::next() {
    std::size_t at = used_;
    const auto count = header(at, '*');
    if (!count) {
        return std::nullopt;
    }
    if (*count == 0) {
        throw std::runtime_error("Protocol error: empty request");
    }
    std::vector<std::string> args;
    while (args.size() < *count) {
        const auto length = header(at, '$');
        if (!length || buffer_.size() < at + *length + 2) {
            return std::nullopt;
        }
        if (buffer_.compare(at + *length, 2, "\r\n") != 0) {
            throw std::runtime_error("Protocol error: no end of line after a bulk string");
        }
        args.push_back(buffer_.substr(at, *length));
        at += *length + 2;
    }
    used_ = at;
    return args;
}

} // namespace redlock::test
