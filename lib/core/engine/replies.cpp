#include "replies.hpp"

#include "core/base/decisions.hpp"
#include "core/bytes/form.hpp"
#include "core/bytes/keys.hpp"

#include <algorithm>
#include <chrono>
#include <string>

namespace redlock::core {

namespace {

answer read(const sent_command& command, const reply& got) noexcept {
    switch (command.kind) {
    case command_kind::acquire:
        return read_acquire(got, command.how);
    case command_kind::raise:
        return read_raise(got, command.how);
    case command_kind::remove:
        return read_remove(got, command.how);
    default: // extend, heal
        return read_extend(got, command.how);
    }
}

// A cluster node refuses keys in different hash slots. Adds the keys and the remedy to the error.
std::string text_of_error(const claim& owner, std::string_view error) {
    if (error.empty()) {
        return "unexpected reply";
    }
    std::string text(error);
    if (owner.form != lock_form::all || !text.starts_with("CROSSSLOT")) {
        return text;
    }
    std::string_view first;
    std::string_view other;
    for_each_packed(owner.key, [&](std::string_view key) {
        if (first.empty()) {
            first = key;
        } else if (other.empty() && hash_part(key) != hash_part(first)) {
            other = key;
            text.append(": ").append(first).append(" and ").append(other).append(" hash apart");
        }
    });
    return text + "; a hash tag in key_prefix, as {locks}, keeps all names in one slot";
}

} // namespace

// Handles an error that concerns the server.
void replies::notice(std::size_t master, std::string_view error, time_point now) {
    if (means_ineligible(error)) {
        masters_.introduce_again(master, now);
        sender_.write_soon();
    }
}

void replies::notice(std::size_t master, const answer& got, time_point now) {
    const bool quarantined = masters_[master].otherwise == vote::quarantined; // already
    masters_.counters(master).late += got.late ? 1U : 0U;
    masters_.counters(master).healed += got.healed ? 1U : 0U;
    if (got.quarantine > std::chrono::microseconds::zero()) {
        events_.voters_changed(
            masters_.quarantine(master, got.quarantine, got.quarantine_ends_us, now), now);
    }
    if (got.forgot && !quarantined) { // else the health checks ask again
        masters_.introduce_again(master, now);
        sender_.write_soon();
    }
}

void replies::replied(const arrival& at, const reply* got) {
    if (got == nullptr) {
        dropped(at);
    } else if (at.command.shared) {
        batch_replied(at, *got);
    } else {
        const answer meaning = read(at.command, *got);
        note_server(at, *got, meaning);
        if (claim* const owner = claims_.find(at.command.subject)) {
            claim_replied(*owner, at, meaning, got->is_error() ? got->text : "");
        } // else nothing is pending for it
    }
}

// Updates what is known of the server from a reply.
void replies::note_server(const arrival& at, const reply& answered, const answer& got) {
    connection& link = *masters_[at.master].link;
    if (at.command.how == command_variant::eval || got.use_eval) {
        link.learn(at.command, answered, got);
    }
    if (got.server_us != 0) {
        link.learn_clock(got.server_us, at.sent, at.now);
    }
    if (got.late || got.healed || got.forgot || got.said == vote::quarantined) {
        notice(at.master, got, at.now);
    }
    if (got.unpublished) {
        link.published("the server does not let a script PUBLISH", at.now);
    } else if (at.command.publishes && got.said == vote::granted) {
        link.published({}, at.now);
    }
}

// `lock`: the hash of its key. The subscription of this process is not counted as another's. Any
// master may have counted others: the arbiter publishes nothing if it did not have the key.
void replies::note_listeners(
    const arrival& at, std::uint64_t lock, std::uint64_t count, const claim* ended) {
    if (count == 0 && audience_.none(lock) && audience_.yields_until(lock) == never) {
        return; // as before
    }
    const std::size_t arbiter = masters_.arbiter_of(lock);
    const bool decides = arbiter == nobody || arbiter == at.master;
    if (decides) {
        audience_.counted(lock, count);
    }
    if (count > 0 && ended != nullptr) {
        std::string channel;
        assign_channel(channel, ended->key);
        count -= masters_[at.master].pushes->watches(channel) ? 1U : 0U;
    }
    if (count > 0) {
        audience_.others_wait(
            lock,
            later(at.now, masters_.yield()),
            ended != nullptr ? ended->token_text().substr(0, release_name_size) : "",
            count);
    } else if (decides) {
        audience_.nobody_waits(lock);
    }
}

// `error`: the server's, or empty.
void replies::claim_replied(
    claim& owner, const arrival& at, const answer& read, std::string_view error) {
    answer got = read;
    if (at.command.kind != command_kind::remove && got.said == vote::granted
        && !masters_[at.master].is_fit()) { // it became ineligible while the command was in flight
        got = {.said = vote::error};
        error = masters_[at.master].link->judgement().text;
    }
    if (at.command.asks() && owner.ended()) { // its removal follows this command
        if (wrong::older_grant_counted && got.said == vote::granted) {
            events_.answered(owner, at, got);
        }
        return;
    }
    if (got.use_eval) {
        events_.again(owner, at, got);
        return;
    }
    if (got.said == vote::error || got.late) {
        explain(owner, at.master, got, error);
    }
    const auto took = at.now - at.sent;
    owner.votes.of[at.master].latency = ballot::latency_of(took);
    if (!owner.is_ending()) { // removals, which are as many, have the same latency
        masters_.counters(at.master).latency.add(took);
    }
    events_.answered(owner, at, got);
}

void replies::explain(claim& owner, std::size_t master, const answer& got, std::string_view error) {
    if (got.said != vote::error) {
        owner.votes.note(master, "it came after its time and was not executed");
    } else if (got.forgot && error.empty()) {
        owner.votes.note(master, "its memory record has changed");
    } else {
        owner.votes.note(master, text_of_error(owner, error));
    }
}

void replies::dropped(const arrival& at) {
    if (at.command.shared) {
        batch_dropped(at);
    } else if (claim* const owner = claims_.find(at.command.subject)) {
        note_stray(*owner, at.master, at.command.kind);
        claim_unreachable(*owner, at);
    }
}

void replies::claim_unreachable(claim& owner, const arrival& at) {
    const bool asks = at.command.asks();
    if (asks && owner.ended()) {
        return;
    }
    if (asks) {
        owner.votes.note(at.master, masters_[at.master].link->why_down());
    }
    events_.answered(owner, at, {.said = vote::unreachable});
}

// The connection broke before the reply to a command that may set the key. The server may have it
// in a buffer, and read it after those of the next connection.
void replies::note_stray(claim& owner, std::size_t master, command_kind what) const {
    time_point refused_from = never;
    if (what == command_kind::acquire) {
        owner.need_more().left_behind.sets |= set_of(master);
        refused_from = owner.vote_by;
    } else if (what == command_kind::heal) {
        owner.need_more().left_behind.heals |= set_of(master);
        refused_from = std::max(owner.believed_until, owner.vote_by); // the latter of an attach
    } else {
        return;
    }
    const time_point until =
        rules_.guarded() && !sender::sets_natively(owner)
            ? later(refused_from, masters_[master].link->clock_error(refused_from))
            : owner.expires_at;
    owner.more->left_behind.until = std::max(owner.more->left_behind.until, until);
}

} // namespace redlock::core
