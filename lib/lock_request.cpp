#include "lock_request.hpp"

#include "settings_of.hpp"

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <utility>
#include <variant>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

namespace {

setting_value number(std::size_t value) {
    return static_cast<std::int64_t>(value);
}

validation in_range(const char* field, const char* unit, std::size_t value, std::size_t high) {
    if (value >= 1 && value <= high) {
        return {};
    }
    return {
        boost::system::in_place_error,
        invalid_value{field, number(value), unit, number(1), number(high), {}}};
}

validation in_time(bool allowed, const acquire_options& options, const char* with) {
    if (allowed) {
        return {};
    }
    setting_value value = options.wait.limit();
    if (options.wait == wait_for::forever()) {
        value = std::string("forever");
    }
    return {
        boost::system::in_place_error,
        only_with(with, "wait", std::move(value), std::chrono::milliseconds(0))};
}

validation only(
    bool allowed, const char* field, std::string_view value, const char* allows, const char* with) {
    return allowed ? validation()
                   : validation(
                       boost::system::in_place_error,
                       only_with(with, field, std::string(value), std::string(allows)));
}

validation guarded_only(const config& rules, const char* with) {
    return only(
        rules.protocol == protocol::guarded,
        "protocol",
        to_string(rules.protocol),
        "guarded",
        with);
}

validation unordered(const acquire_options& options, const char* with) {
    return only(options.order == fairness::none, "order", "fifo", "none", with);
}

validation first_error(std::initializer_list<validation> of) {
    const auto* const found =
        std::find_if(of.begin(), of.end(), [](const auto& one) { return !one; });
    return found == of.end() ? validation() : *found;
}

validation check_one(const lock_request& wanted) {
    using token_use = lock_request::token_use;
    validation valid = validate_resource(wanted.resource);
    if (!valid || wanted.uses == token_use::none) {
        return valid;
    }
    constexpr const char* with = "a token of your own";
    const bool once = wanted.uses == token_use::attach || wanted.options.wait == wait_for::none();
    return first_error(
        {validate_token(wanted.token),
         exclusive_only(wanted.options, with),
         in_time(once, wanted.options, with)});
}

validation check_several(const lock_request& wanted, const config& rules) {
    constexpr const char* with = "several resources";
    if (validation valid = first_error(
            {in_range("resources", "names", wanted.resources.size(), resources_max),
             guarded_only(rules, with),
             unordered(wanted.options, with),
             exclusive_only(wanted.options, with)});
        !valid) {
        return valid;
    }
    for (const std::string& resource : wanted.resources) {
        if (validation valid = validate_resource(resource); !valid) {
            return valid;
        }
    }
    return {};
}

validation check_slots(const lock_request& wanted, const config& rules) {
    const std::size_t size = *wanted.pool_size;
    return first_error(
        {validate_pool(wanted.resource, size),
         in_range("count", "", wanted.wants, std::min(size, resources_max)),
         unordered(wanted.options, "a slot"),
         exclusive_only(wanted.options, "a slot"),
         wanted.wants > 1 ? guarded_only(rules, "several slots") : validation()});
}

// A list that is refused because it is too long is not named in full.
std::string name_of_resources(const std::vector<std::string>& names) {
    std::string name;
    for (std::size_t i = 0; i < names.size(); ++i) {
        name.append(i == 0 ? "" : ", ");
        if (i == resources_max) {
            return name.append("...");
        }
        name.append(names[i]);
    }
    return name;
}

} // namespace

validation exclusive_only(const acquire_options& options, const char* with) {
    return only(
        options.mode == lock_mode::exclusive, "mode", to_string(options.mode), "exclusive", with);
}

validation validate_pool(std::string_view pool, std::size_t size) {
    return first_error({validate_resource(pool), in_range("size", "", size, slot_pool_size_max)});
}

validation lock_request::check(const config& rules) {
    options.ttl = effective_ttl(options.ttl, rules);
    bool several = false;
    if (auto* const one = std::get_if<std::string>(&names.value)) {
        resource = std::move(*one);
    } else {
        resources = std::get<std::vector<std::string>>(std::move(names.value));
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
    if (validation valid = pool_size ? check_slots(*this, rules)
                           : several ? check_several(*this, rules)
                                     : check_one(*this);
        !valid) {
        return valid;
    }
    return validate(options, rules);
}

core::lock_form lock_request::form() const noexcept {
    return !resources.empty()                  ? core::lock_form::all
           : options.mode == lock_mode::shared ? core::lock_form::shared
           : options.mode == lock_mode::writer ? core::lock_form::writer
                                               : core::lock_form::exclusive;
}

std::string name_of_slots(const std::string& pool, const std::vector<std::uint32_t>& numbers) {
    std::string name = pool + ":slot:";
    for (const std::uint32_t one : numbers) {
        name.append(name.back() == ':' ? "" : ",").append(std::to_string(one));
    }
    return name;
}

}}} // namespace redlock::REDLOCK_ABI::detail
