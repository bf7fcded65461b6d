// The keys of one master: strings, hashes and sorted sets that expire by the wall clock of the
// master. A run has a handful of keys, so a list is faster than a table. The store is a value, so a
// snapshot is a copy.

#pragma once

#include <redlock/version.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace memory {

struct entry {
    static constexpr std::int64_t no_expiry = std::numeric_limits<std::int64_t>::max();

    std::string key;
    enum class type : std::uint8_t { text, hash, sorted_set };

    type is = type::text;
    std::string value;
    std::vector<std::pair<std::string, std::string>> fields;
    std::vector<std::pair<double, std::string>> members; // of a sorted set, in order
    std::int64_t expires_ms = no_expiry;
};

class store {
public:
    /// Returns the live entry, or null. As in Redis, a key exists up to and including its last
    /// millisecond.
    entry* find(std::string_view key, std::int64_t now_ms) {
        for (entry& one : entries_) {
            if (one.key == key) {
                if (now_ms > one.expires_ms) {
                    remove(one);
                    return nullptr;
                }
                return &one;
            }
        }
        return nullptr;
    }

    /// Returns a new, empty entry that replaces an existing one.
    entry& put(std::string_view key) {
        for (entry& one : entries_) {
            if (one.key == key) {
                one.is = entry::type::text;
                one.value.clear();
                one.fields.clear();
                one.members.clear();
                one.expires_ms = entry::no_expiry;
                return one;
            }
        }
        entry& made = entries_.emplace_back();
        made.key = key;
        return made;
    }

    void remove(entry& one) {
        if (&one != &entries_.back()) {
            std::swap(one, entries_.back());
        }
        entries_.pop_back();
    }

    void clear() noexcept { entries_.clear(); }

    /// Returns all entries, including expired ones that no command has removed yet.
    const std::vector<entry>& entries() const noexcept { return entries_; }

private:
    std::vector<entry> entries_;
};

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
