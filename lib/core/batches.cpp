// Calls for several locks: at the end of a turn, what was collected leaves (outbox.hpp), and each
// lock gets its part of the reply.

#include "decisions.hpp"
#include "engine.hpp"

#include <algorithm>

namespace redlock::core {

// Whether such commands of this claim may leave with those of others. The other forms have scripts
// of their own.
bool engine::shares_calls(const claim& of, command_kind kind) const noexcept {
    const bool may = kind == command_kind::acquire || kind == command_kind::remove
                     || (kind == command_kind::extend && rules_.guarded());
    return may && of.form == lock_form::exclusive && (rules_.guarded() || !of.is_slot());
}

outbox::command engine::command_for(const claim& of, command_kind kind, master_set to) const {
    outbox::command out;
    out.kind = kind;
    out.names = names_of(of);
    out.to = to;
    out.item = {.claim = of.self, .round = of.epoch};
    if (kind == command_kind::acquire) {
        out.ttl = of.asked_ttl;
        out.fencing = fence_of(of, 0);
        out.by = rules_.guarded() ? of.vote_by : forever;
        out.native = !rules_.guarded();
        return out;
    }
    // Without a token there is no counter to raise. A removal raises those that are known to be
    // lower, so that the next owner need not.
    const bool lower = std::ranges::any_of(of.votes.of, [&](const ballot& one) {
        return one.counter != 0 && one.counter < of.fencing_token;
    });
    if (of.fencing_token != 0 && (lower || kind != command_kind::remove)) {
        out.fencing = fence_of(of, of.fencing_token);
    }
    if (kind == command_kind::remove) {
        out.item.publishes = rules_.pushes && of.announced && !of.is_slot();
    } else {
        out.ttl = of.extending.ttl;
        out.by = of.is_held() ? of.held().deadline() : of.vote_by;
        out.item.round = of.extending.round;
    }
    return out;
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
        // The plain protocol has a shorter script for one lock.
        const bool alone = what.kind == command_kind::remove && what.items.size() == 1;
        alone && !rules_.guarded() ? send_alone(what) : send_batch(what);
    });
}

void engine::send_alone(batch& what) {
    const master_set to = what.to;
    claim* const ended = claims_.find(what.items.front().claim);
    outbox_.withdraw(what);
    rung said = rung::native; // as nothing is written yet
    for (std::size_t i = 0; ended != nullptr && i < masters_.size(); ++i) {
        if ((to & set_of(i)) != 0) {
            const ladder& commands = masters_[i].link->commands();
            const rung how = commands.remove_script();
            if (how != said) {
                write_removal(*ended, commands, how);
                said = how;
            }
            send_written_removal(*ended, i, how, outbox_.added_at());
        }
    }
}

void engine::send_batch(const batch& what) {
    const bool removes = what.kind == command_kind::remove;
    std::size_t common = 0;
    rung said = rung::native;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if ((what.to & set_of(i)) == 0) {
            continue;
        }
        const rung how =
            what.native ? rung::native : masters_[i].link->commands().of_batch(what.kind);
        if (common == 0 || how != said) { // nearly always the same for all masters
            call_.clear();
            outbox::write(call_, what, how, rules_.epoch_key);
            common = call_.size();
            said = how;
        }
        call_.resize(common);
        if (!removes && !what.native) {
            masters_[i].link->append_guard(call_, what.by_first);
        }
        const std::uint64_t mark = send(
            i,
            call_,
            {.kind = what.kind,
             .how = how,
             .shared = true,
             .locks = static_cast<std::uint8_t>(what.items.size()),
             .replies = static_cast<std::uint8_t>(what.native ? what.items.size() : 1),
             .subject = what.self},
            outbox_.added_at());
        for (std::size_t n = 0; removes && n < what.items.size(); ++n) {
            if (claim* const ended = claims_.find(what.items[n].claim)) {
                ended->votes.of[i].removal_mark = mark;
            }
        }
    }
}

void engine::batch_replied(
    std::size_t master,
    const ticket& command,
    const reply& answered,
    time_point sent,
    time_point now) {
    batch& what = *outbox_.find(command.subject);
    if (what.native) {
        const batch::item each = what.items[what.items.size() - command.replies];
        if (command.replies == 1) {
            outbox_.done(what);
        }
        const ticket one = ticket_of(command, each);
        const answer got = read_acquire(answered, rung::native);
        if (claim* const owner = claims_.find(each.claim)) {
            claim_replied(
                *owner, master, one, got, answered.is_error() ? answered.text : "", sent, now);
        }
        return;
    }
    batch_answers all(answered, command.kind, command.how, what.has_counters(), what.items.size());
    note_server(master, command, answered, all.call(), sent, now);
    for (const batch::item& each : what.items) {
        const ticket one = ticket_of(command, each);
        const answer got = all.executed() ? all.next() : all.call();
        if (all.executed() && (got.forgot || got.unpublished || each.publishes)) {
            note_server(master, one, {}, got, sent, now);
        }
        if (!all.error().empty() && all.executed()) {
            notice(master, all.error(), now);
        }
        if (claim* const owner = claims_.find(each.claim)) {
            claim_replied(*owner, master, one, got, all.error(), sent, now);
        }
    }
    outbox_.done(what);
}

void engine::batch_dropped(std::size_t master, const ticket& command, time_point now) {
    batch& what = *outbox_.find(command.subject);
    const std::size_t replied = what.native ? what.items.size() - command.replies : 0;
    for (std::size_t n = replied; n < what.items.size(); ++n) {
        dropped(master, ticket_of(command, what.items[n]), now);
    }
    outbox_.done(what);
}

// The connection broke before they left.
void engine::drop_unsent(std::size_t master, time_point now) {
    for (const outbox::unsent& one : outbox_.drop(master)) {
        if (claim* const owner = claims_.find(one.item.claim)) {
            claim_unreachable(
                *owner, master, ticket_of({.kind = one.kind, .subject = {}}, one.item), now);
        }
    }
}

// Of one lock in a call for several.
ticket engine::ticket_of(const ticket& call, const batch::item& one) noexcept {
    return {
        .kind = call.kind, .round = one.round, .publishes = one.publishes, .subject = one.claim};
}

} // namespace redlock::core
