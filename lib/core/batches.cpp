// Calls for several locks: sends the commands that were collected in one turn of the event loop
// (outbox.hpp), and divides each reply among its locks.

#include "decisions.hpp"
#include "engine.hpp"
#include "hash.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace redlock::core {

// A plain SET is enough for an exclusive lock without fencing; everything else needs a script.
bool engine::sets_natively(const claim& of) const noexcept {
    return of.form == lock_form::exclusive && !of.fencing;
}

// Whether a command of this claim may share a call with those of other claims. The other forms have
// scripts of their own.
bool engine::shares_calls(const claim& of, command_kind kind) const noexcept {
    const bool extends = kind == command_kind::extend;
    const bool may = extends || kind == command_kind::acquire || kind == command_kind::remove;
    return may && of.form == lock_form::exclusive && (rules_.guarded() || extends || !of.is_slot());
}

outbox::command engine::command_for(const claim& of, command_kind kind, master_set to) {
    outbox::command out;
    out.kind = kind;
    out.names =
        of.fencing
            ? names_of(of)
            : lock_names{
                .lock = of.key, .fence = {}, .record = rules_.record_key, .token = of.token_text()};
    out.to = to;
    out.item = {.claim = of.self, .round = of.handoffs};
    if (kind == command_kind::acquire) {
        out.ttl = of.asked_ttl;
        out.fencing = fence_of(of, 0);
        out.native = sets_natively(of);
        out.by = out.native ? forever : of.vote_by;
        return out;
    }
    // Without a token there is no counter to raise. A removal also raises the counters that are
    // known to be lower than the token, which saves the next owner a raise.
    const bool lower = std::ranges::any_of(of.votes.of, [&](const ballot& one) {
        return one.counter != 0 && one.counter < of.fencing_token;
    });
    if (of.fencing_token != 0 && (lower || kind != command_kind::remove)) {
        out.fencing = fence_of(of, of.fencing_token);
    }
    if (kind == command_kind::remove) {
        publish_where_heard(of, out.item, to);
    } else {
        out.ttl = of.extending.ttl;
        if (rules_.guarded()) { // no script of the plain protocol knows a deadline
            out.by = of.is_held() ? of.held().deadline() : of.vote_by;
        }
        out.item.round = of.extending.round;
    }
    return out;
}

// Publishes on the arbiter alone if it has the key and reported no subscribers last time, else on
// all masters. The channel of a slot is that of its pool, which the script for several locks does
// not have.
void engine::publish_where_heard(const claim& ended, batch::item& one, master_set to) const {
    if (!rules_.pushes || !ended.announced || ended.is_slot()) {
        return;
    }
    const std::uint64_t lock = hash_of(ended.key);
    const std::size_t arbiter = masters_.arbiter_of(lock);
    // Where the key is missing, nothing is removed, and nothing published.
    const bool alone = arbiter != nobody && (to & set_of(arbiter)) != 0
                       && ended.votes.of[arbiter].until != never && listeners_.none(lock);
    one.publishes = alone ? set_of(arbiter) : to;
}

// `alone`: in a call of its own, because one for several locks was refused.
void engine::queue(claim& of, command_kind kind, master_set to, time_point now, bool alone) {
    if (to == 0) {
        return;
    }
    outbox_.add(command_for(of, kind, to), alone, now);
    of.queued_in = outbox_.turn();
    wants_write_ = true;
    if (outbox_.full()) {
        flush();
    }
}

void engine::flush() {
    outbox_.flush([this](batch& what) {
        // The plain protocol has shorter scripts for one lock.
        const bool alone = !rules_.guarded() && !what.native && what.items.size() == 1;
        alone ? send_alone(what) : send_batch(what);
    });
}

void engine::send_alone(batch& what) {
    const master_set to = what.to;
    const batch::item one = what.items.front();
    const bool extends = what.kind == command_kind::extend;
    claim* const owner = claims_.find(one.claim);
    outbox_.withdraw(what);
    if (owner != nullptr) {
        extends ? send_extension_alone(*owner, one, to) : send_removal_alone(*owner, one, to);
    }
}

