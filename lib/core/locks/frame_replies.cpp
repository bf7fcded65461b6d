// The replies to calls for several locks: divides each among its claims.

#include "core/base/histogram_access.hpp"
#include "wire.hpp"

#include <bit>

namespace redlock::core {

namespace {

// Of one lock in a call for several.
sent_command command_of(command_kind kind, const frame::item& one) noexcept {
    return {.kind = kind, .epoch = one.epoch, .subject = one.claim};
}

// Lock `n` of a call, in a set of its locks (`receiver::granted`).
std::uint64_t place_of(const frame& what, std::size_t n) noexcept {
    return std::uint64_t{1} << (what.items.size() - 1 - n);
}

} // namespace

void wire::frame_replied(const arrival& at, const reply& answered) {
    frame& what = *frames_.find(at.command.subject.to<frame>());
    if (what.native) {
        set_replied(at, what, answered);
        if (at.command.replies == 1) {
            frames_.done(what);
        }
        return;
    }
    frame_answers all(
        answered, at.command.kind, at.command.how, what.has_counters(), what.items.size());
    note_server(at, answered, all.call());
    if (at.command.kind == command_kind::remove && all.all_granted()) {
        removed(at, what);
    } else {
        each_replied(at, what, all);
    }
    frames_.done(what);
}

void wire::removed(const arrival& at, const frame& what) {
    for (const frame::item& each : what.items) {
        note_published(at, each, 0);
    }
    events_.removed(at, what.items);
}

void wire::each_replied(const arrival& at, const frame& what, frame_answers& all) {
    const bool extends = rules_.guarded() && at.command.kind == command_kind::extend;
    sent_command of_lock{.kind = at.command.kind};
    const arrival one{at.master, of_lock, at.sent, at.now};
    for (const frame::item& each : what.items) {
        of_lock.epoch = each.epoch;
        of_lock.subject = each.claim;
        claim* const owner = claims_.find(each.claim);
        answer got = all.next();
        if (extends && (all.forgot() || masters_[at.master].link->quarantined(at.now))) {
            if (!wrong::unvouched_extends && got.said == vote::granted && owner != nullptr
                && owner->votes.of[at.master].unvouched) {
                got = {.said = vote::quarantined, .forgot = true}; // its SET has no certificate
            }
            // It may have granted this key after it had forgotten another one.
            got.forgot = got.forgot || (all.forgot() && got.said == vote::owned_by_other);
        }
        if (all.executed()) {
            if (got.forgot || got.unpublished) {
                note_server(one, {}, got);
            } else if (got.said == vote::granted) {
                note_published(at, each, got.counter);
            }
            if (means_ineligible(all.error())) {
                introduce_again(at.master, at.now);
            }
        }
        if (owner != nullptr) {
            claim_replied(*owner, one, got, all.error());
        }
    }
}

void wire::usual_reply(const arrival& at, std::uint64_t locks) {
    frame& what = *frames_.find(at.command.subject.to<frame>());
    if (at.command.kind == command_kind::remove) {
        removed(at, what);
    } else {
        sets_replied(at, what, locks, {.said = vote::granted}, {});
    }
    if (at.command.certified || !what.native || at.command.replies == std::popcount(locks)) {
        frames_.done(what);
    }
}

// A reply to SETs that is not one of `granted`: for a lock, or the certificate that follows them.
// The connection holds grants back until the certificate arrives, but no other reply.
void wire::set_replied(const arrival& at, const frame& what, const reply& answered) {
    const std::size_t place = what.items.size() + (rules_.guarded() ? 1 : 0) - at.command.replies;
    if (place == what.items.size()) {
        certified(at, what, answered);
        return;
    }
    const answer got = read_answer(command_kind::acquire, answered, command_variant::native);
    sets_replied(at, what, place_of(what, place), got, answered.error());
}

// The same reply to the SETs of all these locks.
void wire::sets_replied(
    const arrival& at,
    const frame& what,
    std::uint64_t locks,
    const answer& got,
    std::string_view error) {
    const bool grants = got.said == vote::granted;
    const auto took = at.now - at.sent;
    const auto latency = ballot::latency_of(took);
    sent_command of_lock{.kind = at.command.kind};
    const arrival one{at.master, of_lock, at.sent, at.now};
    while (locks != 0) {
        const frame::item& each = *(what.items.end() - std::bit_width(locks));
        locks &= ~std::bit_floor(locks);
        claim* const owner = claims_.find(each.claim);
        if (owner == nullptr) {
            continue;
        }
        ballot& theirs = owner->votes.of[at.master];
        of_lock.epoch = each.epoch;
        of_lock.subject = each.claim;
        if (!grants || owner->ended() || !masters_[at.master].is_fit()) {
            theirs.unvouched = theirs.unvouched && !grants;
            claim_replied(*owner, one, got, error);
        } else { // the most frequent reply: what `claim_replied` does then
            theirs.unvouched = false;
            theirs.latency = latency;
            detail::histogram_access::add(masters_.counters(at.master).latency, took);
            events_.answered(*owner, one, got);
        }
    }
}

void wire::certified(const arrival& at, const frame& what, const reply& answered) {
    connection& link = *masters_[at.master].link;
    const bool remembers = wrong::uncertified_counts || link.certifies(at.command, answered);
    answer got{.said = vote::granted};
    if (answered.is_error()) { // nothing shows that it has lost its memory
        got = {.said = vote::error, .forgot = true};
        note_server(at, answered, got);
    } else if (!remembers) {
        got = {.said = vote::quarantined, .forgot = true, .quarantine = link.quarantine_time()};
        note_server(at, answered, got);
    }
    sets_replied(at, what, link.take_granted(), got, answered.error());
}

void wire::frame_dropped(const arrival& at) {
    frame& what = *frames_.find(at.command.subject.to<frame>());
    const std::size_t certificate = rules_.guarded() ? 1 : 0;
    const std::size_t replied =
        what.native ? what.items.size() + certificate - at.command.replies : 0;
    const std::uint64_t granted = masters_[at.master].link->take_granted();
    for (std::size_t n = 0; n < what.items.size(); ++n) {
        claim* const owner = claims_.find(what.items[n].claim);
        if (owner != nullptr && (n >= replied || (granted & place_of(what, n)) != 0)) {
            const sent_command command = command_of(at.command.kind, what.items[n]);
            dropped(*owner, {at.master, command, at.sent, at.now});
        }
    }
    frames_.done(what);
}

void wire::drop_unsent(std::size_t master, time_point now) {
    const bool up = masters_[master].link->up();
    for (const frames::unsent& one : frames_.drop(master, up)) {
        claim* const owner = claims_.find(one.item.claim);
        const sent_command command = command_of(one.kind, one.item);
        const arrival at{.master = master, .command = command, .now = now};
        if (owner != nullptr && up && !owner->ended()) {
            events_.answered(*owner, at, {.said = masters_[master].otherwise});
        } else if (owner != nullptr && !up) {
            unreachable(*owner, at);
        }
    }
}

} // namespace redlock::core
