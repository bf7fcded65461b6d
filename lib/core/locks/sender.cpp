// Commands for one lock.

#include "sender.hpp"

#include "core/base/decisions.hpp"
#include "core/bytes/command.hpp"
#include "core/bytes/keys.hpp"

namespace redlock::core {

namespace {

bool deletes_blindly(const claim& ended) noexcept {
    if (wrong::rollback_without_compare && ended.believed_until == never) {
        return true;
    }
    if (wrong::release_without_compare && ended.believed_until != never) {
        return true;
    }
    return false;
}

// Whether a separate PUBLISH follows the removal: waiters for several slots subscribe to the
// channel of the pool, which the script for several locks does not have.
bool publishes_separately(const claim& ended) noexcept {
    return ended.is_slot() && ended.form == lock_form::all;
}

} // namespace

void sender::send(
    std::size_t master,
    std::initializer_list<std::string_view> arguments,
    const sent_command& what,
    time_point now) {
    bytes_.clear();
    append_command(bytes_, arguments);
    send(master, bytes_, what, now);
}

bool sender::shares_calls(const claim& of, command_kind kind) const noexcept {
    const bool may = kind == command_kind::extend || kind == command_kind::acquire
                     || kind == command_kind::remove;
    return may && of.form == lock_form::exclusive;
}

lock_names sender::names_of(const claim& of) {
    if (of.form == lock_form::all) {
        fence_key_.clear();
    } else if (of.is_slot()) {
        assign_slot_fence_key(fence_key_, of.key);
    } else {
        assign_fence_key(fence_key_, rules_.key_prefix, resource_of(of.key, rules_.key_prefix));
    }
    return {of.key, fence_key_, rules_.record_key, of.token_text()};
}

// The intent with which a writer that finds readers keeps new readers out. A writer that does not
// wait has none.
writer_intent sender::intent_of(const claim& attempt) const {
    const bool keeps = attempt.intent() != 0;
    return {keeps ? rules_.intent_lease() : std::chrono::milliseconds(0), attempt.intent()};
}

std::string_view sender::channel_of(std::string_view key) {
    assign_channel(channel_, key);
    return channel_;
}

void sender::acquire(claim& attempt, master_set to, time_point now) {
    if (shares_calls(attempt, command_kind::acquire)) {
        queue(attempt, command_kind::acquire, to, now);
        return;
    }
    flush(); // it may need a key that a removal of this turn frees
    for (const std::size_t i : each_of(to)) {
        send_alone(attempt, command_kind::acquire, i, attempt.handoffs, now);
    }
}

void sender::send_alone(
    const claim& of, command_kind kind, std::size_t master, std::uint16_t round, time_point now) {
    const bool acquires = kind == command_kind::acquire;
    const bool keeps = kind == command_kind::extend || kind == command_kind::heal;
    // The attempt may be won already when its raise is repeated in another variant.
    const bool raises = kind == command_kind::raise && of.is_asking();
    const std::uint64_t token = acquires ? 0 : raises ? of.asking().token() : of.fencing_token;
    const bool publishes =
        kind == command_kind::extend && of.form == lock_form::shared && rules_.pushes;
    const command_variant how = masters_[master].link->commands().of(of.form, kind);
    bytes_.clear();
    append_form_command(
        bytes_,
        {.kind = kind,
         .form = of.form,
         .how = how,
         .names = names_of(of),
         .fencing = fence_of(of, token),
         .ttl = acquires ? of.asked_ttl : of.extending.ttl,
         .guard = masters_[master].link->guard_until(
             keeps && of.is_held() ? of.held().deadline() : of.vote_by),
         .channel = publishes ? channel_of(of.key) : std::string_view(),
         .intent = acquires ? intent_of(of) : writer_intent()});
    send(
        master,
        bytes_,
        {.kind = kind,
         .how = how,
         .form = of.form,
         .round = round,
         .to = &replies_,
         .subject = of.self},
        now);
}

void sender::extend(claim& lease, master_set to, time_point now) {
    const std::uint16_t round = lease.extending.round;
    if (!shares_calls(lease, command_kind::extend)) {
        for (const std::size_t i : each_of(to)) {
            extend(lease, i, round, now);
        }
    } else if (lease.held().may_send(lease, round, now)) {
        queue(lease, command_kind::extend, to, now);
    }
}

void sender::extend(claim& lease, std::size_t master, std::uint16_t round, time_point now) {
    if (lease.is_held() && lease.held().may_send(lease, round, now)) {
        send_alone(lease, command_kind::extend, master, round, now);
    }
}

void sender::remove(claim& ended, master_set to, time_point now) {
    if (!shares_calls(ended, command_kind::remove) || deletes_blindly(ended)) {
        send_removals(ended, to, now);
        return;
    }
    for (const std::size_t i : each_of(ended.ending().wanted() ? 0 : to)) {
        keep_mark(ended, i, not_written);
    }
    queue(ended, command_kind::remove, to, now);
    if (to == 0 || !rules_.pushes || !ended.announced || !ended.is_slot()) {
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
void sender::send_removals(claim& ended, master_set to, time_point now) {
    command_variant said = command_variant::native; // nearly always the same for all
    std::string_view channel;
    for (const std::size_t i : each_of(to)) {
        const command_variant how =
            masters_[i].link->commands().of(ended.form, command_kind::remove);
        if (how != said) {
            channel = write_removal(ended, how);
            said = how;
        }
        send_removal(ended, i, how, channel, now);
    }
}

std::string_view sender::write_removal(const claim& ended, command_variant how) {
    bytes_.clear();
    if (deletes_blindly(ended)) {
        append_command(bytes_, {"DEL", ended.key});
        return {};
    }
    std::string_view channel;
    if (rules_.pushes && (ended.announced || ended.drops_intent)) {
        channel = channel_of(ended.queue_key());
    }
    append_form_command(
        bytes_,
        {.kind = command_kind::remove,
         .form = ended.form,
         .how = how,
         .names = names_of(ended),
         .fencing = fence_of(ended, ended.fencing_token),
         .channel = publishes_separately(ended) ? std::string_view() : channel,
         .intent = {.name = ended.drops_intent ? ended.intent() : 0}});
    return channel;
}

void sender::send_removal(
    claim& ended,
    std::size_t master,
    command_variant how,
    std::string_view channel,
    time_point now) {
    const bool by_script = !publishes_separately(ended);
    const std::uint64_t mark = send(
        master,
        bytes_,
        {.kind = command_kind::remove,
         .how = how,
         .form = ended.form,
         .publishes = by_script && !channel.empty(),
         .to = &replies_,
         .subject = ended.self},
        now);
    keep_mark(ended, master, mark);
    if (!by_script && !channel.empty()) {
        send_publish(ended, master, channel, now);
    }
}

void sender::send_publish(
    const claim& ended, std::size_t master, std::string_view channel, time_point now) {
    publish_.clear();
    append_publish(publish_, channel, ended.token_text());
    send(master, publish_, {.kind = command_kind::publish}, now);
}

} // namespace redlock::core
