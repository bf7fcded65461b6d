// Release notifications and their effects.
//
// A release notification never grants anything: it only brings an attempt forward. A waiter without
// notifications still gets the lock, by polling.

#include "decisions.hpp"
#include "engine.hpp"
#include "keys.hpp"

namespace redlock::core {

namespace {

// The locks that a wait queue waits for.
template <typename F>
void for_each_lock(const wait_queue& waiters, F f) {
    if (waiters.form != lock_form::all) {
        f(waiters.key);
        return;
    }
    bool is_lock = true; // keys alternate: lock, fencing counter
    for_each_packed(waiters.key, [&](std::string_view key) {
        if (is_lock) {
            f(key);
        }
        is_lock = !is_lock;
    });
}

} // namespace

void engine::open_subscriber(std::size_t master) {
    host_.open(size() + master);
}

void engine::close_subscriber(std::size_t master) {
    host_.close(size() + master);
}

// Subscribes for a wait queue. Returns true if the channel was subscribed already: then no
// confirmation follows, and a notification may have been missed.
bool engine::watch(wait_queue& waiters, time_point now) {
    if (!rules_.pushes || waiters.watched || life_ != life::running) {
        return false;
    }
    notified_.clear();
    for_each_lock(
        waiters, [&](std::string_view lock_key) { queues_.find_listeners(lock_key, notified_); });
    bool missed = !notified_.empty();
    waiters.watched = true;
    for_each_lock(waiters, [&](std::string_view lock_key) {
        missed = missed || listened_.contains(lock_key);
        if (waiters.form != lock_form::exclusive) {
            queues_.listen(waiters, lock_key);
        }
        assign_channel(watched_, lock_key);
        masters_.watch(watched_, now);
    });
    masters_.refresh_due();
    sender_.write_soon();
    return missed;
}

void engine::unwatch(wait_queue& waiters, time_point now) {
    if (wrong::subscription_left || !std::exchange(waiters.watched, false)) {
        return;
    }
    for_each_lock(waiters, [&](std::string_view lock_key) {
        if (waiters.form != lock_form::exclusive) {
            queues_.unlisten(waiters, lock_key);
        }
        unsubscribe_if_unused(lock_key, now);
    });
    masters_.refresh_due();
    sender_.write_soon();
}

void engine::unsubscribe_if_unused(std::string_view lock_key, time_point now) {
    notified_.clear();
    queues_.find_listeners(lock_key, notified_);
    if (!notified_.empty() || listened_.contains(lock_key)) {
        return; // others are still subscribed
    }
    assign_channel(watched_, lock_key);
    masters_.unwatch(watched_, now);
}

void engine::listen(std::string_view resource, time_point now) {
    std::string key;
    assign_lock_key(key, rules_.key_prefix, resource);
    if (listened_[key]++ == 0 && rules_.pushes && life_ == life::running) {
        assign_channel(watched_, key);
        masters_.watch(watched_, now); // repeated calls for one channel have no effect
        masters_.refresh_due();
        sender_.write_soon();
    }
}

void engine::unlisten(std::string_view resource, time_point now) {
    std::string key;
    assign_lock_key(key, rules_.key_prefix, resource);
    const auto found = listened_.find(key);
    if (found == listened_.end() || --found->second > 0) {
        return;
    }
    listened_.erase(found);
    unsubscribe_if_unused(key, now);
    masters_.refresh_due();
    sender_.write_soon();
}

void engine::publish_refused(std::size_t master, time_point now) {
    if (host_.logs(log_level::warning)) {
        host_.log(
            log_level::warning,
            rules_.names[master]
                + ": PUBLISH is refused, so releases notify no waiter and waiters poll: "
                + masters_[master].link->unpublished()
                + "; the ACL must allow +publish and the channels &" + rules_.key_prefix + "*");
    }
    notifications_changed(now);
}

void engine::notifications_changed(time_point now) {
    if (masters_.lost_notifications()) {
        poll_again(now);
    }
}

// `release` was announced by a master; if it is empty, a release may have been missed.
void engine::release_notified(
    std::size_t master, std::string_view channel, std::string_view release, time_point now) {
    const std::string_view lock_key = lock_of_channel(channel);
    if (listened_.contains(lock_key)) {
        host_.heard(lock_key);
    }
    notified_.clear();
    queues_.find_listeners(lock_key, notified_);
    for (wait_queue* const one : notified_) {
        if (!one->empty()) {
            notify(*one, master, release, now);
        }
    }
}

void engine::notify(
    wait_queue& mine, std::size_t master, std::string_view release, time_point now) {
    operation& next = *front_of(mine);
    const claim* const attempt = claims_.find(next.attempt);
    const bool granted = attempt != nullptr && attempt->votes.of[master].said == vote::granted;
    const time_point due = mine.notified(master, release, granted, view_of(mine, now));
    if (wrong::notification_is_grant && due != forever && mine.acts()) {
        claim& given = new_claim(next, now);
        next.attempt = given.self;
        for (ballot& one : given.votes.of) {
            one.asked = true;
            one.confirm(guaranteed_until(now, given.ttl, rules_.drift));
        }
        win(next, given, now);
        return;
    }
    wake(mine, due);
}

} // namespace redlock::core
