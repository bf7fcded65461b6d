// The replies to commands of claims, alone or in calls for several, and what they show of the
// server.

#include "core/base/histogram_access.hpp"
#include "core/bytes/form.hpp"
#include "core/bytes/keys.hpp"
#include "wire.hpp"

#include <bit>

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

// An attempt to acquire a lock, or a part of one.
bool asks(command_kind kind) noexcept {
    return kind == command_kind::acquire || kind == command_kind::raise;
}

// Lock `n` of a call, in a set of its locks (`receiver::granted`).
std::uint64_t place_of(const frame& what, std::size_t n) noexcept {
    return std::uint64_t{1} << (what.items.size() - 1 - n);
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
            claim_replied(*owner, told_by(at), meaning, got->error());
        }
    } else if (owner != nullptr) {
        dropped(*owner, told_by(at));
    }
}

// Of a call for several locks, `epoch` is that of each lock.
told wire::told_by(const arrival& at) const {
    const master& one = masters_[at.master];
    const command_kind kind = at.command.kind;
    return {
        .master = at.master,
        .kind = kind,
        .epoch = at.command.epoch,
        .fit = one.is_fit(),
        .quarantined = one.link->quarantined(at.now),
        .counts = kind != command_kind::remove || masters_.is_known_member(at.master),
        .sent = at.sent,
        .now = at.now};
}

// `error`: the server's, or empty.
void wire::claim_replied(
    claim& owner, const told& from, const answer& read, std::string_view error) {
    answer got = read;
    const command_kind kind = from.kind;
    if (kind != command_kind::remove && got.said == vote::granted
        && !from.fit) { // it became ineligible while the command was in flight
        got = {.said = vote::error};
        error = masters_[from.master].link->judgement().text;
    } else if (
        kind == command_kind::acquire && got.said == vote::granted && owner.fencing()
        && got.counter == 0) { // no guarded script replies like this
        got.said = vote::error;
    }
    if (asks(kind) && owner.ended()) { // its removal follows this command
        if (wrong::older_grant_counted && kind == command_kind::acquire
            && got.said == vote::granted) {
            events_.answered(owner, from, got);
        }
        if (kind == command_kind::acquire && !got.use_eval) { // what it shows of the master counts
            master_metrics& theirs = masters_.counters(from.master);
            theirs.acquire_votes[got.said] += owner.said(from.master) == vote::pending ? 1U : 0U;
            detail::histogram_access::add(theirs.latency, from.now - from.sent);
        }
        return;
    }
    if (got.use_eval) {
        events_.again(owner, from, got.for_one);
        return;
    }
    if (got.said == vote::error || got.late) {
        owner.votes.note(from.master, explain(owner, got, error));
    }
    const auto took = from.now - from.sent;
    owner.votes.of[from.master].latency = ballot::latency_of(took);
    if (!owner.is_ending()) { // removals, which are as many, have the same latency
        detail::histogram_access::add(masters_.counters(from.master).latency, took);
    }
    if (wrong::late_rollback_to_non_voters && got.healed && owner.is_held()) {
        send(from.master, {"DEL", owner.key()}, {.kind = command_kind::ping}, from.now);
    }
    events_.answered(owner, from, got);
}

// The connection broke before the reply. The server may have a command that sets the key in a
// buffer, and read it after those of the next connection.
void wire::dropped(claim& owner, const told& from) {
    const command_kind kind = from.kind;
    if (kind == command_kind::acquire || kind == command_kind::heal) {
        const time_point by = owner.executed_by(kind);
        const bool limited = rules_.guarded() && !owner.sets_natively();
        owner.note_stray(
            from.master,
            kind,
            limited ? later(by, masters_[from.master].link->clock_error(by)) : owner.expires_at());
    }
    unreachable(owner, from);
}

void wire::unreachable(claim& owner, const told& from) {
    if (asks(from.kind)) {
        if (owner.ended()) {
            return;
        }
        owner.votes.note(from.master, masters_[from.master].link->why_down());
    }
    events_.answered(owner, from, {.said = vote::unreachable});
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
            masters_.introduce_again(at.master, at.now);
        }
    }
    if (got.unpublished) {
        link.published("the server does not let a script PUBLISH", at.now);
    } else if (at.command.publishes && got.said == vote::granted) {
        link.published({}, at.now);
    }
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
    if (listening == 0 && audience_.none(lock) && audience_.waited(lock) == nullptr) {
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

// --- Calls for several locks: divides each reply among the claims

void wire::frame_replied(const arrival& at, const reply& answered) {
    frame& what = *frames_.find(at.command.subject.to<frame>());
    if (what.native) {
        set_replied(at, what, answered);
        if (at.command.replies == 1) {
            frames_.done(what);
        }
        return;
    }
    frame_answers all(
        answered, at.command.kind, at.command.how, what.has_counters(), what.items.size());
    note_server(at, answered, all.call());
    if (at.command.kind == command_kind::remove && all.all_granted()) {
        removed(at, what);
    } else {
        each_replied(at, what, all);
    }
    frames_.done(what);
}

void wire::removed(const arrival& at, const frame& what) {
    for (const frame::item& each : what.items) {
        note_published(at, each, 0);
    }
    events_.removed(told_by(at), what.items);
}

void wire::each_replied(const arrival& at, const frame& what, frame_answers& all) {
    const bool extends = rules_.guarded() && at.command.kind == command_kind::extend;
    for (const frame::item& each : what.items) {
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
                note_server(at, {}, got);
            } else if (got.said == vote::granted) {
                note_published(at, each, got.counter);
            }
            if (means_ineligible(all.error())) {
                masters_.introduce_again(at.master, at.now);
            }
        }
        if (owner != nullptr) {
            told from = told_by(at); // for each: a reply can change what the master is fit for
            from.epoch = each.epoch;
            claim_replied(*owner, from, got, all.error());
        }
    }
}

