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

} // namespace redlock::core
