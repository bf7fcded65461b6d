// Replies to calls for several locks (core/locks/frame.hpp), for tests that say what one lock
// gets.

#pragma once

#include "core/bytes/guarded_scripts.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace unit {

/// A call of guarded_acquire, guarded_extend or guarded_release.
struct shared_call {
    const redlock::core::script* what = nullptr;
    std::size_t locks = 0;
    bool has_counters = false;
    std::vector<std::string> keys; // of the locks
};

/// Empty if the command is another one.
inline std::optional<shared_call> shared_call_in(const std::vector<std::string>& words) {
    using namespace redlock::core;
    shared_call out;
    for (const script* const one : {&guarded_acquire, &guarded_extend, &guarded_release}) {
        if (words.size() > 3 && (words[1] == one->text || words[1] == one->sha1)) {
            out.what = one;
        }
    }
    if (out.what == nullptr) {
        return std::nullopt;
    }
    const bool removes = out.what == &guarded_release;
    const std::size_t keys = std::stoul(words[2]);
    out.has_counters = words[3 + keys + (removes ? 0 : 1)] != "0";
    const std::size_t keys_each = out.has_counters ? 2 : 1;
    for (std::size_t i = removes ? 0 : 1; i < keys; i += keys_each) {
        out.keys.push_back(words[3 + i]);
    }
    out.locks = out.keys.size();
    return out;
}

/// The reply if each lock gets this one: {status, value, clock} as a script for one lock says it,
/// or an error.
inline std::string reply_for_each(const shared_call& call, const std::string& single) {
    using namespace redlock::core;
    std::int64_t part[3] = {};
    const char* at = single.data();
    const char* const end = at + single.size();
    if (!single.starts_with("*3\r\n")) {
        return single;
    }
    at += 4;
    for (std::int64_t& one : part) {
        at = std::from_chars(at + 1, end, one).ptr + 2;
    }
    const auto [status, value, clock] = part;
    const bool acquires = call.what == &guarded_acquire;
    const bool removes = call.what == &guarded_release;
    if (!removes && (status == -1 || status == -4 || (acquires && status == -2))) {
        return single; // not executed
    }
    std::vector<std::int64_t> out{1, clock};
    for (std::size_t i = 1; i <= call.locks; ++i) {
        if (acquires && call.has_counters) {
            out.push_back(status == 1 ? value : -2 - value);
        } else if (status != 1 || (removes && value == 1)) {
            out.push_back(static_cast<std::int64_t>(i));
            out.push_back(removes && status == 1 ? -2 : removes || status < 0 ? status : value);
        }
    }
    std::string text = "*" + std::to_string(out.size()) + "\r\n";
    for (const std::int64_t one : out) {
        text += ":" + std::to_string(one) + "\r\n";
    }
    return text;
}

} // namespace unit
