// Release notifications and their effects.
//
// A release notification never grants anything: it only brings an attempt forward. A waiter without
// notifications still gets the lock, by polling.

#include "decisions.hpp"
#include "engine.hpp"
#include "keys.hpp"

namespace redlock::core {

void engine::open_subscriber(std::size_t master) {
    host_.open(size() + master);
}

void engine::close_subscriber(std::size_t master) {
    host_.close(size() + master);
}

// Returns true if a notification may have been missed.
bool engine::watch(wait_queue& waiters, time_point now) {
    if (!rules_.pushes || waiters.watched || life_ != life::running) {
        return false;
    }
    sender_.write_soon();
    return subscriptions_.watch(waiters, now);
}

void engine::unwatch(wait_queue& waiters, time_point now) {
    if (waiters.watched) {
        subscriptions_.unwatch(waiters, now);
        sender_.write_soon();
    }
}

void engine::listen(std::string_view resource, time_point now) {
    std::string key;
    assign_lock_key(key, rules_.key_prefix, resource);
    if (subscriptions_.listen(key) && rules_.pushes && life_ == life::running) {
        subscriptions_.subscribe(key, now);
        sender_.write_soon();
    }
}

void engine::unlisten(std::string_view resource, time_point now) {
    std::string key;
    assign_lock_key(key, rules_.key_prefix, resource);
    if (subscriptions_.unlisten(key, now)) {
        sender_.write_soon();
    }
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
    if (subscriptions_.has_listener(lock_key)) {
        host_.heard(lock_key);
    }
    for (wait_queue* const one : subscriptions_.waiting_for(lock_key)) {
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
