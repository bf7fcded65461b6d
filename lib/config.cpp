#include "explain.hpp"
#include "settings_of.hpp"
#include "value_checks.hpp"

#include <redlock/config.hpp>

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

using detail::against;
using detail::outside;
using detail::wrong;

wrong wrong_with_path(const std::string& path, const std::string& field) {
    // sockaddr_un has room for 108 bytes including the final zero.
    if (auto why = outside(field, path.size(), "bytes", 1, 107, "as an absolute path")) {
        return why;
    }
    return path.front() == '/' ? wrong() : against(field, path, "write an absolute path");
}

wrong wrong_with_address(const endpoint& where, const std::string& name) {
    if (where.host.empty()) {
        return against(name + ".host", {}, "write a name or an address");
    }
    if (auto why = outside(name + ".host", where.host.size(), "characters", 1, 255)) {
        return why;
    }
    return outside(name + ".port", where.port, "", 1, 65'535);
}

wrong wrong_with(const endpoint& where, const std::string& name) {
    if (auto why = where.transport == transport::unix_socket
                       ? wrong_with_path(where.path, name + ".path")
                       : wrong_with_address(where, name)) {
        return why;
    }
    if (auto why = outside(name + ".database", where.database, "", 0, 65'535)) {
        return why;
    }
    if (!where.username.empty() && where.password.empty()) {
        return against(name + ".username", where.username, "a user needs a password");
    }
    if (where.name.empty()) {
        return std::nullopt;
    }
    if (auto why = outside(name + ".name", where.name.size(), "characters", 1, 64)) {
        return why;
    }
    constexpr std::string_view letters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    return where.name.find_first_not_of(letters) == std::string::npos
               ? wrong()
               : against(name + ".name", where.name, "allowed: letters, digits, '-', '_' and '.'");
}

wrong wrong_with_masters(const config& config) {
    const auto& masters = config.masters;
    if (auto why = outside("masters", masters.size(), "entries", 1, core::masters_max)) {
        return why;
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
    if (auto why = outside("key_prefix", config.key_prefix.size(), "bytes", 0, 256)) {
        return why;
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
    return detail::validation_of(wrong_with(config));
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

}} // namespace redlock::REDLOCK_ABI
