#include "core/keys.hpp"
#include "settings_of.hpp"

#include <redlock/config.hpp>
#include <redlock/options.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace redlock { inline namespace REDLOCK_ABI {

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// Returns "name is 5ms; allowed: 10ms to 24h", or an empty string if the value is valid.
std::optional<std::string>
outside(std::string_view name, milliseconds value, milliseconds low, milliseconds high) {
    if (value >= low && value <= high) {
        return std::nullopt;
    }
    return fmt::format(
        "{} is {} ms; allowed: {} ms to {} ms", name, value.count(), low.count(), high.count());
}

std::optional<std::string> wrong_with(const endpoint& where) {
    const std::string name = to_string(where);
    if (where.transport == transport::unix_socket) {
        // sockaddr_un has room for 108 bytes including the final zero.
        if (where.path.empty() || where.path.front() != '/' || where.path.size() > 107) {
            return fmt::format(
                "master '{}': the path of the Unix socket has {} bytes; allowed: an absolute "
                "path of at most 107 bytes",
                name,
                where.path.size());
        }
    } else if (where.host.empty()) {
        return fmt::format("master '{}': the host is missing", name);
    } else if (where.port == 0) {
        return fmt::format("master '{}': port 0; allowed: 1 to 65535", name);
    }
    if (where.database < 0 || where.database > 65'535) {
        return fmt::format("master '{}': database {}; allowed: 0 to 65535", name, where.database);
    }
    if (!where.username.empty() && where.password.empty()) {
        return fmt::format("master '{}': user '{}' without a password", name, where.username);
    }
    return std::nullopt;
}

std::optional<std::string> wrong_with_masters(const config& config) {
    constexpr std::size_t masters_max = core::masters_max;
    const auto& masters = config.masters;
    if (masters.empty() || masters.size() > masters_max) {
        return fmt::format("{} masters configured; allowed: 1 to {}", masters.size(), masters_max);
    }
    for (std::size_t i = 0; i < masters.size(); ++i) {
        if (auto why = wrong_with(masters[i])) {
            return why;
        }
        for (std::size_t j = 0; j < i; ++j) {
            if (detail::same_server(masters[i], masters[j])) {
                return fmt::format(
                    "masters {} and {} are one server, '{}'; list each server once",
                    j + 1,
                    i + 1,
                    to_string(masters[i]));
            }
        }
    }
    return std::nullopt;
}

std::optional<std::string> wrong_with_times(const config& config) {
    constexpr milliseconds low{1};
    constexpr milliseconds high = hours(1);
    if (auto why = outside("max_ttl", config.max_ttl, milliseconds(10), hours(24))) {
        return why;
    }
    if (auto why = outside(
            "clock_drift_margin",
            config.clock_drift_margin,
            milliseconds(0),
            std::chrono::seconds(10))) {
        return why;
    }
    const struct {
        const char* name;
        milliseconds value;
        milliseconds from;
    } times[] = {
        {"connect_timeout", config.connect_timeout, low},
        {"master_timeout", config.master_timeout, low},
        {"health_check_interval", config.health_check_interval, low},
        {"reconnect_delay_min", config.reconnect_delay_min, low},
        {"reconnect_delay_max",
         config.reconnect_delay_max,
         std::clamp(config.reconnect_delay_min, low, high)},
        {"retry_delay_min", config.retry_delay_min, low},
        {"retry_delay_max", config.retry_delay_max, std::clamp(config.retry_delay_min, low, high)},
    };
    for (const auto& one : times) {
        if (auto why = outside(one.name, one.value, one.from, high)) {
            return why;
        }
    }
    return std::nullopt;
}

