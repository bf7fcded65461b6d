// The login of a connection of either kind.

#pragma once

#include "core/bytes/append_command.hpp"
#include "reasons.hpp"
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

/// The server's error when it refuses `command`, or only its first word if it contains `secret`:
/// servers may repeat what they did not understand.
inline std::string
refusal_of(std::string_view command, std::string_view words, std::string_view secret) {
    if (secret.empty() || words.find(secret) == std::string_view::npos) {
        return std::string(text_of_error(words));
    }
    return std::string(words.substr(0, words.find(' '))) + " " + std::string(command)
           + " was refused";
}

} // namespace redlock::core
