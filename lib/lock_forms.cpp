// The functions of the public headers for locks of several resources, and of readers and writers.

#include "lease_handle.hpp"
#include "manager_impl.hpp"

#include <redlock/multi_lock.hpp>
#include <redlock/shared_mutex.hpp>

#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

void start_acquire_all(
    const manager_ptr& manager,
    std::vector<std::string> resources,
    acquire_options options,
    diagnostics_sink sink,
    boost::asio::any_completion_handler<void(error_code, lock)> done) {
    manager->acquire(
        {.options = options, .form = core::lock_form::all, .resources = std::move(resources)},
        sink,
        std::move(done));
}

void start_lock_shared(
    const manager_ptr& manager,
    std::string resource,
    bool writes,
    acquire_options options,
    diagnostics_sink sink,
    boost::asio::any_completion_handler<void(error_code, lock)> done) {
    manager->acquire(
        {.options = options,
         .form = writes ? core::lock_form::writer : core::lock_form::shared,
         .resources = {std::move(resource)}},
        sink,
        std::move(done));
}

void start_downgrade(
    const manager_ptr& manager,
    const lock* held,
    diagnostics_sink sink,
    boost::asio::any_completion_handler<void(error_code)> done) {
    const auto& lease = lease_handle::of(*held);
    if (const auto owner = lease ? lease->manager() : nullptr) {
        owner->leases().extend(lease, std::nullopt, sink, std::move(done));
        return;
    }
    const home& io = manager->io();
    completion<error_code>(std::move(done), io)(io, lease ? errc::closed : errc::invalid_argument);
}

}}} // namespace redlock::REDLOCK_ABI::detail
