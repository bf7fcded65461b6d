#include "lock_request.hpp"

#include "settings_of.hpp"
#include "value_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

namespace redlock { inline namespace REDLOCK_ABI {
namespace detail {

namespace {

using std::chrono::milliseconds;

// Refuses a value where something else allows only one: "order is 'fifo'; allowed: 'none', with a
// slot".
validation only(
    bool allowed, const char* field, std::string_view value, const char* allows, const char* with) {
    if (allowed) {
        return {};
    }
    return invalid_value{
        field, std::string(value), {}, allows, allows, fmt::format("with {}", with)};
}

invalid_value
not_allowed(milliseconds ttl, const config& config, milliseconds longest, milliseconds needed) {
    // One that the same caller gave, or the longest of all, needs no name.
    const bool known = longest == config.max_ttl || longest == core::ttl_max;
    const char* const limit = ttl <= longest || known                ? ""
                              : config.protocol == protocol::guarded ? "the quorum's max_ttl"
                                                                     : "max_ttl";
    return {"ttl", ttl, {}, needed + milliseconds(1), longest, limit};
}

milliseconds drift_during(milliseconds ttl, const config& config) {
    return std::chrono::ceil<milliseconds>(drift_of(config).of(ttl));
}

validation known_mode(const acquire_options& options) {
    return beyond("mode", options.mode, lock_mode::shared);
}

validation off(bool value, const char* field, const char* with) {
    return only(!value, field, "on", "off", with);
}

// The reason for a refusal that does not depend on the margins.
validation check_ttl(milliseconds ttl, const config& config, milliseconds longest) {
    if (ttl.count() >= 1 && ttl <= longest) {
        return {};
    }
    return not_allowed(ttl, config, longest, drift_during(milliseconds(1), config));
}

validation
check_options(const acquire_options& options, const config& config, milliseconds longest) {
    // One after the other, as each lock passes here.
    if (validation valid = known_mode(options); !valid) {
        return valid;
    }
    if (validation valid = check_ttl(options.ttl, config, longest); !valid) {
        return valid;
    }
    const milliseconds none(0);
    const milliseconds margin = core::chosen_margin_of(options);
    if (validation valid = outside("min_validity", options.min_validity, none, options.ttl);
        !valid) {
        return valid;
    }
    if (validation valid = outside("stop_margin", margin, none, options.ttl); !valid) {
        return valid;
    }
    const milliseconds needed = drift_during(options.ttl, config) + margin + options.min_validity;
    if (options.ttl <= needed) {
        invalid_value out = not_allowed(options.ttl, config, longest, needed);
        std::vector<std::string> with;
        if (options.stop_margin != default_stop_margin) {
            with.push_back(fmt::format("stop_margin {} ms", margin.count()));
        }
        if (options.min_validity > none) {
            with.push_back(fmt::format("min_validity {} ms", options.min_validity.count()));
        }
        if (out.rule.empty() && !with.empty()) {
            out.rule = fmt::format("with {}", fmt::join(with, " and "));
        }
        return out;
    }
    if (options.wait.limit() < none) {
        return invalid_value{"wait", options.wait.limit(), {}, none, {}, {}};
    }
    const bool guarded = config.protocol == protocol::guarded;
    if (options.fencing && !guarded) {
        return against("protocol", "plain", "fencing needs guarded");
    }
    if (options.mode == lock_mode::shared) {
        if (validation valid = first_error(
                {only(guarded, "mode", "shared", "exclusive", "protocol plain"),
                 off(options.fifo, "fifo", "mode shared"),
                 off(options.fencing, "fencing", "mode shared")});
            !valid) {
            return valid;
        }
    }
    acquire_options bounded = options; // the default margin is smaller with a shorter hold
    bounded.max_hold = std::max(options.max_hold, milliseconds(1));
    const auto unusable = std::max(core::stop_margin_of(bounded), options.min_validity);
    if (options.max_hold.count() < 0
        || (options.max_hold.count() > 0 && options.max_hold <= unusable)) {
        return invalid_value{
            "max_hold", options.max_hold, {}, unusable + milliseconds(1), {}, "or 0 for no limit"};
    }
    return {};
}

validation guarded_only(const config& rules, const char* with) {
    return only(
        rules.protocol == protocol::guarded,
        "protocol",
        to_string(rules.protocol),
        "guarded",
        with);
}

validation check_one(const checked_request& wanted) {
    using secret_use = lock_request::secret_use;
    validation valid = check_resource(wanted.resource);
    if (!valid || wanted.uses == secret_use::none) {
        return valid;
    }
    return first_error(
        {check_secret(wanted.secret), exclusive_only(wanted.options, "a secret of your own")});
}

validation check_several(const checked_request& wanted, const config& rules) {
    constexpr const char* with = "several resources";
    return first_error(
        {outside("resources", wanted.resources.size(), "names", 1, resources_max),
         guarded_only(rules, with),
         exclusive_only(wanted.options, with),
         off(wanted.options.fifo, "fifo", with)});
}

// The numbers are those of the caller: before the names are sorted.
validation check_each(const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (const validation valid = check_resource(names[i]); !valid) {
            invalid_value out = valid.error();
            out.field = fmt::format("resources[{}]", i);
            return out;
        }
    }
    return {};
}

// A search reads all slots of the pool, during which a master replies to nothing else. It takes 1
// ms for 512 of them, and a slow machine twice that.
validation check_pool(const free_slots& pool, const config& rules) {
    constexpr std::size_t slots_per_ms = 256;
    const auto in_time = slots_per_ms * static_cast<std::size_t>(rules.master_timeout.count());
    return first_error(
        {check_resource(pool.pool),
         outside("size", pool.size, "", 1, slot_pool_size_max),
         outside("size", pool.size, "", 1, in_time, "256 for each ms of master_timeout")});
}

validation check_slots(const checked_request& wanted, const config& rules) {
    const free_slots& pool = *wanted.pool;
    return first_error(
        {check_pool(pool, rules),
         outside("count", pool.count, "", 1, std::min(pool.size, resources_max)),
         exclusive_only(wanted.options, "a slot"),
         off(wanted.options.fifo, "fifo", "a slot"),
         pool.count > 1 ? guarded_only(rules, "several slots") : validation()});
}

// A list that is refused because it is too long is not named in full.
std::string name_of_resources(const std::vector<std::string>& names) {
    const std::span named = std::span(names).first(std::min(names.size(), resources_max));
    return fmt::format("{}{}", fmt::join(named, ", "), named.size() < names.size() ? ", ..." : "");
}

} // namespace

milliseconds effective_ttl(milliseconds ttl, milliseconds longest) {
    return ttl == default_ttl ? std::min(milliseconds(10'000), longest) : ttl;
}

validation check_extension(milliseconds ttl, const config& config, milliseconds longest) {
    if (validation valid = check_ttl(ttl, config, longest); !valid) {
        return valid; // its drift may be beyond what nanoseconds can hold
    }
    const milliseconds drift = drift_during(ttl, config);
    return ttl > drift ? validation() : not_allowed(ttl, config, longest, drift);
}

validation exclusive_only(const acquire_options& options, const char* with) {
    return first_error(
        {known_mode(options),
         only(
             options.mode == lock_mode::exclusive,
             "mode",
             to_string(options.mode),
             "exclusive",
             with)});
}

validation check_query(const target& asked, const config& rules) {
    const auto& what = target_access::what(asked);
    if (const auto* const pool = std::get_if<free_slots>(&what)) {
        return check_pool(*pool, rules);
    }
    if (const auto* const one = std::get_if<std::string>(&what)) {
        return check_resource(*one);
    }
    const auto& names = std::get<std::vector<std::string>>(what);
    return outside("resources", names.size(), "names", 1, 1);
}

validation checked_request::check(const config& rules, milliseconds longest) {
    if (uses != secret_use::none && options.wait.limit().count() >= 0) {
        options.wait = wait_for::none(); // a secret is good for one attempt
    }
    default_ttl = options.ttl == redlock::default_ttl;
    options.ttl = effective_ttl(options.ttl, longest);
    bool several = false;
    validation names_valid;
    auto& what = target_access::what(wanted);
    if (auto* const one = std::get_if<std::string>(&what)) {
        resource = std::move(*one);
    } else if (auto* const free = std::get_if<free_slots>(&what)) {
        pool = std::move(*free);
        resource = pool->pool;
    } else {
        resources = std::get<std::vector<std::string>>(std::move(what));
        names_valid = check_each(resources);
        std::ranges::sort(resources);
        resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
        several = resources.size() != 1;
        if (several) {
            resource = name_of_resources(resources);
        } else {
            resource = std::move(resources.front());
            resources.clear();
        }
    }
    if (validation valid = !names_valid ? names_valid
                           : pool       ? check_slots(*this, rules)
                           : several    ? check_several(*this, rules)
                                        : check_one(*this);
        !valid) {
        return valid;
    }
    return check_options(options, rules, longest);
}

core::lock_form form_of(const checked_request& wanted) noexcept {
    return !wanted.resources.empty()                  ? core::lock_form::all
           : wanted.options.mode == lock_mode::shared ? core::lock_form::shared
                                                      : core::lock_form::exclusive;
}

std::string name_of_slots(std::string_view pool, const std::vector<std::uint32_t>& numbers) {
    return fmt::format("{}:slot:{}", pool, fmt::join(numbers, ","));
}

validation check(const acquire_options& given, const config& config) {
    acquire_options options = given;
    const std::chrono::milliseconds longest = max_ttl_of(config);
    options.ttl = effective_ttl(given.ttl, longest);
    return check_options(options, config, longest);
}

validation check_resource(std::string_view resource) {
    return outside("resource", resource.size(), "bytes", 1, resource_name_max);
}

validation check_secret(std::string_view secret) {
    constexpr std::size_t digits = 40;
    constexpr const char* rule = "all of them hexadecimal digits in lower case";
    constexpr const char* unit = "characters that are not hexadecimal digits in lower case";
    const auto others = std::ranges::count_if(secret, [](char c) {
        return std::string_view("0123456789abcdef").find(c) == std::string_view::npos;
    });
    return first_error(
        {outside("secret", secret.size(), "characters", digits, digits, rule),
         outside("secret", others, unit, 0, 0)});
}

} // namespace detail

void validate(const acquire_options& options, const config& config) {
    detail::check(options, config).value();
}

}} // namespace redlock::REDLOCK_ABI
