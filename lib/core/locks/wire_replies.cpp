// The replies to commands of claims, and what they show of the server. Those to calls for several
// locks: frame_replies.cpp.

#include "core/base/histogram_access.hpp"
#include "core/bytes/form.hpp"
#include "core/bytes/keys.hpp"
#include "wire.hpp"

namespace redlock::core {

namespace {

// A cluster node refuses keys in different hash slots. Adds the keys and the remedy to the error.
std::string text_of_error(const claim& owner, std::string_view error) {
    if (error.empty()) {
        return "unexpected reply";
    }
    std::string text(error);
    if (owner.form() != lock_form::all || !text.starts_with("CROSSSLOT")) {
        return text;
    }
    std::string_view first;
    std::string_view other;
    for_each_packed(owner.key(), [&](std::string_view key) {
        if (first.empty()) {
            first = key;
        } else if (other.empty() && hash_part(key) != hash_part(first)) {
            other = key;
            text.append(": ").append(first).append(" and ").append(other).append(" hash apart");
        }
    });
    return text + "; a hash tag in key_prefix, as {locks}, keeps all names in one slot";
}

// `error`: the server's, or empty.
std::string explain(const claim& owner, const answer& got, std::string_view error) {
    return got.said != vote::error       ? "it came after its time and was not executed"
           : got.forgot && error.empty() ? "its memory record has changed"
                                         : text_of_error(owner, error);
}

} // namespace

// --- One claim

void wire::replied(const arrival& at, const reply* got) {
    if (at.command.in_frame) {
        got != nullptr ? frame_replied(at, *got) : frame_dropped(at);
        return;
    }
    claim* const owner =
        claims_.find(at.command.subject.to<claim>()); // null: nothing is pending for it
    if (got != nullptr) {
        const answer meaning = read_answer(at.command.kind, *got, at.command.how);
        note_server(at, *got, meaning);
        if (owner != nullptr) {
            claim_replied(*owner, at, meaning, got->error());
        }
    } else if (owner != nullptr) {
        dropped(*owner, at);
    }
}

// `error`: the server's, or empty.
void wire::claim_replied(
    claim& owner, const arrival& at, const answer& read, std::string_view error) {
    answer got = read;
    const command_kind kind = at.command.kind;
    if (kind != command_kind::remove && got.said == vote::granted
        && !masters_[at.master].is_fit()) { // it became ineligible while the command was in flight
        got = {.said = vote::error};
        error = masters_[at.master].link->judgement().text;
    } else if (
        kind == command_kind::acquire && got.said == vote::granted && owner.fencing()
        && got.counter == 0) { // no guarded script replies like this
        got.said = vote::error;
    }
    if (at.command.asks() && owner.ended()) { // its removal follows this command
        if (wrong::older_grant_counted && kind == command_kind::acquire
            && got.said == vote::granted) {
            events_.answered(owner, at, got);
        }
        return;
    }
    if (got.use_eval) {
        events_.again(owner, at, got.for_one);
        return;
    }
    if (got.said == vote::error || got.late) {
        owner.votes.note(at.master, explain(owner, got, error));
    }
    const auto took = at.now - at.sent;
    owner.votes.of[at.master].latency = ballot::latency_of(took);
    if (!owner.is_ending()) { // removals, which are as many, have the same latency
        detail::histogram_access::add(masters_.counters(at.master).latency, took);
    }
    if (wrong::late_rollback_to_non_voters && got.healed && owner.is_held()) {
        send(at.master, {"DEL", owner.key()}, {.kind = command_kind::ping}, at.now);
    }
    events_.answered(owner, at, got);
}

// The connection broke before the reply. The server may have a command that sets the key in a
// buffer, and read it after those of the next connection.
void wire::dropped(claim& owner, const arrival& at) {
    const command_kind kind = at.command.kind;
    if (kind == command_kind::acquire || kind == command_kind::heal) {
        const time_point by = owner.executed_by(kind);
        const bool limited = rules_.guarded() && !owner.sets_natively();
        owner.note_stray(
            at.master,
            kind,
            limited ? later(by, masters_[at.master].link->clock_error(by)) : owner.expires_at());
    }
    unreachable(owner, at);
}

void wire::unreachable(claim& owner, const arrival& at) {
    if (at.command.asks()) {
        if (owner.ended()) {
            return;
        }
        owner.votes.note(at.master, masters_[at.master].link->why_down());
    }
    events_.answered(owner, at, {.said = vote::unreachable});
}

// --- What a reply shows of its server

void wire::note_server(const arrival& at, const reply& answered, const answer& got) {
    connection& link = *masters_[at.master].link;
    if (at.command.how == command_variant::eval || got.use_eval) {
        link.learn(at.command, answered, got);
    }
    if (got.server_us != 0) {
        link.learn_clock(got.server_us, at.sent, at.now);
    }
    if (got.late || got.healed || got.forgot || got.said == vote::quarantined) {
        const bool quarantined = masters_[at.master].otherwise == vote::quarantined; // already
        masters_.counters(at.master).late += got.late ? 1U : 0U;
        masters_.counters(at.master).healed += got.healed ? 1U : 0U;
        if (got.quarantine > std::chrono::microseconds::zero()) {
            events_.voters_changed(
                masters_.quarantine(at.master, got.quarantine, got.quarantine_ends_us, at.now),
                at.now);
        }
        if (got.forgot && !quarantined) { // else the health checks ask again
            introduce_again(at.master, at.now);
        }
    }
    if (got.unpublished) {
        link.published("the server does not let a script PUBLISH", at.now);
    } else if (at.command.publishes && got.said == vote::granted) {
        link.published({}, at.now);
    }
}

void wire::introduce_again(std::size_t master, time_point now) {
    masters_.introduce_again(master, now);
    wants_write_ = true;
}

// A removal has published on this master, if it was to. The subscription of this process is not
// counted as another's. Any master may have counted others: the arbiter publishes nothing if it did
// not have the key.
void wire::note_published(const arrival& at, const frame::item& each, std::uint64_t listening) {
    if ((each.publishes & set_of(at.master)) == 0) {
        return;
    }
    masters_[at.master].link->published({}, at.now);
    const std::uint64_t lock = each.lock;
    if (listening == 0 && audience_.none(lock) && audience_.yields_until(lock) == never) {
        return; // as before
    }
    const std::size_t arbiter = masters_.arbiter_of(lock);
    const bool decides = arbiter == nobody || arbiter == at.master;
    if (decides) {
        audience_.counted(lock, listening);
    }
    const claim* const ended = claims_.find(each.claim);
    if (listening > 0 && ended != nullptr) {
        listening -= masters_[at.master].pushes->watches(channel_of(ended->key())) ? 1U : 0U;
    }
    if (listening > 0) {
        audience_.others_wait(
            lock,
            later(at.now, masters_.yield()),
            ended != nullptr ? ended->token_text().substr(0, release_name_size) : "",
            listening);
    } else if (decides) {
        audience_.nobody_waits(lock);
    }
}

} // namespace redlock::core
