#include "subscriptions.hpp"

#include "decisions.hpp"
#include "keys.hpp"

#include <utility>

namespace redlock::core {

const std::vector<wait_queue*>& subscriptions::waiting_for(std::string_view lock_key) {
    found_.clear();
    queues_.find_listeners(lock_key, found_);
    return found_;
}

bool subscriptions::watch(wait_queue& waiters, time_point now) {
    found_.clear();
    for_each_lock(waiters.form, waiters.key, [&](std::string_view lock_key) {
        queues_.find_listeners(lock_key, found_);
    });
    bool missed = !found_.empty();
    waiters.watched = true;
    for_each_lock(waiters.form, waiters.key, [&](std::string_view lock_key) {
        missed = missed || has_listener(lock_key);
        if (waiters.form != lock_form::exclusive) {
            queues_.listen(waiters, lock_key);
        }
        subscribe(lock_key, now);
    });
    masters_.refresh_due();
    return missed;
}

void subscriptions::unwatch(wait_queue& waiters, time_point now) {
    if (wrong::subscription_left || !std::exchange(waiters.watched, false)) {
        return;
    }
    for_each_lock(waiters.form, waiters.key, [&](std::string_view lock_key) {
        if (waiters.form != lock_form::exclusive) {
            queues_.unlisten(waiters, lock_key);
        }
        unsubscribe_if_unused(lock_key, now);
    });
    masters_.refresh_due();
}

void subscriptions::unsubscribe_if_unused(std::string_view lock_key, time_point now) {
    if (waiting_for(lock_key).empty() && !has_listener(lock_key)) {
        assign_channel(channel_, lock_key);
        masters_.unwatch(channel_, now);
    }
}

bool subscriptions::listen(std::string_view lock_key) {
    return listened_[std::string(lock_key)]++ == 0;
}

void subscriptions::subscribe(std::string_view lock_key, time_point now) {
    assign_channel(channel_, lock_key);
    masters_.watch(channel_, now); // repeated calls for one channel have no effect
    masters_.refresh_due();
}

bool subscriptions::unlisten(std::string_view lock_key, time_point now) {
    const auto found = listened_.find(lock_key);
    if (found == listened_.end() || --found->second > 0) {
        return false;
    }
    listened_.erase(found);
    unsubscribe_if_unused(lock_key, now);
    masters_.refresh_due();
    return true;
}

} // namespace redlock::core
