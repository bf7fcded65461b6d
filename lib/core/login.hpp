// How a connection of either kind says who it is.

#pragma once

#include "resp.hpp"
#include "settings.hpp"

#include <string>
#include <string_view>

namespace redlock::core {

/// AUTH. Requires a password.
inline void append_login(std::string& out, const credentials& mine) {
    if (mine.username.empty()) {
        append_command(out, {"AUTH", mine.password});
    } else {
        append_command(out, {"AUTH", mine.username, mine.password});
    }
}

/// The server's words when it refuses `command`, or only their first if they hold `secret`: servers
/// are known to say back what they did not understand.
inline std::string
refusal_of(std::string_view command, std::string_view words, std::string_view secret) {
    if (words.find(secret) == std::string_view::npos) {
        return std::string(words);
    }
    return std::string(words.substr(0, words.find(' '))) + " " + std::string(command)
           + " was refused";
}

} // namespace redlock::core
