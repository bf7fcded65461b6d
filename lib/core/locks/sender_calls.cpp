// Calls for several locks: what was queued in one turn of the event loop (outbox.hpp).

#include "core/base/hash.hpp"
#include "sender.hpp"

#include <array>

namespace redlock::core {

outbox::command sender::command_for(const claim& of, command_kind kind, master_set to) {
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
    if (of.fencing_token != 0
        && (kind != command_kind::remove || of.votes.has_counter_below(of.fencing_token))) {
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
void sender::publish_where_heard(const claim& ended, batch::item& one, master_set to) const {
    if (!rules_.pushes || !ended.announced || ended.is_slot()) {
        return;
    }
    const std::uint64_t lock = hash_of_key(ended.key);
    const std::size_t arbiter = masters_.arbiter_of(lock);
    // Where the key is missing, nothing is removed, and nothing published.
    const bool alone = arbiter != nobody && (to & set_of(arbiter)) != 0
                       && ended.votes.of[arbiter].until() != never && audience_.none(lock);
    one.publishes = alone ? set_of(arbiter) : to;
    one.lock = lock;
}

void sender::queue(claim& of, command_kind kind, master_set to, time_point now, bool alone) {
    if (to == 0) {
        return;
    }
    outbox_.add(command_for(of, kind, to), alone, now);
    of.queued_in = outbox_.turn();
    write_soon();
    if (outbox_.full()) {
        flush();
    }
}

void sender::flush() {
    outbox_.flush([this](const batch& what) { send_batch(what); });
}

void sender::send_batch(const batch& what) {
    const bool removes = what.kind == command_kind::remove;
    const bool certifies = what.native && rules_.guarded();
    const std::string_view record = rules_.guarded() ? rules_.record_key : std::string_view();
    std::size_t common = 0;
    command_variant said = command_variant::native;
    std::array<std::uint64_t, masters_max> marks{};
    for (const std::size_t i : each_of(what.to)) {
        const command_variant how = what.native ? command_variant::native
                                                : masters_[i].link->commands().of_batch(what.kind);
        if (common == 0 || how != said) { // nearly always the same for all masters
            call_.clear();
            outbox_.write(call_, what, how, record);
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
        marks[i] = send(
            i,
            call_,
            {.kind = what.kind,
             .how = how,
             .shared = true,
             .locks = static_cast<std::uint8_t>(what.items.size()),
             .replies = static_cast<std::uint8_t>(
                 (what.native ? what.items.size() : 1) + (certifies ? 1 : 0)),
             .certified = certifies,
             .record = masters_[i].link->record(),
             .to = &replies_,
             .subject = what.self},
            outbox_.added_at());
        if (certifies) {
            masters_[i].link->keep_clock(outbox_.added_at());
        }
    }
    if (removes || certifies) {
        note_sent(what, marks);
    }
}

void sender::note_sent(const batch& what, std::span<const std::uint64_t> marks) {
    for (const batch::item& each : what.items) {
        claim* const owner = claims_.find(each.claim);
        if (owner == nullptr || (what.kind == command_kind::remove && owner->ending().wanted())) {
            continue;
        }
        for (const std::size_t i : each_of(what.to)) {
            if (what.kind == command_kind::remove) {
                keep_mark(*owner, i, marks[i]);
            } else {
                owner->votes.of[i].unvouched = true;
            }
        }
    }
}

} // namespace redlock::core
