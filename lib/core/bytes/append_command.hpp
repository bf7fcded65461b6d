// Commands to the bytes of the Redis protocol.

#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace redlock::core {

/// Appends one command in the Redis protocol. Arguments may hold any bytes.
void append_command(std::string& out, std::span<const std::string_view> arguments);
inline void append_command(std::string& out, std::initializer_list<std::string_view> arguments) {
    append_command(out, std::span(arguments.begin(), arguments.size()));
}

/// \name The same in parts: first the number of arguments, then each
/// \{
void append_array(std::string& out, std::size_t arguments);
void append_argument(std::string& out, std::string_view argument);
/// \}

/// The arguments of many locks, formatted one after the other. It is used again and again, and only
/// grows: a string would fill each new byte twice.
class argument_buffer {
public:
    void clear() noexcept { used_ = 0; }
    std::string_view text() const noexcept { return std::string_view(bytes_).substr(0, used_); }
    void add(std::string_view argument);
    /// Bytes that are formatted already.
    void add_formatted(std::string_view bytes);

private:
    /// Returns the end, where at least this many bytes may be written.
    char* room(std::size_t bytes) {
        if (bytes_.size() - used_ < bytes) {
            bytes_.resize(2 * bytes_.size() + bytes);
        }
        return bytes_.data() + used_;
    }

    std::string bytes_;
    std::size_t used_ = 0;
};

} // namespace redlock::core
