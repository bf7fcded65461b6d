// Replies to calls for several locks (outbox.hpp): divides each among its locks.

#include "answer.hpp"
#include "decisions.hpp"
#include "replies.hpp"

#include <cstddef>
#include <cstdint>

namespace redlock::core {

namespace {

// Of one lock in a call for several.
sent_command command_of(const sent_command& call, const batch::item& one) noexcept {
    return {.kind = call.kind, .round = one.round, .subject = one.claim};
}

// Whether lock `n` is among those of `connection::take_granted`.
bool is_granted(std::uint64_t granted, const batch& what, std::size_t n) noexcept {
    return (granted >> (what.items.size() - 1 - n) & 1U) != 0;
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
    const bool extends = rules_.guarded() && command.kind == command_kind::extend;
    batch_answers all(answered, command.kind, command.how, what.has_counters(), what.items.size());
    note_server(at, answered, all.call());
    for (const batch::item& each : what.items) {
        sent_command of_lock = command_of(command, each);
        of_lock.publishes = (each.publishes & set_of(at.master)) != 0;
        const arrival one{at.master, of_lock, at.sent, at.now};
        claim* const owner = claims_.find(each.claim);
        answer got = all.executed() ? all.next() : all.call();
        if (extends && (all.forgot() || masters_[at.master].link->quarantined(at.now))) {
            if (!wrong::unvouched_extends && got.said == vote::granted && owner != nullptr
                && owner->votes.of[at.master].unvouched) {
                got = {.said = vote::quarantined, .forgot = true}; // its SET has no certificate
            }
            // It may have granted this key after it had forgotten another one.
            got.forgot = got.forgot || (all.forgot() && got.said == vote::owned_by_other);
        }
        if (all.executed() && (got.forgot || got.unpublished)) {
            note_server(one, {}, got);
        } else if (all.executed() && of_lock.publishes && got.said == vote::granted) {
            masters_[at.master].link->published({}, at.now);
            note_listeners(at.master, each.lock, got.counter);
        }
        if (!all.error().empty() && all.executed()) {
            notice(at.master, all.error(), at.now);
        }
        if (owner != nullptr) {
            claim_replied(*owner, one, got, all.error());
        }
    }
    sender_.calls().done(what);
}

// One of the replies to a batch of SETs: for a lock, or for the certificate that follows them. The
// connection holds a grant back until the certificate arrives, but no other reply.
void replies::native_replied(const arrival& at, batch& what, const reply& answered) {
    const std::size_t place = what.items.size() + (rules_.guarded() ? 1 : 0) - at.command.replies;
    if (place == what.items.size()) {
        certified(at, what, answered);
        return;
    }
    set_replied(at, what.items[place], read_acquire(answered, command_variant::native), answered);
}

void replies::set_replied(
    const arrival& at, const batch::item& each, const answer& got, const reply& answered) {
    if (claim* const owner = claims_.find(each.claim)) {
        owner->votes.of[at.master].unvouched &= got.said != vote::granted;
        const std::string_view error = answered.is_error() ? answered.text : std::string_view();
        const sent_command command = command_of(at.command, each);
        claim_replied(*owner, {at.master, command, at.sent, at.now}, got, error);
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
        got = {
            .said = vote::quarantined,
            .forgot = true,
            .quarantine = std::chrono::ceil<std::chrono::microseconds>(rules_.quarantine_time())};
        note_server(at, answered, got);
    }
    const std::uint64_t granted = link.take_granted();
    for (std::size_t n = 0; n < what.items.size(); ++n) {
        if (is_granted(granted, what, n)) {
            set_replied(at, what.items[n], got, answered);
        }
    }
}

void replies::batch_dropped(const arrival& at) {
    batch& what = *sender_.calls().find(at.command.subject);
    const std::size_t certificate = rules_.guarded() ? 1 : 0;
    const std::size_t replied =
        what.native ? what.items.size() + certificate - at.command.replies : 0;
    const std::uint64_t granted = masters_[at.master].link->take_granted();
    for (std::size_t n = 0; n < what.items.size(); ++n) {
        if (n >= replied || is_granted(granted, what, n)) {
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
        const sent_command command = command_of({.kind = one.kind, .subject = {}}, one.item);
        const arrival at{.master = master, .command = command, .now = now};
        if (owner != nullptr && up && !owner->ended()) {
            events_.answered(*owner, at, {.said = masters_[master].otherwise});
        } else if (owner != nullptr && !up) {
            claim_unreachable(*owner, at);
        }
    }
}

} // namespace redlock::core
