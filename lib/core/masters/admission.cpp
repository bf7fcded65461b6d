#include "admission.hpp"

#include "core/base/hash.hpp"

#include <algorithm>
#include <charconv>

namespace redlock::core {

namespace {

constexpr std::chrono::seconds uptime_max = std::chrono::years(1);

// The value of the line "key:value"; empty if there is none.
std::string_view field(std::string_view info, std::string_view key) noexcept {
    for (std::size_t at = info.find(key); at != std::string_view::npos;
         at = info.find(key, at + 1)) {
        const std::string_view value = info.substr(at + key.size());
        if ((at == 0 || info[at - 1] == '\n') && value.starts_with(':')) {
            return value.substr(1, value.find_first_of("\r\n") - 1);
        }
    }
    return {};
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

bool may_show(std::string_view text, std::string_view secret) {
    constexpr std::size_t part = 6;
    for (const std::string_view usual :
         {"WRONGPASS invalid username-password pair",
          "ERR AUTH <password> called without any password configured",
          "ERR Client sent AUTH, but no password is set",
          "ERR invalid password"}) {
        text.remove_prefix(text.starts_with(usual) ? usual.size() : 0);
    }
    std::string hidden(secret);
    std::ranges::replace_if(
        hidden, [](char c) { return c >= 0 && c < ' '; }, ' ');
    for (std::size_t at = 0; at == 0 || at + part <= hidden.size(); ++at) {
        if (!hidden.empty() && text.find(hidden.substr(at, part)) != std::string_view::npos) {
            return true;
        }
    }
    return false;
}

std::optional<server_info> parse_info(std::string_view text) {
    server_info info;
    info.run_id = field(text, "run_id");
    info.run_id_hash = hash_of(info.run_id);
    info.role = field(text, "role");
    const std::string_view uptime = field(text, "uptime_in_seconds");
    if (info.run_id.empty() || info.role.empty() || uptime.empty()) {
        return std::nullopt;
    }
    // Longer than any quarantine, and fits into nanoseconds.
    info.uptime =
        std::clamp(std::chrono::seconds(number(uptime)), std::chrono::seconds(0), uptime_max);
    info.eviction_policy = field(text, "maxmemory_policy");
    // A value that is not understood counts as well.
    const auto is_set = [text](std::string_view key) {
        const std::string_view value = field(text, key);
        return !value.empty() && value != "0";
    };
    info.memory_limited = is_set("maxmemory");
    info.evicted_keys =
        static_cast<std::uint64_t>(std::max<std::int64_t>(number(field(text, "evicted_keys")), 0));
    info.loading = is_set("loading");
    if (const std::string_view id = field(text, "master_replid2"); names_replication(id)) {
        info.promoted_from = id;
    }
    // Valkey reports itself as Redis 7.2 for compatibility, with its own version in another field.
    const std::string_view valkey = field(text, "valkey_version");
    info.version = valkey.empty() ? "redis " + std::string(field(text, "redis_version"))
                                  : "valkey " + std::string(valkey);
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