void engine::send_extension_alone(claim& owner, const batch::item& one, master_set to) {
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if ((to & set_of(i)) == 0) {
            continue;
        }
        const command_variant how = masters_[i].link->commands().extend_script();
        if (owner.is_asking()) { // an attach
            ask_to_last(owner, i, how, outbox_.added_at());
        } else {
            send_extend(owner, i, one.round, how, outbox_.added_at());
        }
    }
}

void engine::send_removal_alone(claim& ended, const batch::item& one, master_set to) {
    command_variant said = command_variant::native; // a marker: nothing has been written yet
    bool publishes = false;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if ((to & set_of(i)) != 0) {
            const server_capabilities& commands = masters_[i].link->commands();
            const command_variant how = commands.remove_script();
            const bool here = (one.publishes & set_of(i)) != 0;
            if (how != said || here != publishes) {
                write_removal(ended, commands, how, here);
                said = how;
                publishes = here;
            }
            send_written_removal(ended, i, how, outbox_.added_at());
        }
    }
}

void engine::send_batch(const batch& what) {
    const bool removes = what.kind == command_kind::remove;
    const bool certifies = what.native && rules_.guarded();
    const std::string_view record = rules_.guarded() ? rules_.record_key : std::string_view();
    std::size_t common = 0;
    command_variant said = command_variant::native;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if ((what.to & set_of(i)) == 0) {
            continue;
        }
        const command_variant how = what.native ? command_variant::native
                                                : masters_[i].link->commands().of_batch(what.kind);
        if (common == 0 || how != said) { // nearly always the same for all masters
            call_.clear();
            outbox::write(call_, what, how, record);
            if (certifies) {
                masters_[i].link->append_certificate(call_);
            }
            common = call_.size();
            said = how;
        }
        call_.resize(common);
        if (removes) {
            outbox::write_publishes(call_, what, i);
        } else if (!what.native && rules_.guarded()) {
            masters_[i].link->append_guard(call_, what.by_first);
        }
        const std::uint64_t mark = send(
            i,
            call_,
            {.kind = what.kind,
             .how = how,
             .shared = true,
             .locks = static_cast<std::uint8_t>(what.items.size()),
             .replies = static_cast<std::uint8_t>(
                 (what.native ? what.items.size() : 1) + (certifies ? 1 : 0)),
             .record = masters_[i].link->record(),
             .subject = what.self},
            outbox_.added_at());
        for (std::size_t n = 0; (removes || certifies) && n < what.items.size(); ++n) {
            if (claim* const owner = claims_.find(what.items[n].claim)) {
                ballot& mine = owner->votes.of[i];
                mine.unvouched |= certifies;
                mine.removal_mark = removes ? mark : mine.removal_mark;
            }
        }
        if (certifies) {
            masters_[i].link->keep_clock(outbox_.added_at());
        }
    }
}

void engine::batch_replied(
    std::size_t master,
    const sent_command& command,
    const reply& answered,
    time_point sent,
    time_point now) {
    batch& what = *outbox_.find(command.subject);
    if (what.native) {
        native_replied(master, command, what, answered, sent, now);
        if (command.replies == 1) {
            outbox_.done(what);
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
    outbox_.done(what);
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
    batch& what = *outbox_.find(command.subject);
    const std::size_t certificate = rules_.guarded() ? 1 : 0;
    const std::size_t replied = what.native ? what.items.size() + certificate - command.replies : 0;
    const std::uint64_t granted = std::exchange(masters_[master].granted, 0);
    for (std::size_t n = 0; n < what.items.size(); ++n) {
        if (n >= replied || (granted >> n & 1U) != 0) {
            dropped(master, command_of(command, what.items[n]), now);
        }
    }
    outbox_.done(what);
}

// Drops what was not sent: the connection broke, or the master may no longer vote. A SET sent now
// would be certified by the memory record from after the loss.
void engine::drop_unsent(std::size_t master, time_point now) {
    const bool up = masters_[master].link->up();
    for (const outbox::unsent& one : outbox_.drop(master, up)) {
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
