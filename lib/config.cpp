#include "explain.hpp"
#include "settings_of.hpp"

#include <redlock/config.hpp>
#include <redlock/options.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

using wrong = std::optional<invalid_value>;

setting_value number(std::size_t value) {
    return static_cast<std::int64_t>(value);
}

// Returns nothing if the value is in the range.
wrong outside(std::string_view name, milliseconds value, milliseconds low, milliseconds high) {
    if (value >= low && value <= high) {
        return std::nullopt;
    }
    return invalid_value{std::string(name), value, {}, low, high, {}};
}

wrong against(std::string field, std::string value, std::string rule) {
    return invalid_value{std::move(field), std::move(value), {}, {}, {}, std::move(rule)};
}

wrong wrong_with(const endpoint& where, const std::string& name) {
    if (where.transport == transport::unix_socket) {
        // sockaddr_un has room for 108 bytes including the final zero.
        constexpr std::size_t path_max = 107;
        if (where.path.empty() || where.path.size() > path_max) {
            return invalid_value{
                name + ".path",
                number(where.path.size()),
                "bytes",
                number(1),
                number(path_max),
                "as an absolute path"};
        }
        if (where.path.front() != '/') {
            return against(name + ".path", where.path, "write an absolute path");
        }
    } else if (where.host.empty()) {
        return against(name + ".host", {}, "write a name or an address");
    } else if (constexpr std::size_t host_max = 255; where.host.size() > host_max) {
        return invalid_value{
            name + ".host",
            number(where.host.size()),
            "characters",
            number(1),
            number(host_max),
            {}};
    } else if (where.port == 0) {
        return invalid_value{name + ".port", number(0), {}, number(1), number(65'535), {}};
    }
    if (where.database < 0 || where.database > 65'535) {
        return invalid_value{
            name + ".database", std::int64_t{where.database}, {}, number(0), number(65'535), {}};
    }
    if (!where.username.empty() && where.password.empty()) {
        return against(name + ".username", where.username, "a user needs a password");
    }
    constexpr std::size_t name_max = 64;
    constexpr std::string_view letters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (where.name.size() > name_max) {
        return invalid_value{
            name + ".name",
            number(where.name.size()),
            "characters",
            number(1),
            number(name_max),
            {}};
    }
    if (where.name.find_first_not_of(letters) != std::string::npos) {
        return against(name + ".name", where.name, "allowed: letters, digits, '-', '_' and '.'");
    }
    return std::nullopt;
}

wrong wrong_with_masters(const config& config) {
    constexpr std::size_t masters_max = core::masters_max;
    const auto& masters = config.masters;
    if (masters.empty() || masters.size() > masters_max) {
        return invalid_value{
            "masters", number(masters.size()), "entries", number(1), number(masters_max), {}};
    }
    for (std::size_t i = 0; i < masters.size(); ++i) {
        const std::string name = fmt::format("masters[{}]", i);
        if (auto why = wrong_with(masters[i], name)) {
            return why;
        }
        for (std::size_t j = 0; j < i; ++j) {
            if (detail::same_server(masters[i], masters[j])) {
                return against(
                    name,
                    to_string(masters[i]),
                    fmt::format("entry {} is the same server; list each server once", j + 1));
            }
            if (!masters[i].name.empty() && masters[i].name == masters[j].name) {
                return against(
                    name + ".name",
                    masters[i].name,
                    fmt::format("entry {} has this name; each master needs its own", j + 1));
            }
        }
    }
    return std::nullopt;
}

wrong wrong_with_times(const config& config) {
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

wrong wrong_with_change(const config& config) {
    if (!config.change) {
        return std::nullopt;
    }
    const std::string& master = config.change->master;
    if (config.protocol == protocol::plain) {
        return against("change", master, "only the guarded protocol has members");
    }
    const bool known = std::ranges::any_of(
        config.masters, [&](const endpoint& one) { return detail::member_name(one) == master; });
    if (!known) {
        return against("change.master", master, "it must be in the list of masters, by its name");
    }
    return std::nullopt;
}

wrong wrong_with(const config& config) {
    if (auto why = wrong_with_masters(config)) {
        return why;
    }
    if (auto why = wrong_with_change(config)) {
        return why;
    }
    if (auto why = wrong_with_times(config)) {
        return why;
    }
    if (!(config.clock_drift_factor >= 0 && config.clock_drift_factor <= 0.5)) {
        return invalid_value{"clock_drift_factor", config.clock_drift_factor, {}, 0.0, 0.5, {}};
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
        return invalid_value{
            "key_prefix", number(config.key_prefix.size()), "bytes", number(0), number(256), {}};
    }
    const auto unprintable = [](unsigned char c) { return c <= 0x20 || c > 0x7e; };
    if (std::any_of(config.client_name.begin(), config.client_name.end(), unprintable)) {
        return against(
            "client_name", config.client_name, "use printable ASCII characters without spaces");
    }
    if (config.username.empty() != config.password.empty() && config.password.empty()) {
        return against("username", config.username, "a user needs a password");
    }
    if (config.tls.certificate_file.empty() != config.tls.private_key_file.empty()) {
        return config.tls.private_key_file.empty()
                   ? against("tls.private_key_file", {}, "a certificate needs its private key")
                   : against("tls.certificate_file", {}, "a private key needs its certificate");
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

invalid_value not_allowed(milliseconds ttl, const config& config, milliseconds needed) {
    return {"ttl", ttl, {}, needed + milliseconds(1), config.max_ttl, {}};
}

// The reason for a refusal that does not depend on the margins.
wrong wrong_with_ttl(milliseconds ttl, const config& config) {
    if (ttl.count() >= 1 && ttl <= config.max_ttl) {
        return std::nullopt;
    }
    return not_allowed(
        ttl, config, std::chrono::ceil<milliseconds>(detail::drift_of(config).of(milliseconds(1))));
}

wrong wrong_with(const acquire_options& options, const config& config) {
    if (auto why = wrong_with_ttl(options.ttl, config)) {
        return why;
    }
    if (auto why = outside("min_validity", options.min_validity, milliseconds(0), options.ttl)) {
        return why;
    }
    if (auto why = outside("stop_margin", options.stop_margin, milliseconds(0), options.ttl)) {
        return why;
    }
    const auto drift = std::chrono::ceil<milliseconds>(detail::drift_of(config).of(options.ttl));
    const milliseconds needed = drift + options.stop_margin + options.min_validity;
    if (options.ttl <= needed) {
        return not_allowed(options.ttl, config, needed);
    }
    if (options.wait.limit().count() < 0) {
        return invalid_value{"wait", options.wait.limit(), {}, milliseconds(0), {}, {}};
    }
    if (options.fencing && config.protocol != protocol::guarded) {
        return against(
            "protocol", std::string(to_string(config.protocol)), "fencing needs guarded");
    }
    if (options.mode != lock_mode::exclusive) {
        const std::string mode(to_string(options.mode));
        if (config.protocol != protocol::guarded) {
            return detail::only_with("protocol plain", "mode", mode, "exclusive");
        }
        if (options.order != fairness::none) {
            return detail::only_with("mode " + mode, "order", "fifo", "none");
        }
        if (options.mode == lock_mode::shared && options.fencing) {
            return detail::only_with("mode shared", "fencing", "on", "off");
        }
    }
    const auto unusable = std::max(options.stop_margin, options.min_validity);
    if (options.max_hold.count() < 0
        || (options.max_hold.count() > 0 && options.max_hold <= unusable)) {
        return invalid_value{
            "max_hold", options.max_hold, {}, unusable + milliseconds(1), {}, "or 0 for no limit"};
    }
    return std::nullopt;
}

validation result_of(wrong why) {
    return why ? validation(boost::system::in_place_error, *std::move(why)) : validation();
}

std::string text_of(const setting_value& value) {
    struct {
        std::string operator()(std::monostate) const { return {}; }
        std::string operator()(milliseconds it) const { return fmt::format("{} ms", it.count()); }
        std::string operator()(std::int64_t it) const { return fmt::format("{}", it); }
        std::string operator()(double it) const { return fmt::format("{}", it); }
        std::string operator()(const std::string& it) const {
            return it.empty() ? "empty" : "'" + detail::printable(it) + "'";
        }
    } to_text;
    return std::visit(to_text, value);
}

} // namespace

std::string to_string(const invalid_value& it) {
    const std::string low = text_of(it.minimum);
    const std::string high = text_of(it.maximum);
    const std::string value = text_of(it.value);
    std::string out = it.unit.empty() ? fmt::format("{} is {}", it.field, value)
                                      : fmt::format("{} has {} {}", it.field, value, it.unit);
    if (!low.empty() || !high.empty()) {
        out += "; allowed: "
               + (high.empty()  ? low + " or more"
                  : low == high ? low
                                : fmt::format("{} to {}", low, high));
    }
    if (!it.rule.empty()) {
        out += (low.empty() ? "; " : ", ") + it.rule;
    }
    return out;
}

void throw_exception_from_error(const invalid_value& it, const boost::source_location&) {
    throw std::invalid_argument("redlock: " + to_string(it));
}

validation validate(const config& config) {
    return result_of(wrong_with(config));
}

std::vector<config_warning> warnings(const config& config) {
    std::vector<config_warning> out;
    const auto warn = [&](config_warning what, bool applies) {
        if (applies) {
            out.push_back(what);
        }
    };
    warn(config_warning::even_masters, config.masters.size() % 2 == 0);
    warn(config_warning::tls_unused, says_anything(config.tls) && !uses_tls(config));
    warn(config_warning::quarantine_off, config.quarantine == quarantine::off);
    warn(config_warning::master_timeout_large, config.master_timeout * 2 > config.max_ttl);
    return out;
}

std::string_view to_string(config_warning what) noexcept {
    switch (what) {
    case config_warning::even_masters:
        return "an even number of masters tolerates as many failures as one less: use an odd "
               "number";
    case config_warning::tls_unused:
        return "tls is configured, but no master is rediss://: nothing is encrypted";
    case config_warning::quarantine_off:
        return "quarantine is off: a restarted master may grant a lock that is held";
    case config_warning::master_timeout_large:
        return "master_timeout is more than half of max_ttl: a silent master uses up the lease; "
               "some round trips are enough";
    }
    return "unknown";
}

milliseconds detail::effective_ttl(milliseconds ttl, const config& config) {
    return ttl == default_ttl ? std::min(milliseconds(10'000), config.max_ttl) : ttl;
}

validation validate(const acquire_options& given, const config& config) {
    acquire_options options = given;
    options.ttl = detail::effective_ttl(given.ttl, config);
    return result_of(wrong_with(options, config));
}

validation validate_resource(std::string_view resource) {
    const bool valid = !resource.empty() && resource.size() <= resource_name_max;
    return result_of(
        valid ? wrong()
              : invalid_value{
                  "resource",
                  number(resource.size()),
                  "bytes",
                  number(1),
                  number(resource_name_max),
                  {}});
}

validation validate_token(std::string_view lock_token) {
    constexpr std::size_t digits = 40;
    const bool valid =
        lock_token.size() == digits
        && lock_token.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    return result_of(
        valid ? wrong()
              : invalid_value{
                  "token",
                  number(lock_token.size()),
                  "characters",
                  number(digits),
                  number(digits),
                  "all of them hexadecimal digits in lower case"});
}

namespace detail {

invalid_value
only_with(std::string_view other, std::string field, setting_value value, setting_value allows) {
    return {std::move(field), std::move(value), {}, allows, allows, fmt::format("with {}", other)};
}

validation validate_extension(milliseconds ttl, const config& config) {
    if (auto why = wrong_with_ttl(ttl, config)) {
        return result_of(std::move(why));
    }
    const auto drift = std::chrono::ceil<milliseconds>(detail::drift_of(config).of(ttl));
    return result_of(ttl <= drift ? wrong(not_allowed(ttl, config, drift)) : wrong());
}

} // namespace detail

}} // namespace redlock::REDLOCK_ABI
