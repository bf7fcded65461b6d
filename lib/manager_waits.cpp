// Waits in the manager's own time, and for news of a lock that nobody here asks for.

#include "core/keys.hpp"
#include "manager_impl.hpp"

#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

std::string manager_impl::key_of(std::string_view resource) const {
    std::string key;
    core::assign_lock_key(key, config_.key_prefix, resource);
    return key;
}

std::uint64_t manager_impl::on_cancel_alarm(handler<error_code>& done) {
    return on_cancel(done, [](manager_impl& me, std::uint64_t id) {
        for (auto at = me.alarms_.begin(); at != me.alarms_.end(); ++at) {
            if (at->second.id == id) {
                auto cancelled = me.alarms_.extract(at);
                std::move(cancelled.mapped().done)(me.io_, aborted);
                return;
            }
        }
    });
}

void manager_impl::set_alarm(
    time_point moment, std::string key, std::uint64_t id, completion<error_code> done) {
    if (engine_.closing()) {
        std::move(done)(io_, errc::closed);
        return;
    }
    alarms_.emplace(moment, alarm{id, std::move(key), std::move(done)});
    after();
}

void manager_impl::ring(time_point now) {
    while (!alarms_.empty() && alarms_.begin()->first <= now) {
        auto due = alarms_.extract(alarms_.begin());
        std::move(due.mapped().done)(io_, error_code());
    }
}

void manager_impl::end_alarms() {
    for (auto& [moment, waiting] : std::exchange(alarms_, {})) {
        std::move(waiting.done)(io_, errc::closed);
    }
}

void manager_impl::wait_until(time_point moment, handler<error_code> done) {
    const auto id = on_cancel_alarm(done);
    completion<error_code> waiting(std::move(done), io_);
    const std::lock_guard lock(guard);
    set_alarm(moment, {}, id, std::move(waiting));
}

void manager_impl::listen(const std::string& resource) {
    const std::lock_guard lock(guard);
    ++hearings_[key_of(resource)].listeners;
    drive([&](time_point now) { engine_.listen(resource, now); });
}

void manager_impl::unlisten(const std::string& resource) {
    const std::lock_guard lock(guard);
    const auto found = hearings_.find(key_of(resource));
    if (--found->second.listeners == 0) {
        hearings_.erase(found);
    }
    drive([&](time_point now) { engine_.unlisten(resource, now); });
}

std::uint64_t manager_impl::hints_of(const std::string& resource) const {
    const std::lock_guard lock(guard);
    return hearings_.find(key_of(resource))->second.hints;
}

void manager_impl::wait_hint(
    const std::string& resource,
    std::uint64_t before,
    time_point moment,
    handler<error_code> done) {
    const auto id = on_cancel_alarm(done);
    completion<error_code> waiting(std::move(done), io_);
    const std::lock_guard lock(guard);
    std::string key = key_of(resource);
    const bool missed = hearings_.find(key)->second.hints != before;
    set_alarm(missed ? time_.now() : moment, std::move(key), id, std::move(waiting));
}

void manager_impl::heard(std::string_view key) {
    if (const auto found = hearings_.find(key); found != hearings_.end()) {
        ++found->second.hints;
    }
    for (auto at = alarms_.begin(); at != alarms_.end();) {
        if (at->second.key == key) {
            auto told = alarms_.extract(at++);
            std::move(told.mapped().done)(io_, error_code());
        } else {
            ++at;
        }
    }
}

}}} // namespace redlock::REDLOCK_ABI::detail
