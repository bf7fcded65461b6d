// Waits for news of a lock that nobody here asks for.

#include "core/keys.hpp"
#include "manager_impl.hpp"

#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

std::string manager_impl::key_of(std::string_view resource) const {
    std::string key;
    core::assign_lock_key(key, config_.key_prefix, resource);
    return key;
}

void manager_impl::listen(const std::string& resource) {
    const std::lock_guard lock(guard);
    watch_.listen(key_of(resource));
    drive([&](time_point now) { engine_.listen(resource, now); });
}

void manager_impl::unlisten(const std::string& resource) {
    const std::lock_guard lock(guard);
    watch_.unlisten(key_of(resource));
    drive([&](time_point now) { engine_.unlisten(resource, now); });
}

std::uint64_t manager_impl::hints_of(const std::string& resource) const {
    const std::lock_guard lock(guard);
    return watch_.hints_of(key_of(resource));
}

void manager_impl::wait_hint(
    const std::string& resource,
    std::uint64_t before,
    time_point moment,
    handler<error_code> done) {
    const auto id =
        on_cancel(done, [](manager_impl& me, std::uint64_t id) { me.watch_.cancel(id, aborted); });
    completion<error_code> waiting(std::move(done), io_);
    const std::lock_guard lock(guard);
    if (engine_.closing()) {
        std::move(waiting)(io_, errc::closed);
        return;
    }
    watch_.wait(key_of(resource), before, moment, id, std::move(waiting));
    after();
}

void manager_impl::heard(std::string_view key) {
    watch_.hinted(key);
}

}}} // namespace redlock::REDLOCK_ABI::detail
