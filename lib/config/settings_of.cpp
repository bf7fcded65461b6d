#include "settings_of.hpp"

#include "core/bytes/keys.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

bool same_server(const endpoint& a, const endpoint& b) {
    return a.path == b.path && (!a.path.empty() || (a.host == b.host && a.port == b.port));
}

std::string member_name(const endpoint& master) {
    if (!master.name.empty()) {
        return master.name;
    }
    endpoint lower = master;
    std::ranges::transform(lower.host, lower.host.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return to_string(lower);
}

core::drift_bound drift_of(const config& config) {
    return {config.clock_drift_factor, config.clock_drift_margin};
}

std::chrono::milliseconds max_ttl_of(const config& configuration) {
    const bool is_set = configuration.max_ttl.count() != 0;
    return is_set                                      ? configuration.max_ttl
           : configuration.protocol == protocol::plain ? core::settings().founding_max_ttl
                                                       : core::ttl_max;
}

core::settings settings_of(const config& configuration) {
    core::settings out;
    std::vector<std::string> members;
    for (const endpoint& where : configuration.masters) {
        members.push_back(member_name(where));
        const bool own = !where.password.empty();
        out.masters.push_back(
            {own ? where.username : configuration.username,
             own ? where.password : configuration.password,
             where.database,
             configuration.client_name,
             where.tls});
        out.names.push_back(to_string(where));
    }
    if (configuration.protocol == protocol::guarded) {
        out.members = std::move(members);
        out.founds = configuration.founds_quorum;
    }
    out.key_prefix = configuration.key_prefix;
    out.record_key = core::record_key(configuration.key_prefix);
    out.protocol = configuration.protocol;
    const bool recorded = configuration.protocol == protocol::guarded;
    out.max_ttl = recorded ? configuration.max_ttl : max_ttl_of(configuration);
    out.drift = drift_of(configuration);
    out.clock_offset_bound = configuration.clock_offset_bound;
    out.quarantine = configuration.quarantine;
    out.connect_timeout = configuration.connect_timeout;
    out.master_timeout = configuration.master_timeout;
    out.reconnect_delay_min =
        std::max(configuration.reconnect_delay_max / 40, std::chrono::milliseconds(1));
    out.reconnect_delay_max = configuration.reconnect_delay_max;
    out.health_check_interval = configuration.health_check_interval;
    constexpr std::chrono::milliseconds least(100);
    out.fitness_interval = std::min(
        configuration.health_check_interval, std::max(max_ttl_of(configuration) / 10, least));
    out.retry_delay_min = configuration.retry_delay_min;
    out.retry_delay_max = configuration.retry_delay_max;
    out.local_handoff_time = configuration.local_handoff_time;
    out.pushes = configuration.release_notifications;
    out.held_warning = configuration.held_warning;
    out.contention_warning = configuration.contention_warning;
    return out;
}

}}} // namespace redlock::REDLOCK_ABI::detail
