#include "explain.hpp"
#include "settings_of.hpp"
#include "value_checks.hpp"

#include <redlock/config.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace redlock { inline namespace REDLOCK_ABI {
namespace detail {

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

validation check_path(const endpoint& where, const std::string& field) {
    const std::string& path = where.path;
    // sockaddr_un has room for 108 bytes including the final zero.
    return first_error(
        {outside(field, path.size(), "bytes", 1, 107, "as an absolute path"),
         without_nul(field, path),
         require(path.starts_with('/'), field, path, "write an absolute path"),
         require(!where.tls, field, path, "TLS is for TCP only")});
}

validation check_address(const endpoint& where, const std::string& name) {
    return first_error(
        {require(!where.host.empty(), name + ".host", {}, "write a name or an address"),
         outside(name + ".host", where.host.size(), "characters", 1, 255),
         without_nul(name + ".host", where.host),
         outside(name + ".port", where.port, "", 1, 65'535)});
}

validation check_name(const std::string& name, const std::string& field) {
    if (name.size() <= 64 && name.find_first_not_of(name_letters) != std::string::npos) {
        return against(field, name, "allowed: letters, digits, '-', '_' and '.'");
    }
    return name.empty() ? validation() : outside(field, name.size(), "characters", 1, 64);
}

validation
check_user(const std::string& name, const std::string& password, const std::string& field) {
    return first_error(
        {require(name.empty() || !password.empty(), field, name, "a user needs a password"),
         without_nul(field, name)}); // no server has such a user
}

validation check_endpoint(const endpoint& where, const std::string& name) {
    return first_error(
        {where.path.empty() ? check_address(where, name) : check_path(where, name + ".path"),
         outside(name + ".database", where.database, "", 0, 65'535),
         check_user(where.username, where.password, name + ".username"),
         check_name(where.name, name + ".name")});
}

validation check_masters(const std::vector<endpoint>& masters) {
    if (validation valid = outside("masters", masters.size(), "entries", 1, core::masters_max);
        !valid) {
        return valid;
    }
    for (std::size_t i = 0; i < masters.size(); ++i) {
        const std::string name = fmt::format("masters[{}]", i);
        if (validation valid = check_endpoint(masters[i], name); !valid) {
            return valid;
        }
        for (std::size_t j = 0; j < i; ++j) {
            if (same_server(masters[i], masters[j])) {
                return against(
                    name,
                    to_string(masters[i]),
                    fmt::format("masters[{}] is the same server; list each server once", j));
            }
            if (!masters[i].name.empty() && masters[i].name == masters[j].name) {
                return against(
                    name + ".name",
                    masters[i].name,
                    fmt::format("masters[{}] has this name; each master needs its own", j));
            }
        }
    }
    return {};
}

validation check_times(const config& config) {
    constexpr milliseconds none{0};
    constexpr milliseconds low{1};
    constexpr milliseconds high = hours(1);
    return first_error({
        config.max_ttl == none
            ? validation()
            : outside("max_ttl", config.max_ttl, milliseconds(10), core::ttl_max),
        outside("clock_drift_margin", config.clock_drift_margin, none, std::chrono::seconds(10)),
        outside("connect_timeout", config.connect_timeout, low, high),
        outside("master_timeout", config.master_timeout, low, high),
        outside("health_check_interval", config.health_check_interval, low, high),
        outside("reconnect_delay_max", config.reconnect_delay_max, low, high),
        outside("retry_delay_min", config.retry_delay_min, low, high),
        outside(
            "retry_delay_max",
            config.retry_delay_max,
            std::clamp(config.retry_delay_min, low, high),
            high),
        outside("clock_offset_bound", config.clock_offset_bound, none, high),
        outside("held_warning", config.held_warning, none, hours(24)),
        outside("local_handoff_time", config.local_handoff_time, none, high),
    });
}

validation check_client(const config& config) {
    const auto unprintable = [](unsigned char c) { return c <= 0x20 || c > 0x7e; };
    if (std::ranges::any_of(config.client_name, unprintable)) {
        return against(
            "client_name", config.client_name, "use printable ASCII characters without spaces");
    }
    if (config.tls.certificate_file.empty() != config.tls.private_key_file.empty()) {
        return config.tls.private_key_file.empty()
                   ? against("tls.private_key_file", {}, "a certificate needs its private key")
                   : against("tls.certificate_file", {}, "a private key needs its certificate");
    }
    return first_error(
        {without_nul("tls.ca_file", config.tls.ca_file),
         without_nul("tls.certificate_file", config.tls.certificate_file),
         without_nul("tls.private_key_file", config.tls.private_key_file),
         without_nul("tls.server_name", config.tls.server_name),
         without_nul("password_file", config.password_file),
         config.password.empty() || config.password_file.empty()
             ? validation()
             : against("password_file", config.password_file, "set it or the password, not both"),
         check_user(config.username, config.password + config.password_file, "username")});
}

std::string text_of(const setting_value& value) {
    struct {
        std::string operator()(std::monostate) const { return {}; }
        std::string operator()(milliseconds it) const { return fmt::format("{} ms", it.count()); }
        std::string operator()(std::int64_t it) const { return fmt::format("{}", it); }
        std::string operator()(double it) const { return fmt::format("{}", it); }
        std::string operator()(const std::string& it) const {
            return it.empty() ? "empty" : "'" + printable(it) + "'";
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

validation check(const config& config) {
    return first_error(
        {check_masters(config.masters),
         beyond("protocol", config.protocol, protocol::plain),
         beyond("log.level", config.log.level, log_level::off),
         check_times(config),
         outside("clock_drift_factor", config.clock_drift_factor, 0, 0.5),
         outside("key_prefix", config.key_prefix.size(), "bytes", 0, 256),
         check_client(config)});
}

std::string_view unused_tls(const config& config) noexcept {
    const tls_options& it = config.tls;
    const bool says_anything = !it.verify || !it.ca_file.empty() || !it.certificate_file.empty()
                               || !it.server_name.empty();
    return says_anything && std::ranges::none_of(config.masters, &endpoint::tls)
               ? "tls is configured, but no master is rediss://: nothing is encrypted"
               : std::string_view();
}

std::vector<std::string> warnings(const config& config) {
    std::vector<std::string> out;
    const auto warn = [&](bool applies, std::string_view text) {
        if (applies) {
            out.emplace_back(text);
        }
    };
    warn(
        config.masters.size() % 2 == 0,
        "an even number of masters tolerates as many failures as one less: use an odd number");
    const std::string_view tls = unused_tls(config);
    warn(!tls.empty(), tls);
    warn(!config.quarantine, "quarantine is off: a restarted master may grant a lock that is held");
    warn(
        config.master_timeout * 2 > max_ttl_of(config),
        "master_timeout is more than half of max_ttl: a silent master uses up the lease; some "
        "round trips are enough");
    return out;
}

} // namespace detail

void validate(const config& config) {
    detail::check(config).value();
}

}} // namespace redlock::REDLOCK_ABI