void wire::usual_reply(const arrival& at, std::uint64_t locks) {
    frame& what = *frames_.find(at.command.subject.to<frame>());
    if (at.command.kind == command_kind::remove) {
        removed(at, what);
    } else {
        sets_replied(at, what, locks, {.said = vote::granted}, {});
    }
    if (at.command.certified || !what.native || at.command.replies == std::popcount(locks)) {
        frames_.done(what);
    }
}

// A reply to SETs that is not one of `granted`: for a lock, or the certificate that follows them.
// The connection holds grants back until the certificate arrives, but no other reply.
void wire::set_replied(const arrival& at, const frame& what, const reply& answered) {
    const std::size_t place = what.items.size() + (rules_.guarded() ? 1 : 0) - at.command.replies;
    if (place == what.items.size()) {
        certified(at, what, answered);
        return;
    }
    const answer got = read_answer(command_kind::acquire, answered, command_variant::native);
    sets_replied(at, what, place_of(what, place), got, answered.error());
}

// The same reply to the SETs of all these locks.
void wire::sets_replied(
    const arrival& at,
    const frame& what,
    std::uint64_t locks,
    const answer& got,
    std::string_view error) {
    const bool grants = got.said == vote::granted;
    const auto took = at.now - at.sent;
    const auto latency = ballot::latency_of(took);
    while (locks != 0) {
        const frame::item& each = *(what.items.end() - std::bit_width(locks));
        locks &= ~std::bit_floor(locks);
        claim* const owner = claims_.find(each.claim);
        if (owner == nullptr) {
            continue;
        }
        ballot& theirs = owner->votes.of[at.master];
        told from = told_by(at);
        from.epoch = each.epoch;
        if (!grants || owner->ended() || !from.fit) {
            theirs.unvouched = theirs.unvouched && !grants;
            claim_replied(*owner, from, got, error);
        } else { // the most frequent reply: what `claim_replied` does then
            theirs.unvouched = false;
            theirs.latency = latency;
            detail::histogram_access::add(masters_.counters(at.master).latency, took);
            events_.answered(*owner, from, got);
        }
    }
}

void wire::certified(const arrival& at, const frame& what, const reply& answered) {
    connection& link = *masters_[at.master].link;
    const bool remembers = wrong::uncertified_counts || link.certifies(at.command, answered);
    answer got{.said = vote::granted};
    if (answered.is_error()) { // nothing shows that it has lost its memory
        got = {.said = vote::error, .forgot = true};
    } else if (!remembers) {
        got = {.said = vote::quarantined, .forgot = true, .quarantine = link.quarantine_time()};
    }
    note_server(at, answered, got);
    sets_replied(at, what, link.take_granted(), got, answered.error());
}

void wire::frame_dropped(const arrival& at) {
    frame& what = *frames_.find(at.command.subject.to<frame>());
    const std::size_t certificate = rules_.guarded() ? 1 : 0;
    const std::size_t replied =
        what.native ? what.items.size() + certificate - at.command.replies : 0;
    const std::uint64_t granted = masters_[at.master].link->take_granted();
    told from = told_by(at);
    for (std::size_t n = 0; n < what.items.size(); ++n) {
        from.epoch = what.items[n].epoch;
        claim* const owner = claims_.find(what.items[n].claim);
        if (owner != nullptr && (n >= replied || (granted & place_of(what, n)) != 0)) {
            dropped(*owner, from);
        }
    }
    frames_.done(what);
}

void wire::drop_unsent(std::size_t master, time_point now) {
    const bool up = masters_[master].link->up();
    for (const frames::unsent& one : frames_.drop(master, up)) {
        claim* const owner = claims_.find(one.item.claim);
        const sent_command command{.kind = one.kind, .epoch = one.item.epoch};
        const told from = told_by({.master = master, .command = command, .now = now});
        if (owner != nullptr && up && !owner->ended()) {
            events_.answered(*owner, from, {.said = masters_[master].otherwise});
        } else if (owner != nullptr && !up) {
            unreachable(*owner, from);
        }
    }
}

} // namespace redlock::core
