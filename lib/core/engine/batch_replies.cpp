// Replies to calls for several locks (outbox.hpp): divides each among its locks.

#include "core/base/decisions.hpp"
#include "core/bytes/answer.hpp"
#include "replies.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redlock::core {

namespace {

// Of one lock in a call for several.
sent_command command_of(const sent_command& call, const batch::item& one) noexcept {
    return {.kind = call.kind, .round = one.round, .subject = one.claim};
}

// Lock `n` of a call, in a set of its locks (`receiver::granted`).
std::uint64_t place_of(const batch& what, std::size_t n) noexcept {
    return std::uint64_t{1} << (what.items.size() - 1 - n);
}

} // namespace

void replies::batch_replied(const arrival& at, const reply& answered) {
    const sent_command& command = at.command;
    batch& what = *sender_.calls().find(command.subject);
    if (what.native) {
        native_replied(at, what, answered);
        if (command.replies == 1) {
            sender_.calls().done(what);
        }
        return;
    }
    batch_answers all(answered, command.kind, command.how, what.has_counters(), what.items.size());
    note_server(at, answered, all.call());
    if (command.kind == command_kind::remove && all.all_granted()) {
        for (const batch::item& each : what.items) {
            note_published(at, each, 0);
        }
        events_.removed(at, what.items);
    } else {
        each_replied(at, what, all);
    }
    sender_.calls().done(what);
}

void replies::each_replied(const arrival& at, const batch& what, batch_answers& all) {
    const bool extends = rules_.guarded() && at.command.kind == command_kind::extend;
    sent_command of_lock{.kind = at.command.kind};
    const arrival one{at.master, of_lock, at.sent, at.now};
    for (const batch::item& each : what.items) {
        of_lock.round = each.round;
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
            if (!all.error().empty()) {
                notice(at.master, all.error(), at.now);
            }
        }
        if (owner != nullptr) {
            claim_replied(*owner, one, got, all.error());
        }
    }
}

// A removal has published on this master, if it was to.
void replies::note_published(const arrival& at, const batch::item& each, std::uint64_t listening) {
    if ((each.publishes & set_of(at.master)) != 0) {
        masters_[at.master].link->published({}, at.now);
        note_listeners(at, each.lock, listening, claims_.find(each.claim));
    }
}

void replies::granted(const arrival& at, std::uint64_t locks) {
    batch& what = *sender_.calls().find(at.command.subject);
    sets_replied(at, what, locks, {.said = vote::granted}, {});
    if (at.command.replies == std::popcount(locks)) {
        sender_.calls().done(what);
    }
}

// A reply to a batch of SETs that is not one of `granted`: for a lock, or the certificate that
// follows them. The connection holds grants back until the certificate arrives, but no other reply.
void replies::native_replied(const arrival& at, const batch& what, const reply& answered) {
    const std::size_t place = what.items.size() + (rules_.guarded() ? 1 : 0) - at.command.replies;
    if (place == what.items.size()) {
        certified(at, what, answered);
        return;
    }
    const answer got = read_acquire(answered, command_variant::native);
    sets_replied(at, what, place_of(what, place), got, answered.is_error() ? answered.text : "");
}

// The same reply to the SETs of all these locks.
void replies::sets_replied(
    const arrival& at,
    const batch& what,
    std::uint64_t locks,
    const answer& got,
    std::string_view error) {
    const bool grants = got.said == vote::granted;
    const auto took = at.now - at.sent;
    const auto latency = ballot::latency_of(took);
    sent_command of_lock{.kind = at.command.kind};
    const arrival one{at.master, of_lock, at.sent, at.now};
    while (locks != 0) {
        const batch::item& each = *(what.items.end() - std::bit_width(locks));
        locks &= ~std::bit_floor(locks);
        claim* const owner = claims_.find(each.claim);
        if (owner == nullptr) {
            continue;
        }
        ballot& theirs = owner->votes.of[at.master];
        of_lock.round = each.round;
        of_lock.subject = each.claim;
        if (!grants || owner->ended() || !masters_[at.master].is_fit()) {
            theirs.unvouched = theirs.unvouched && !grants;
            claim_replied(*owner, one, got, error);
        } else { // the most frequent reply: what `claim_replied` does then
            theirs.unvouched = false;
            theirs.latency = latency;
            masters_.counters(at.master).latency.add(took);
            events_.answered(*owner, one, got);
        }
    }
}

void replies::certified(const arrival& at, const batch& what, const reply& answered) {
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
    const std::string_view error = answered.is_error() ? answered.text : "";
    sets_replied(at, what, link.take_granted(), got, error);
}

void replies::batch_dropped(const arrival& at) {
    batch& what = *sender_.calls().find(at.command.subject);
    const std::size_t certificate = rules_.guarded() ? 1 : 0;
    const std::size_t replied =
        what.native ? what.items.size() + certificate - at.command.replies : 0;
    const std::uint64_t granted = masters_[at.master].link->take_granted();
    for (std::size_t n = 0; n < what.items.size(); ++n) {
        if (n >= replied || (granted & place_of(what, n)) != 0) {
            const sent_command command = command_of(at.command, what.items[n]);
            dropped({at.master, command, at.sent, at.now});
        }
    }
    sender_.calls().done(what);
}

void replies::drop_unsent(std::size_t master, time_point now) {
    const bool up = masters_[master].link->up();
    for (const outbox::unsent& one : sender_.calls().drop(master, up)) {
        claim* const owner = claims_.find(one.item.claim);
        const sent_command command = command_of({.kind = one.kind}, one.item);
        const arrival at{.master = master, .command = command, .now = now};
        if (owner != nullptr && up && !owner->ended()) {
            events_.answered(*owner, at, {.said = masters_[master].otherwise});
        } else if (owner != nullptr && !up) {
            claim_unreachable(*owner, at);
        }
    }
}

} // namespace redlock::core