std::optional<std::string> wrong_with(const config& config) {
    if (auto why = wrong_with_masters(config)) {
        return why;
    }
    if (auto why = wrong_with_times(config)) {
        return why;
    }
    if (!(config.clock_drift_factor >= 0 && config.clock_drift_factor <= 0.5)) {
        return fmt::format(
            "clock_drift_factor is {}; allowed: 0 to 0.5", config.clock_drift_factor);
    }
    if (auto why =
            outside("clock_offset_bound", config.clock_offset_bound, milliseconds(0), hours(1))) {
        return why;
    }
    if (auto why = outside("held_warning", config.held_warning, milliseconds(0), hours(24))) {
        return why;
    }
    if (auto why =
            outside("local_handoff_time", config.local_handoff_time, milliseconds(0), hours(1))) {
        return why;
    }
    if (config.key_prefix.size() > 256) {
        return fmt::format(
            "key_prefix has {} bytes; allowed: at most 256", config.key_prefix.size());
    }
    const auto unprintable = [](unsigned char c) { return c <= 0x20 || c > 0x7e; };
    if (std::any_of(config.client_name.begin(), config.client_name.end(), unprintable)) {
        return "client_name has a space or a character that is not printable ASCII";
    }
    if (config.username.empty() != config.password.empty() && config.password.empty()) {
        return fmt::format("user '{}' without a password", config.username);
    }
    if (config.tls.certificate_file.empty() != config.tls.private_key_file.empty()) {
        return "tls: certificate_file and private_key_file go together; one of them is empty";
    }
    return std::nullopt;
}

bool says_anything(const tls_options& it) {
    return !it.verify || !it.ca_file.empty() || !it.certificate_file.empty()
           || !it.server_name.empty();
}

bool uses_tls(const config& config) {
    return std::any_of(config.masters.begin(), config.masters.end(), [](const endpoint& one) {
        return one.transport == transport::tls;
    });
}

core::drift_bound drift_of(const config& config) {
    return {config.clock_drift_factor, config.clock_drift_margin};
}

std::string
not_allowed(milliseconds ttl, const config& config, std::string_view parts, milliseconds needed) {
    return fmt::format(
        "ttl is {} ms; allowed: more than {} ms (clock drift{}) to max_ttl, {} ms",
        ttl.count(),
        needed.count(),
        parts,
        config.max_ttl.count());
}

// The reason for a refusal that does not depend on the margins.
std::optional<std::string> wrong_with_ttl(milliseconds ttl, const config& config) {
    if (ttl.count() >= 1 && ttl <= config.max_ttl) {
        return std::nullopt;
    }
    return not_allowed(
        ttl, config, "", std::chrono::ceil<milliseconds>(drift_of(config).of(milliseconds(1))));
}

} // namespace

error_code validate(const config& config, std::string& reason) {
    reason.clear();
    if (auto why = wrong_with(config)) {
        reason = std::move(*why);
        return errc::invalid_config;
    }
    const std::size_t n = config.masters.size();
    const auto warn = [&](const std::string& text) {
        reason += reason.empty() ? text : "\n" + text;
    };
    if (n % 2 == 0) {
        warn(
            fmt::format("{} masters tolerate as many failures as {}: use an odd number", n, n - 1));
    }
    if (says_anything(config.tls) && !uses_tls(config)) {
        warn("tls is configured, but no master is rediss://: nothing is encrypted");
    }
    if (config.quarantine == quarantine::off) {
        warn("quarantine is off: a restarted master may grant a lock that is held");
    }
    if (config.master_timeout * 2 > config.max_ttl) {
        warn(fmt::format(
            "master_timeout, {} ms, is large against max_ttl, {} ms: a silent master "
            "uses up the lease; some round trips are enough",
            config.master_timeout.count(),
            config.max_ttl.count()));
    }
    return {};
}

