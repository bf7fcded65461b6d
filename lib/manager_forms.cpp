// The manager's part in the locks that are not of one resource and one holder.

#include "manager_access.hpp"
#include "manager_impl.hpp"

#include <redlock/multi_lock.hpp>
#include <redlock/shared_mutex.hpp>

#include <algorithm>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

namespace {

// Why an acquire of that form is refused; empty if it is not.
std::string why_refused(
    const config& config, const std::vector<std::string>& resources, acquire_options options) {
    std::string reason;
    if (config.protocol != protocol::guarded) {
        return "protocol is plain; allowed for several resources and for readers and writers: "
               "guarded";
    }
    if (options.order != fairness::none) {
        return "order is fifo; allowed for this form of a lock: none";
    }
    if (resources.empty() || resources.size() > multi_lock_max) {
        return std::to_string(resources.size()) + " resources are named; allowed: 1 to "
               + std::to_string(multi_lock_max);
    }
    for (const std::string& resource : resources) {
        if (validate_resource(resource, reason)) {
            return reason;
        }
    }
    validate(options, config, reason);
    return reason;
}

std::string joined(const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& name : names) {
        out.append(out.empty() ? "" : ", ").append(name);
    }
    return out;
}

} // namespace

void manager_impl::acquire_form(
    core::lock_form form,
    std::vector<std::string> resources,
    acquire_options options,
    diagnostics* out,
    handler<error_code, lock> done) {
    std::ranges::sort(resources);
    resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
    const std::lock_guard lock(guard);
    if (const std::string reason = why_refused(config_, resources, options); !reason.empty()) {
        refuse(out, reason, std::move(done));
        return;
    }
    if (form == core::lock_form::shared) {
        options.fencing = false; // it writes nothing
    }
    begin_acquire(
        joined(resources),
        {.options = options, .form = form, .resources = resources},
        out,
        std::move(done));
}

void initiate_acquire_all::start(
    lock_manager& manager,
    std::vector<std::string> resources,
    acquire_options options,
    diagnostics* out,
    boost::asio::any_completion_handler<acquire_all_signature> done) {
    manager_access::impl(manager)->acquire_form(
        core::lock_form::all, std::move(resources), options, out, std::move(done));
}

void initiate_lock_shared::start(
    lock_manager& manager,
    std::string resource,
    bool writes,
    acquire_options options,
    diagnostics* out,
    boost::asio::any_completion_handler<lock_shared_signature> done) {
    manager_access::impl(manager)->acquire_form(
        writes ? core::lock_form::writer : core::lock_form::shared,
        {std::move(resource)},
        options,
        out,
        std::move(done));
}

void initiate_downgrade::start(
    lock_manager& manager,
    const lock& held,
    diagnostics* out,
    boost::asio::any_completion_handler<downgrade_signature> done) {
    const auto& lease = lease_handle::of(held);
    if (const auto owner = lease ? lease->manager.lock() : nullptr) {
        owner->extend(lease, std::nullopt, out, std::move(done));
        return;
    }
    const home io(manager.get_executor());
    completion<error_code>(std::move(done), io)(io, lease ? errc::closed : errc::invalid_argument);
}

}}} // namespace redlock::REDLOCK_ABI::detail
