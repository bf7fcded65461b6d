// Replies to calls for several locks (outbox.hpp): divides each among its locks.

#include "batch_answers.hpp"
#include "decisions.hpp"
#include "engine.hpp"

#include <bit>
#include <utility>

namespace redlock::core {

void engine::batch_replied(
    std::size_t master,
    const sent_command& command,
    const reply& answered,
    time_point sent,
    time_point now) {
    batch& what = *sender_.calls().find(command.subject);
    if (what.native) {
        native_replied(master, command, what, answered, sent, now);
        if (command.replies == 1) {
            sender_.calls().done(what);
        }
        return;
    }
    const bool extends = rules_.guarded() && command.kind == command_kind::extend;
    batch_answers all(answered, command.kind, command.how, what.has_counters(), what.items.size());
    note_server(master, command, answered, all.call(), sent, now);
    for (const batch::item& each : what.items) {
        sent_command one = command_of(command, each);
        one.publishes = (each.publishes & set_of(master)) != 0;
        claim* const owner = claims_.find(each.claim);
        answer got = all.executed() ? all.next() : all.call();
        const bool forgot = all.forgot() || masters_[master].link->quarantined(now);
        if (!wrong::unvouched_extends && forgot && got.said == vote::granted && extends
            && owner != nullptr && owner->votes.of[master].unvouched) {
            got = {.said = vote::quarantined, .forgot = true}; // its SET has no certificate
        }
        // It may have granted this key after it had forgotten another one.
        got.forgot = got.forgot || (extends && all.forgot() && got.said == vote::owned_by_other);
        if (all.executed() && (got.forgot || got.unpublished || one.publishes)) {
            note_server(master, one, {}, got, sent, now);
        }
        if (!all.error().empty() && all.executed()) {
            notice(master, all.error(), now);
        }
        if (owner != nullptr) {
            claim_replied(*owner, master, one, got, all.error(), sent, now);
        }
    }
    sender_.calls().done(what);
}

// One of the replies to a batch of SETs: for a lock, or for the certificate that follows them. A
// grant is held back until the certificate arrives; other replies are not.
void engine::native_replied(
    std::size_t master,
    const sent_command& command,
    batch& what,
    const reply& answered,
    time_point sent,
    time_point now) {
    const std::size_t place = what.items.size() + (rules_.guarded() ? 1 : 0) - command.replies;
    if (place == what.items.size()) {
        certified(master, command, what, answered, sent, now);
        return;
    }
    const batch::item& each = what.items[place];
    const answer got = read_acquire(answered, command_variant::native);
    if (rules_.guarded() && got.said == vote::granted) {
        masters_[master].granted |= std::uint64_t{1} << place;
    } else {
        set_replied(master, command, each, got, answered, sent, now);
    }
}

void engine::set_replied(
    std::size_t master,
    const sent_command& call,
    const batch::item& each,
    const answer& got,
    const reply& answered,
    time_point sent,
    time_point now) {
    if (claim* const owner = claims_.find(each.claim)) {
        owner->votes.of[master].unvouched &= got.said != vote::granted;
        const std::string_view error = answered.is_error() ? answered.text : std::string_view();
        claim_replied(*owner, master, command_of(call, each), got, error, sent, now);
    }
}

void engine::certified(
    std::size_t master,
    const sent_command& command,
    const batch& what,
    const reply& answered,
    time_point sent,
    time_point now) {
    member& from = masters_[master];
    const bool remembers = wrong::uncertified_counts || from.link->certifies(command, answered);
    answer got{.said = vote::granted};
    if (answered.is_error()) { // nothing shows that it has lost its memory
        got = {.said = vote::error, .forgot = true};
        note_server(master, command, answered, got, sent, now);
    } else if (!remembers) {
        got = {
            .said = vote::quarantined,
            .forgot = true,
            .quarantine = std::chrono::ceil<std::chrono::microseconds>(rules_.quarantine_time())};
        note_server(master, command, answered, got, sent, now);
    }
    for (std::uint64_t left = std::exchange(from.granted, 0); left != 0; left &= left - 1) {
        const batch::item& each = what.items[static_cast<std::size_t>(std::countr_zero(left))];
        set_replied(master, command, each, got, answered, sent, now);
    }
}

void engine::batch_dropped(std::size_t master, const sent_command& command, time_point now) {
    batch& what = *sender_.calls().find(command.subject);
    const std::size_t certificate = rules_.guarded() ? 1 : 0;
    const std::size_t replied = what.native ? what.items.size() + certificate - command.replies : 0;
    const std::uint64_t granted = std::exchange(masters_[master].granted, 0);
    for (std::size_t n = 0; n < what.items.size(); ++n) {
        if (n >= replied || (granted >> n & 1U) != 0) {
            dropped(master, command_of(command, what.items[n]), now);
        }
    }
    sender_.calls().done(what);
}

// Drops what was not sent: the connection broke, or the master may no longer vote. A SET sent now
// would be certified by the memory record from after the loss.
void engine::drop_unsent(std::size_t master, time_point now) {
    const bool up = masters_[master].link->up();
    for (const outbox::unsent& one : sender_.calls().drop(master, up)) {
        claim* const owner = claims_.find(one.item.claim);
        const sent_command command = command_of({.kind = one.kind, .subject = {}}, one.item);
        if (owner != nullptr && up && !owner->ended()) {
            claim_answered(*owner, master, command, {.said = masters_[master].otherwise}, now);
        } else if (owner != nullptr && !up) {
            claim_unreachable(*owner, master, command, now);
        }
    }
}

// Of one lock in a call for several.
sent_command engine::command_of(const sent_command& call, const batch::item& one) noexcept {
    return {.kind = call.kind, .round = one.round, .subject = one.claim};
}

} // namespace redlock::core
