// Hints that a lock may be free: what the push connections tell, and what comes of it.
//
// A hint is never a permission: it only brings an attempt forward. A waiter that hears none still
// gets the lock, by asking again.

#include "decisions.hpp"
#include "engine.hpp"
#include "keys.hpp"

#include <bit>

namespace redlock::core {

namespace {

// The locks that a line waits for.
template <typename F>
void for_each_lock(const line& waiters, F f) {
    if (waiters.form != lock_form::all) {
        f(waiters.key);
        return;
    }
    bool is_lock = true; // lock and fence in turn
    for_each_packed(waiters.key, [&](std::string_view key) {
        if (is_lock) {
            f(key);
        }
        is_lock = !is_lock;
    });
}

} // namespace

void engine::open_pushes(std::size_t master) {
    host_.open(size() + master);
}

void engine::close_pushes(std::size_t master) {
    host_.close(size() + master);
}

// True where somebody else has listened before: what it was told, this one has missed, and no
// confirmation of a subscription will say so.
bool engine::watch(line& waiters, time_point now) {
    if (!rules_.pushes || waiters.watched || life_ != life::running) {
        return false;
    }
    hinted_.clear();
    for_each_lock(
        waiters, [&](std::string_view lock_key) { lines_.find_listeners(lock_key, hinted_); });
    bool missed = !hinted_.empty();
    waiters.watched = true;
    for_each_lock(waiters, [&](std::string_view lock_key) {
        missed = missed || listened_.contains(lock_key);
        if (waiters.form != lock_form::exclusive) {
            lines_.listen(waiters, lock_key);
        }
        assign_channel(watched_, lock_key);
        masters_.watch(watched_, now);
    });
    masters_.refresh_due();
    wants_write_ = true;
    return missed;
}

void engine::unwatch(line& waiters, time_point now) {
    if (wrong::listens_for_ever || !std::exchange(waiters.watched, false)) {
        return;
    }
    for_each_lock(waiters, [&](std::string_view lock_key) {
        if (waiters.form != lock_form::exclusive) {
            lines_.unlisten(waiters, lock_key);
        }
        unwatch_if_unheard(lock_key, now);
    });
    masters_.refresh_due();
    wants_write_ = true;
}

void engine::unwatch_if_unheard(std::string_view lock_key, time_point now) {
    hinted_.clear();
    lines_.find_listeners(lock_key, hinted_);
    if (!hinted_.empty() || listened_.contains(lock_key)) {
        return; // others still listen to it
    }
    assign_channel(watched_, lock_key);
    masters_.unwatch(watched_, now);
}

void engine::listen(std::string_view resource, time_point now) {
    std::string key;
    assign_lock_key(key, rules_.key_prefix, resource);
    if (listened_[key]++ == 0 && rules_.pushes && life_ == life::running) {
        assign_channel(watched_, key);
        masters_.watch(watched_, now); // what a line watches already is watched once
        masters_.refresh_due();
        wants_write_ = true;
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
    unwatch_if_unheard(key, now);
    masters_.refresh_due();
    wants_write_ = true;
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
    hearing_changed(now);
}

void engine::hearing_changed(time_point now) {
    if (masters_.stopped_hearing()) {
        poll_again(now);
    }
}

// `release` was announced by a master; if that is empty, a release may have been missed.
void engine::hinted(
    std::size_t master, std::string_view channel, std::string_view release, time_point now) {
    const std::string_view lock_key = lock_of_channel(channel);
    if (listened_.contains(lock_key)) {
        host_.heard(lock_key);
    }
    hinted_.clear();
    lines_.find_listeners(lock_key, hinted_);
    for (line* const one : hinted_) {
        if (one->length > 0) {
            hint(*one, master, release, now);
        }
    }
}

void engine::hint(line& mine, std::size_t master, std::string_view release, time_point now) {
    news& latest = mine.latest;
    const std::uint32_t teller = 1U << master;
    // What has no name may be the release that others tell of, as long as nothing came of those.
    const bool nameless = release.empty() || latest.release.empty();
    const bool joins =
        !latest.acted_on && nameless && (latest.release.empty() || (latest.heard & teller) == 0);
    if (joins) {
        latest.release += release;
    } else if (latest.release != release || (latest.heard & teller) != 0) {
        latest.release = release;
        latest.heard = 0;
        latest.acted_on = false; // what the attempt under way has missed, it still has
    }
    latest.heard |= teller;
    operation& next = *operations_.find(mine.head);
    const claim* const attempt = claims_.find(next.attempt);
    // Which slot it was, the push doesn't say, and what was found before need not be all.
    if (mine.pool
        && (next.stage == operation::phase::attempting
            || next.stage == operation::phase::surveying)) {
        latest.again = true;
        return;
    }
    const bool asking = next.stage == operation::phase::attempting && attempt != nullptr;
    // A grant came after this release. A vote that is still to come may be older: it and the push
    // travel on connections of their own.
    if (asking && attempt->votes.of[master].said == vote::granted) {
        return;
    }
    // The arbiter's word is enough. Where it is not to be had, that of a majority is, and then all
    // of them are asked. Anybody's is, if neither comes.
    const std::size_t arbiter = masters_.arbiter_of(mine.key);
    // A slot is looked for on all of them, so there it is always a majority's.
    const bool decides = !mine.pool && (master == arbiter || arbiter == nobody);
    const auto told = static_cast<std::size_t>(std::popcount(latest.heard));
    if (!decides && told < rules_.quorum()) {
        if (next.stage == operation::phase::paused && !latest.acted_on) {
            next.ask_arbiter = true;
            timers_.set(next.wake, std::min(next.wake.due, later(now, 2 * masters_.round_trip())));
        }
        return;
    }
    // Behind a majority's word the arbiter's still counts: it may have been asked too early.
    if (latest.acted_on && !(decides && told > rules_.quorum())) {
        return;
    }
    if (wrong::push_is_permission && next.stage == operation::phase::paused) {
        claim& given = new_claim(next, now);
        next.attempt = given.self;
        for (ballot& one : given.votes.of) {
            one.asked = true;
            one.confirm(guaranteed_until(now, given.ttl, rules_.drift));
        }
        win(next, given, now);
        return;
    }
    latest.acted_on = true;
    latest.again = wrong::push_forgotten ? latest.again : latest.again || asking;
    if (next.stage == operation::phase::paused) {
        const bool at_once = decides || mine.pool;
        next.ask_arbiter = at_once;
        // Without the arbiter's word there is time for it to come, and for others to be first.
        timers_.set(
            next.wake, std::min(next.wake.due, at_once ? now : later(now, masters_.round_trip())));
    } else if (next.stage == operation::phase::turning) {
        mine.turn.again = true; // the answer may be older
    }
}

} // namespace redlock::core
