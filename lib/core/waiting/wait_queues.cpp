#include "wait_queues.hpp"

#include "core/base/decisions.hpp"
#include "core/bytes/keys.hpp"

#include <algorithm>
#include <iterator>

namespace redlock::core {

void wait_queues::find_watching(std::string_view lock_key) {
    if (wait_queue* const own = find(lock_form::exclusive, lock_key);
        own != nullptr && own->watched) {
        found_.push_back(own);
    }
    if (!watching_.empty()) {
        const auto [first, last] = watching_.equal_range(std::string(lock_key));
        std::transform(first, last, std::back_inserter(found_), [this](const auto& one) {
            return find(one.second);
        });
    }
}

bool wait_queues::watch(wait_queue& waiters, time_point now) {
    found_.clear();
    for_each_lock(
        waiters.form, waiters.key, [&](std::string_view lock_key) { find_watching(lock_key); });
    bool missed = !found_.empty();
    waiters.watched = true;
    for_each_lock(waiters.form, waiters.key, [&](std::string_view lock_key) {
        missed = missed || has_listener(lock_key);
        if (waiters.form != lock_form::exclusive) {
            watching_.emplace(lock_key, waiters.self);
        }
        subscribe(lock_key, now);
    });
    masters_.refresh_due();
    return missed;
}

void wait_queues::unwatch(wait_queue& waiters, time_point now) {
    if (wrong::subscription_left || !std::exchange(waiters.watched, false)) {
        return;
    }
    for_each_lock(waiters.form, waiters.key, [&](std::string_view lock_key) {
        if (waiters.form != lock_form::exclusive) {
            const auto [first, last] = watching_.equal_range(std::string(lock_key));
            watching_.erase(std::find_if(
                first, last, [&](const auto& one) { return one.second == waiters.self; }));
        }
        unsubscribe_if_unused(lock_key, now);
    });
    masters_.refresh_due();
}

void wait_queues::unsubscribe_if_unused(std::string_view lock_key, time_point now) {
    if (waiting_for(lock_key).empty() && !has_listener(lock_key)) {
        assign_channel(channel_, lock_key);
        for (master& one : masters_) {
            one.pushes->unwatch(channel_, now);
        }
    }
}

void wait_queues::subscribe(std::string_view lock_key, time_point now) {
    assign_channel(channel_, lock_key);
    for (master& one : masters_) {
        one.pushes->watch(channel_, now); // repeated calls for one channel have no effect
    }
    masters_.refresh_due();
}

void wait_queues::unlisten(std::string_view lock_key, time_point now) {
    const auto found = listened_.find(lock_key);
    if (found == listened_.end() || --found->second > 0) {
        return;
    }
    listened_.erase(found);
    unsubscribe_if_unused(lock_key, now);
    masters_.refresh_due();
}

} // namespace redlock::core
