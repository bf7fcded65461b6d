// Attaching to a lock that was acquired elsewhere: a claim that begins with an extension.
//
// The lock exists if a majority has its token and extends it. No earlier vote is trusted. A missing
// key is created only if half of the members have the lock: then no other owner can have a
// majority. It is what is left for certain of a majority after one change of the members, so such a
// lock is never taken for one that is gone. A failed attach removes nothing: the lock may still
// have an owner who acts, and keys on less than half of the masters exclude nobody.

#include "decisions.hpp"
#include "engine.hpp"
#include "keys.hpp"

namespace redlock::core {

handle engine::attach(const acquire_request& request, time_point now) {
    operation& wanted = operations_.create();
    const handle name = wanted.self;
    wanted.wake.owner = timer_owner::operation;
    wanted.wake.subject = name;
    wanted.cookie = request.cookie;
    wanted.stage = operation::phase::attempting;
    assign_lock_key(wanted.key, rules_.key_prefix, request.resource);
    wanted.options = request.options;
    wanted.began = wanted.decided_at = wanted.wait_until = now;
    if (life_ != life::running) {
        wanted.outcome = closing() ? errc::closed : errc::not_running;
        finish(wanted, now);
        return name;
    }
    claim& attempt = new_attach(wanted, request.token, now);
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& mine = attempt.votes.of[i];
        mine.asked = true; // a master that cannot be reached may have the key as well
        mine.unvouched = true;
        if (!masters_[i].admitted) {
            attempt.asking().refused(attempt, i, masters_[i].otherwise);
            ++masters_.counters(i).extend_votes[mine.said];
        } else if (masters_[i].link->overloaded()) {
            attempt.asking().refused(attempt, i, vote::unreachable);
            attempt.votes.note(i, "too many commands in flight");
            ++masters_.counters(i).extend_votes[mine.said];
        }
    }
    if (attempt.votes.count(vote::pending) < masters_.needed()) {
        end_attach(wanted, attempt, errc::no_quorum, now); // nothing was sent
        return name;
    }
    give_up_in_time(wanted, attempt, now);
    attempt.vote_by = wanted.wake.due;
    attempt.expires_at = wanted.wake.due + attempt.ttl_max + rules_.drift.of(attempt.ttl_max);
    master_set to = 0;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        to |= attempt.votes.of[i].said == vote::pending ? set_of(i) : 0U;
    }
    sender_.attach(attempt, to, now);
    return name;
}

claim& engine::new_attach(operation& wanted, std::string_view token, time_point now) {
    claim& attempt = claims_.create();
    attempt.wake.owner = timer_owner::claim;
    attempt.wake.subject = attempt.self;
    attempt.ask({attempt::origin::attach, masters_.size(), masters_.needed(), masters_.voters()});
    attempt.operation = wanted.self;
    attempt.key = wanted.key;
    attempt.fencing = wanted.options.fencing;
    token.copy(attempt.token.data(), attempt.token.size());
    attempt.ttl = wanted.options.ttl;
    attempt.ttl_max = rules_.max_ttl; // the ttl of the other process is unknown
    attempt.asked_at = now;
    attempt.votes.reset(masters_.size());
    attempt.extending.sent = now; // a reply after the decision counts for an extension
    attempt.extending.ttl = attempt.ttl;
    wanted.attempt = attempt.self;
    ++wanted.attempts;
    ++counters_.attempts;
    return attempt;
}

// Without an error: it was cancelled.
void engine::end_attach(
    operation& wanted, claim& attempt, std::optional<errc> why, time_point now) {
    wanted.outcome = why;
    wanted.decided_at = now;
    wanted.last = attempt.votes;
    if (host_.logs(log_level::debug)) {
        host_.log(
            log_level::debug,
            wanted.key + ": not attached: " + std::to_string(attempt.votes.count(vote::granted))
                + " of " + std::to_string(masters_.size()) + " have it");
    }
    if (wrong::failed_attach_removes && why == errc::lost) {
        removals_.begin(attempt, now);
    } else {
        claims_.destroy(attempt);
    }
    finish(wanted, now);
}

} // namespace redlock::core
