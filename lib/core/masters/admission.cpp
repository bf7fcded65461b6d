#include "admission.hpp"

#include "core/base/hash.hpp"

#include <algorithm>
#include <charconv>

namespace redlock::core {

namespace {

constexpr std::chrono::seconds uptime_max = std::chrono::years(1);

// Calls f(key, value) for each "key:value" line.
template <typename F>
void for_each_field(std::string_view text, F f) {
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
        if (line.ends_with('\r')) {
            line.remove_suffix(1);
        }
        const std::size_t colon = line.find(':');
        if (colon != std::string_view::npos) {
            f(line.substr(0, colon), line.substr(colon + 1));
        }
    }
}

std::int64_t number(std::string_view text) noexcept {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// Whether `id` is a replication id: not all zeros ("none"), and usable as one word of the memory
// record.
bool names_replication(std::string_view id) noexcept {
    constexpr std::size_t size_max = 64;
    return id.size() <= size_max && id.find_first_not_of('0') != std::string_view::npos
           && std::ranges::all_of(id, [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

} // namespace

std::optional<server_info> parse_info(std::string_view text) {
    server_info info;
    std::string_view redis;
    std::string_view valkey;
    bool uptime_known = false;
    for_each_field(text, [&](std::string_view key, std::string_view value) {
        if (key == "run_id") {
            info.run_id = value;
            info.run_id_hash = hash_of(value);
        } else if (key == "redis_version") {
            redis = value;
        } else if (key == "valkey_version") {
            valkey = value;
        } else if (key == "role") {
            info.role = value;
        } else if (key == "maxmemory_policy") {
            info.eviction_policy = value;
        } else if (key == "maxmemory") {
            info.memory_limited = value != "0";
        } else if (key == "evicted_keys") {
            info.evicted_keys =
                static_cast<std::uint64_t>(std::max<std::int64_t>(number(value), 0));
        } else if (key == "uptime_in_seconds") {
            // Longer than any quarantine, and fits into nanoseconds.
            info.uptime = std::clamp(
                std::chrono::seconds(number(value)), std::chrono::seconds(0), uptime_max);
            uptime_known = true;
        } else if (key == "loading") {
            info.loading = value != "0";
        } else if (key == "master_replid2" && names_replication(value)) {
            info.promoted_from = value;
        }
    });
    if (info.run_id.empty() || info.role.empty() || !uptime_known) {
        return std::nullopt;
    }
    // Valkey reports itself as Redis 7.2 for compatibility, with its own version in another field.
    info.version = valkey.empty() ? "redis " + std::string(redis) : "valkey " + std::string(valkey);
    return info;
}

std::string server_info::losses() const {
    const std::string evicted = evicted_keys == 0 ? "" : "+" + std::to_string(evicted_keys);
    return promoted_from.empty() && evicted.empty() ? "-" : promoted_from + evicted;
}

eligibility
judge(const server_info& info, const settings& rules, time_point now, time_point since) {
    const std::string why =
        info.role != "master" ? "is a replica (role:" + info.role + "): configure the master"
        : info.loading        ? "LOADING its data from disk"
        : info.may_evict()    ? "may evict locks under memory pressure (maxmemory-policy "
                                 + info.eviction_policy + "): set it to noeviction"
                           : "";
    if (!why.empty()) {
        return {.fit = false, .text = why};
    }
    if (rules.guarded() || !rules.quarantine) {
        return {};
    }
    // The server reads its clock from time to time and reports whole seconds: it may be a second
    // younger than it reports.
    const std::chrono::nanoseconds age =
        std::max(info.uptime - std::chrono::seconds(1), std::chrono::seconds(0));
    const std::chrono::nanoseconds needed = rules.quarantine_time();
    eligibility quarantined;
    quarantined.votes_from = age < needed ? now + (needed - age) : never;
    if (since != never && since + needed > now) {
        quarantined.votes_from = std::max(quarantined.votes_from, since + needed);
    }
    return quarantined;
}

} // namespace redlock::core
