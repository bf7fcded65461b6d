// Texts for the reasons why a master does not vote.

#pragma once

#include "settings.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace redlock::core {

/// Of a master that has recorded too short a quarantine for this ttl.
inline std::string too_long_text(std::chrono::milliseconds ttl, std::chrono::milliseconds limit) {
    if (limit.count() == 0) {
        return "clock_offset_bound leaves no ttl within the recorded quarantine: use that of the "
               "other clients";
    }
    return "ttl is " + std::to_string(ttl.count()) + " ms; allowed: up to the quorum's max_ttl, "
           + std::to_string(limit.count()) + " ms";
}

/// The text of an error of a server, which may have none or a page.
inline std::string_view text_of_error(std::string_view text) {
    constexpr std::size_t length_max = 240;
    return text.empty() ? "an error without a text" : text.substr(0, length_max);
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

/// The error of the parser, after the first bytes that a server sent. They show which protocol it
/// speaks. `secret`: a password that must not be shown.
inline std::string
not_redis_text(std::string_view error, std::string_view bytes, std::string_view secret) {
    if (bytes.starts_with("\x15\x03")) { // an alert
        return "the server replied in TLS: a TLS port needs rediss://";
    }
    constexpr std::size_t length_max = 60;
    const std::string_view line = bytes.substr(0, bytes.find_first_of("\r\n"));
    const bool shown = secret.empty() || bytes.find(secret) == std::string_view::npos;
    return std::string(error).append(
        shown ? ", in '" + std::string(line.substr(0, length_max)) + "'" : "");
}

/// Of a master whose memory record does not have the format of this version.
inline std::string other_record_text(const settings& rules) {
    return "its memory record '" + rules.record_key
           + "' is of another version of redlock, or damaged: stop all clients of another version, "
             "then delete the record";
}

/// Of a master that refuses the script that introduces it: its error, and the remedy.
inline std::string refusal_text(std::string_view error, const settings& rules) {
    // "... to access one of the keys ..." (Redis 7.0), "... to access a key" (7.2)
    const bool forbidden = error.starts_with("NOPERM");
    const bool keys = forbidden && error.find("access") != std::string_view::npos;
    const bool cluster = error.starts_with("CLUSTERDOWN") || error.starts_with("MOVED");
    std::string out(text_of_error(error));
    return out
           + (keys        ? ": the ACL must allow the keys " + rules.key_prefix + "*"
              : cluster   ? ": it is a node of a cluster: use servers with cluster-enabled no"
              : forbidden ? ": redlock needs EVAL and EVALSHA: the ACL must allow them"
              : error.starts_with("ERR unknown")
                  ? ": redlock needs EVAL and EVALSHA: use servers that run scripts"
                  : "");
}

} // namespace redlock::core
