// The names of what a lock leaves on a master.

#pragma once

#include <string>
#include <string_view>

namespace redlock::core {

/// `prefix{resource}`. The braces keep a lock's keys together where names are hashed, and apart
/// from each other: a lock ends with a brace, a fencing counter does not. Without a prefix it is
/// the bare name, which other Redlock clients can agree on.
inline void assign_lock_key(std::string& out, std::string_view prefix, std::string_view resource) {
    out.assign(prefix);
    if (prefix.empty()) {
        out.append(resource);
    } else {
        out.append("{").append(resource).append("}");
    }
}

/// The fencing counter of the lock.
inline void assign_fence_key(std::string& out, std::string_view prefix, std::string_view resource) {
    out.assign(prefix).append("{").append(resource).append("}:fence");
}

/// The record of one master: since when it remembers.
inline std::string epoch_key(std::string_view prefix) {
    return std::string(prefix) + ":epoch";
}

} // namespace redlock::core