milliseconds detail::effective_ttl(milliseconds ttl, const config& config) {
    return ttl == default_ttl ? std::min(milliseconds(10'000), config.max_ttl) : ttl;
}

error_code validate(const acquire_options& given, const config& config, std::string& reason) {
    reason.clear();
    acquire_options options = given;
    options.ttl = detail::effective_ttl(given.ttl, config);
    const auto refuse = [&](std::string why) {
        reason = std::move(why);
        return errc::invalid_argument;
    };
    if (auto why = wrong_with_ttl(options.ttl, config)) {
        return refuse(std::move(*why));
    }
    if (auto why = outside("min_validity", options.min_validity, milliseconds(0), options.ttl)) {
        return refuse(std::move(*why));
    }
    if (auto why = outside("stop_margin", options.stop_margin, milliseconds(0), options.ttl)) {
        return refuse(std::move(*why));
    }
    const auto drift = std::chrono::ceil<milliseconds>(drift_of(config).of(options.ttl));
    const milliseconds needed = drift + options.stop_margin + options.min_validity;
    if (options.ttl <= needed) {
        return refuse(
            not_allowed(options.ttl, config, " plus stop_margin plus min_validity", needed));
    }
    if (options.wait.limit().count() < 0) {
        return refuse(
            fmt::format("wait is {} ms; allowed: 0 ms or more", options.wait.limit().count()));
    }
    if (options.fencing && config.protocol != protocol::guarded) {
        return refuse(fmt::format(
            "protocol is {}; allowed with fencing: guarded", to_string(config.protocol)));
    }
    if (options.max_hold.count() < 0
        || (options.max_hold.count() > 0 && options.max_hold <= options.stop_margin)) {
        return refuse(fmt::format(
            "max_hold is {} ms; allowed: 0 ms (unbounded), or more than "
            "stop_margin, {} ms",
            options.max_hold.count(),
            options.stop_margin.count()));
    }
    return {};
}

error_code validate_resource(std::string_view resource, std::string& reason) {
    reason.clear();
    if (!resource.empty() && resource.size() <= resource_name_max) {
        return {};
    }
    reason =
        resource.empty()
            ? fmt::format("the resource's name is empty; allowed: 1 to {} bytes", resource_name_max)
            : fmt::format(
                "the resource's name has {} bytes; allowed: 1 to {}",
                resource.size(),
                resource_name_max);
    return errc::invalid_argument;
}

error_code validate_token(std::string_view lock_token, std::string& reason) {
    reason.clear();
    const bool digits = lock_token.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    if (lock_token.size() == 40 && digits) {
        return {};
    }
    reason = fmt::format(
        "the token has {} characters{}; allowed: 40 hexadecimal digits in lower case",
        lock_token.size(),
        digits ? "" : ", not all of them digits");
    return errc::invalid_argument;
}

namespace detail {

bool same_server(const endpoint& a, const endpoint& b) {
    if (a.transport == transport::unix_socket || b.transport == transport::unix_socket) {
        return a.transport == b.transport && a.path == b.path;
    }
    return a.host == b.host && a.port == b.port;
}

error_code validate_extension(milliseconds ttl, const config& config, std::string& reason) {
    reason.clear();
    if (auto why = wrong_with_ttl(ttl, config)) {
        reason = std::move(*why);
        return errc::invalid_argument;
    }
    const auto drift = std::chrono::ceil<milliseconds>(drift_of(config).of(ttl));
    if (ttl <= drift) {
        reason = not_allowed(ttl, config, "", drift);
        return errc::invalid_argument;
    }
    return {};
}

core::settings settings_of(const config& configuration) {
    core::settings out;
    for (const endpoint& where : configuration.masters) {
        const bool own = !where.password.empty();
        out.masters.push_back(
            {own ? where.username : configuration.username,
             own ? where.password : configuration.password,
             where.database,
             configuration.client_name});
        out.names.push_back(to_string(where));
    }
    out.key_prefix = configuration.key_prefix;
    out.epoch_key = core::epoch_key(configuration.key_prefix);
    out.protocol = configuration.protocol;
    out.max_ttl = configuration.max_ttl;
    out.drift = drift_of(configuration);
    out.clock_offset_bound = configuration.clock_offset_bound;
    out.quarantine = configuration.quarantine == quarantine::on;
    out.connect_timeout = configuration.connect_timeout;
    out.master_timeout = configuration.master_timeout;
    out.reconnect_delay_min = configuration.reconnect_delay_min;
    out.reconnect_delay_max = configuration.reconnect_delay_max;
    out.health_check_interval = configuration.health_check_interval;
    out.retry_delay_min = configuration.retry_delay_min;
    out.retry_delay_max = configuration.retry_delay_max;
    out.local_handoff_time = configuration.local_handoff_time;
    out.pushes = configuration.release_notifications == release_notifications::on;
    out.held_warning = configuration.held_warning;
    out.contention_warning = configuration.contention_warning;
    return out;
}

} // namespace detail

}} // namespace redlock::REDLOCK_ABI
