#include "wire.hpp"

#include "core/base/hash.hpp"
#include "core/bytes/keys.hpp"

#include <array>

namespace redlock::core {

namespace {

bool deletes_blindly(const claim& ended) noexcept {
    if (wrong::rollback_without_compare && ended.believed_until() == never) {
        return true;
    }
    if (wrong::release_without_compare && ended.believed_until() != never) {
        return true;
    }
    return false;
}

// Whether a separate PUBLISH follows the removal: waiters for several slots subscribe to the
// channel of the pool, which the script for several locks does not have.
bool publishes_separately(const claim& ended) noexcept {
    return ended.is_slot() && ended.form() == lock_form::all;
}

} // namespace

void wire::send(
    std::size_t master,
    std::initializer_list<std::string_view> arguments,
    const sent_command& what,
    time_point now) {
    bytes_.clear();
    append_command(bytes_, arguments);
    masters_.send(master, bytes_, what, now);
}

// The fencing counters of several resources are packed in the key. Valid until the next call.
lock_names wire::names_of(const claim& of) {
    if (of.form() == lock_form::all) {
        fence_key_.clear();
    } else if (of.is_slot()) {
        assign_slot_fence_key(fence_key_, of.key());
    } else {
        assign_fence_key(fence_key_, rules_.key_prefix, resource_of(of.key(), rules_.key_prefix));
    }
    return {of.key(), fence_key_, rules_.record_key, of.token_text()};
}

std::string_view wire::channel_of(std::string_view key) {
    assign_channel(channel_, key);
    return channel_;
}

// --- One claim

void wire::add(claim& of, command_kind kind, master_set to, time_point now) {
    if (shares_calls(of)) {
        queue(of, kind, to, false, now);
        return;
    }
    if (kind == command_kind::acquire) {
        flush(); // it may need a key that a removal of this turn frees
    }
    for (const std::size_t i : each_of(to)) {
        send_alone(of, kind, i, now);
    }
}

void wire::repeat(claim& of, command_kind kind, std::size_t master, bool alone, time_point now) {
    const bool raises = kind == command_kind::raise || kind == command_kind::heal;
    if (shares_calls(of) && !raises) {
        queue(of, kind, set_of(master), alone, now);
    } else if (kind == command_kind::remove) {
        send_removals(of, set_of(master), now);
    } else {
        send_alone(of, kind, master, now);
    }
}

void wire::send_alone(const claim& of, command_kind kind, std::size_t master, time_point now) {
    const bool acquires = kind == command_kind::acquire;
    const bool keeps = kind == command_kind::extend || kind == command_kind::heal;
    // The attempt may be won already when its raise is repeated in another variant.
    const bool raises = kind == command_kind::raise && of.is_asking();
    const std::uint64_t token = acquires ? 0 : raises ? of.raises_to() : of.fencing_token();
    const bool publishes =
        kind == command_kind::extend && of.form() == lock_form::shared && rules_.pushes;
    const command_variant how = masters_[master].link->commands().of(of.form(), kind);
    fence fencing = fence_of(of, token);
    if (acquires && of.fencing()) {
        fencing.first = masters_.first_counter_at(now);
    }
    bytes_.clear();
    append_form_command(
        bytes_,
        {.kind = kind,
         .form = of.form(),
         .how = how,
         .names = names_of(of),
         .fencing = fencing,
         .ttl = of.ttl_of(kind),
         .guard = masters_[master].link->guard_until(
             keeps && of.is_held() ? of.deadline() : of.vote_by()),
         .channel = publishes ? channel_of(of.key()) : std::string_view(),
         .intent =
             acquires ? exclusive_intent{rules_.ticket_lease(), of.intent()} : exclusive_intent()});
    masters_.send(
        master,
        bytes_,
        {.kind = kind,
         .how = how,
         .form = of.form(),
         .epoch = of.epoch_of(kind),
         .to = this,
         .subject = of.self},
        now);
}

void wire::repeat_unheard(claim& of, std::size_t master, time_point now) {
    frames::command again = command_for(of, command_kind::acquire, set_of(master));
    again.item = {};
    frames_.add(again, true, now);
    flush(); // before the raise
}

// --- Removals

void wire::remove(claim& ended, master_set to, time_point now) {
    if (!shares_calls(ended) || deletes_blindly(ended)) {
        send_removals(ended, to, now);
        return;
    }
    for (const std::size_t i : each_of(to)) {
        keep_mark(ended, i, not_written);
    }
    queue(ended, command_kind::remove, to, false, now);
    if (to == 0 || !rules_.pushes || !ended.publishes_ || !ended.is_slot()) {
        return;
    }
    // The removal is sent first. Its script cannot publish on the channel of the pool, to which the
    // waiters subscribe.
    flush();
    const std::string_view channel = channel_of(ended.queue_key());
    for (const std::size_t i : each_of(to)) {
        send_publish(ended, i, channel, now);
    }
}

// In a command of its own for each master.
void wire::send_removals(claim& ended, master_set to, time_point now) {
    const bool by_script = !publishes_separately(ended);
    command_variant said = command_variant::native; // nearly always the same for all
    std::string_view channel;
    for (const std::size_t i : each_of(to)) {
        const command_variant how =
            masters_[i].link->commands().of(ended.form(), command_kind::remove);
        if (how != said) {
            channel = write_removal(ended, how);
            said = how;
        }
        const std::uint64_t mark = masters_.send(
            i,
            bytes_,
            {.kind = command_kind::remove,
             .how = how,
             .form = ended.form(),
             .publishes = by_script && !channel.empty(),
             .to = this,
             .subject = ended.self},
            now);
        keep_mark(ended, i, mark);
        if (!by_script && !channel.empty()) {
            send_publish(ended, i, channel, now);
        }
    }
}

// Returns the channel on which the removal is published; empty: not published.
std::string_view wire::write_removal(const claim& ended, command_variant how) {
    bytes_.clear();
    if (deletes_blindly(ended)) {
        append_command(bytes_, {"DEL", ended.key()});
        return {};
    }
    const bool publishes = rules_.pushes && (ended.publishes_ || ended.drops_intent_);
    const std::string_view channel = publishes ? channel_of(ended.queue_key()) : std::string_view();
    append_form_command(
        bytes_,
        {.kind = command_kind::remove,
         .form = ended.form(),
         .how = how,
         .names = names_of(ended),
         .fencing = fence_of(ended, ended.fencing_token()),
         .channel = publishes_separately(ended) ? std::string_view() : channel,
         .intent = {.name = ended.drops_intent_ ? ended.intent() : 0}});
    return channel;
}

void wire::send_publish(
    const claim& ended, std::size_t master, std::string_view channel, time_point now) {
    publish_.clear();
    append_publish(publish_, channel, ended.token_text());
    masters_.send(master, publish_, {.kind = command_kind::publish}, now);
}

// --- Calls for several locks

frames::command wire::command_for(const claim& of, command_kind kind, master_set to) {
    frames::command out;
    out.kind = kind;
    out.names =
        of.fencing()
            ? names_of(of)
            : lock_names{.lock = of.key(), .fence = {}, .record = {}, .token = of.token_text()};
    out.to = to;
    out.item = {.claim = of.self, .epoch = of.epoch_of(kind)};
    if (kind == command_kind::acquire) {
        out.ttl = of.ttl_of(kind);
        out.fence_ttl = fence_of(of, 0).ttl;
        out.native = of.sets_natively();
        out.by = out.native ? forever : of.vote_by();
        return out;
    }
    // Without a token there is no counter to raise. A removal also raises the counters that are
    // known to be lower than the token, which saves the next owner a raise.
    const std::uint64_t token = of.fencing_token();
    if (token != 0 && (kind != command_kind::remove || of.votes.has_counter_below(token))) {
        out.token = token;
        out.fence_ttl = fence_of(of, token).ttl;
    }
    if (kind == command_kind::remove) {
        publish_where_heard(of, out.item, to);
        return out;
    }
    out.ttl = of.ttl_of(kind);
    if (rules_.guarded()) { // no script of the plain protocol knows a deadline
        out.by = of.is_held() ? of.deadline() : of.vote_by();
    }
    return out;
}

// Publishes on the arbiter alone if it has the key and reported no subscribers last time, else on
// all masters. The channel of a slot is that of its pool, which the script for several locks does
// not have.
void wire::publish_where_heard(const claim& ended, frame::item& one, master_set to) const {
    if (!rules_.pushes || !ended.publishes_ || ended.is_slot()) {
        return;
    }
    const std::uint64_t lock = hash_of_key(ended.key());
    const std::size_t arbiter = masters_.arbiter_of(lock);
    // Where the key is missing, nothing is removed, and nothing published.
    const bool alone = arbiter != nobody && (to & set_of(arbiter)) != 0
                       && ended.votes.of[arbiter].until() != never && audience_.none(lock);
    one.publishes = alone ? set_of(arbiter) : to;
    one.lock = lock;
}

void wire::queue(claim& of, command_kind kind, master_set to, bool alone, time_point now) {
    if (to == 0) {
        return;
    }
    frames_.add(command_for(of, kind, to), alone, now);
    of.queued_in = frames_.turn();
    wants_write_ = true;
    if (frames_.full()) {
        flush();
    }
}

void wire::flush() {
    frames_.flush([this](const frame& what) { send_frame(what); });
}

void wire::send_frame(const frame& what) {
    const bool removes = what.kind == command_kind::remove;
    const bool certifies = what.native && rules_.guarded();
    const std::string_view record = rules_.guarded() ? rules_.record_key : std::string_view();
    const first_counter first = what.has_counters() && what.kind == command_kind::acquire
                                    ? masters_.first_counter_at(frames_.added_at())
                                    : first_counter();
    std::size_t common = 0;
    command_variant said = command_variant::native;
    std::array<std::uint64_t, masters_max> marks{};
    for (const std::size_t i : each_of(what.to)) {
        connection& link = *masters_[i].link;
        const command_variant how = what.native
                                        ? command_variant::native
                                        : link.commands().of(lock_form::exclusive, what.kind, true);
        if (common == 0 || how != said) { // nearly always the same for all masters
            call_.clear();
            frames_.write(call_, what, how, record, first);
            if (certifies) {
                append_command(call_, {"GET", record}); // the certificate
            }
            common = call_.size();
            said = how;
        }
        call_.resize(common);
        if (removes) {
            frames::write_publishes(call_, what, i);
        } else if (!what.native && rules_.guarded()) {
            link.append_guard(call_, what.by_first);
        }
        marks[i] = masters_.send(
            i,
            call_,
            {.kind = what.kind,
             .how = how,
             .in_frame = true,
             .locks = static_cast<std::uint8_t>(what.items.size()),
             .replies = static_cast<std::uint8_t>(
                 (what.native ? what.items.size() : 1) + (certifies ? 1 : 0)),
             .certified = certifies,
             .record = link.record(),
             .to = this,
             .subject = what.self},
            frames_.added_at());
        if (certifies) {
            link.keep_clock(frames_.added_at());
        }
    }
    if (removes || certifies) {
        note_sent(what, marks);
    }
}

// `marks`: the end of the call in the stream to each master.
void wire::note_sent(const frame& what, std::span<const std::uint64_t> marks) {
    for (const frame::item& each : what.items) {
        claim* const owner = claims_.find(each.claim);
        for (const std::size_t i : each_of(owner != nullptr ? what.to : 0)) {
            if (what.kind == command_kind::remove) {
                keep_mark(*owner, i, marks[i]);
            } else {
                owner->votes.of[i].unvouched = true;
            }
        }
    }
}

} // namespace redlock::core
