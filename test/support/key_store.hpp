// The keys of a fake master: strings with an optional time to live, on the real clock. Not
// thread-safe; the fake master guards it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace redlock::test {

class key_store {
public:
    using milliseconds = std::chrono::milliseconds;

    std::optional<std::string> get(const std::string& key) {
        entry* found = find(key);
        return found != nullptr ? std::optional(found->value) : std::nullopt;
    }

    void
    set(const std::string& key, std::string value, std::optional<milliseconds> ttl = std::nullopt) {
        entries_[key] = entry{std::move(value), expiry(ttl)};
    }

    bool erase(const std::string& key) { return find(key) != nullptr && entries_.erase(key) == 1; }

    bool expire(const std::string& key, milliseconds ttl) {
        entry* found = find(key);
        if (found != nullptr) {
            found->expires = expiry(ttl);
        }
        return found != nullptr;
    }

    // As PTTL: -2 without the key, -1 without a time to live.
    std::int64_t pttl(const std::string& key) {
        const entry* found = find(key);
        if (found == nullptr || !found->expires) {
            return found == nullptr ? -2 : -1;
        }
        return std::chrono::ceil<milliseconds>(*found->expires - clock::now()).count();
    }

    std::map<std::string, std::string> all() {
        std::map<std::string, std::string> result;
        std::erase_if(entries_, [now = clock::now()](const auto& item) {
            return item.second.expires && *item.second.expires <= now;
        });
        for (const auto& [key, value] : entries_) {
            result.emplace(key, value.value);
        }
        return result;
    }

    void clear() { entries_.clear(); }

private:
    using clock = std::chrono::steady_clock;
    struct entry {
        std::string value;
        std::optional<clock::time_point> expires;
    };

    static std::optional<clock::time_point> expiry(std::optional<milliseconds> ttl) {
        return ttl ? std::optional(clock::now() + *ttl) : std::nullopt;
    }

    entry* find(const std::string& key) {
        const auto found = entries_.find(key);
        if (found == entries_.end()) {
            return nullptr;
        }
        if (found->second.expires && *found->second.expires <= clock::now()) {
            entries_.erase(found);
            return nullptr;
        }
        return &found->second;
    }

    std::map<std::string, entry> entries_;
};

} // namespace redlock::test
