#include "release_watch.hpp"

#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

void release_watch::unlisten(const std::string& key) {
    const auto found = heard_.find(key);
    if (--found->second.listeners == 0) {
        heard_.erase(found);
    }
}

void release_watch::wait(
    const std::string& key,
    std::uint64_t before,
    time_point moment,
    std::uint64_t id,
    completion<error_code>&& done) {
    if (notifications_of(key) != before) {
        std::move(done)(io_, error_code());
        return;
    }
    waiting_.emplace(moment, waiter{id, key, std::move(done)});
}

template <typename F>
void release_watch::complete_if(F f, const error_code& error) {
    for (auto at = waiting_.begin(); at != waiting_.end();) {
        if (f(at->second)) {
            auto chosen = waiting_.extract(at++);
            std::move(chosen.mapped().done)(io_, error);
        } else {
            ++at;
        }
    }
}

void release_watch::cancel(std::uint64_t id, const error_code& error) {
    complete_if([id](const waiter& one) { return one.id == id; }, error);
}

void release_watch::release_notified(std::string_view key) {
    const auto found = heard_.find(key);
    if (found == heard_.end()) {
        return;
    }
    ++found->second.notifications;
    complete_if([key](const waiter& one) { return one.key == key; }, error_code());
}

void release_watch::time_passed(time_point now) {
    while (!waiting_.empty() && waiting_.begin()->first <= now) {
        auto due = waiting_.extract(waiting_.begin());
        std::move(due.mapped().done)(io_, error_code());
    }
}

void release_watch::end(const error_code& error) {
    complete_if([](const waiter&) { return true; }, error);
}

}}} // namespace redlock::REDLOCK_ABI::detail
