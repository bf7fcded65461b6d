#include "lock_request.hpp"

#include "settings_of.hpp"

#include <redlock/multi_lock.hpp>

#include <algorithm>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

namespace {

std::string text_of(const validation& found) {
    return found ? std::string() : to_string(found.error());
}

std::string why_not_one(const lock_request& wanted, const config& rules) {
    using token_use = lock_request::token_use;
    for (const validation& found :
         {validate_resource(wanted.resource),
          wanted.uses == token_use::none ? validation() : validate_token(wanted.token),
          validate(wanted.options, rules)}) {
        if (!found) {
            return to_string(found.error());
        }
    }
    if (wanted.uses == token_use::take && wanted.options.wait != wait_for::none()) {
        return "your own token allows one attempt; allowed for wait: none()";
    }
    return {};
}

std::string why_not_form(const lock_request& wanted, const config& rules) {
    if (rules.protocol != protocol::guarded) {
        return "protocol is plain; allowed for several resources and for readers and writers: "
               "guarded";
    }
    if (wanted.options.order != fairness::none) {
        return "order is fifo; allowed for this form of a lock: none";
    }
    if (wanted.resources.empty() || wanted.resources.size() > multi_lock_max) {
        return std::to_string(wanted.resources.size()) + " resources are named; allowed: 1 to "
               + std::to_string(multi_lock_max);
    }
    for (const std::string& resource : wanted.resources) {
        if (const validation found = validate_resource(resource); !found) {
            return to_string(found.error());
        }
    }
    return text_of(validate(wanted.options, rules));
}

std::string why_not_slots(const lock_request& wanted, const config& rules) {
    const std::size_t most = std::min<std::size_t>(wanted.slots, multi_lock_max);
    if (wanted.options.order != fairness::none) {
        return "order is fifo; allowed for a slot: none";
    }
    if (wanted.wants < 1 || wanted.wants > most) {
        return std::to_string(wanted.wants) + " slots are wanted; allowed: 1 to "
               + std::to_string(most);
    }
    if (wanted.wants > 1 && rules.protocol != protocol::guarded) {
        return "protocol is plain; allowed for several slots at once: guarded";
    }
    return text_of(validate(wanted.options, rules));
}

} // namespace

std::string lock_request::check(const config& rules) {
    options.ttl = effective_ttl(options.ttl, rules);
    if (slots > 0) {
        return why_not_slots(*this, rules);
    }
    if (form == core::lock_form::exclusive) {
        return why_not_one(*this, rules);
    }
    std::ranges::sort(resources);
    resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
    std::string reason = why_not_form(*this, rules);
    if (reason.empty()) {
        for (const std::string& one : resources) {
            resource.append(resource.empty() ? "" : ", ").append(one);
        }
        if (form == core::lock_form::shared) {
            options.fencing = false; // it writes nothing
        }
    }
    return reason;
}

std::string name_of_slots(const std::string& pool, const std::vector<std::uint32_t>& numbers) {
    std::string name = pool + ":slot:";
    for (const std::uint32_t one : numbers) {
        name.append(name.back() == ':' ? "" : ",").append(std::to_string(one));
    }
    return name;
}

}}} // namespace redlock::REDLOCK_ABI::detail
