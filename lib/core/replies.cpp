// Assigns each reply to its claim or query in the engine, and handles the commands of a broken
// connection.

#include "decisions.hpp"
#include "engine.hpp"
#include "hash.hpp"

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
    case command_kind::extend:
    case command_kind::heal:
        return read_extend(got, command.how);
    default:
        return {.said = vote_on_exists(got)};
    }
}

// Whether this claim is an attach that is not decided yet.
bool attaches(const claim& owner) noexcept {
    return owner.is_asking() && owner.asking().attaches();
}

} // namespace

// Handles an error that concerns the server.
void engine::notice(std::size_t master, std::string_view error, time_point now) {
    if (means_ineligible(error)) {
        masters_.introduce_again(master, now);
        sender_.write_soon();
    }
}

void engine::notice(std::size_t master, const answer& got, time_point now) {
    const bool quarantined = masters_[master].otherwise == vote::quarantined; // already
    counters_of(master).late += got.late ? 1U : 0U;
    counters_of(master).healed += got.healed ? 1U : 0U;
    if (got.quarantine > std::chrono::microseconds::zero()) {
        voters_changed(
            masters_.quarantine(master, got.quarantine, got.quarantine_ends_us, now), now);
    }
    if (got.forgot && !quarantined) { // else the health checks ask again
        masters_.introduce_again(master, now);
        sender_.write_soon();
    }
}

void engine::replied(
    std::size_t master,
    const sent_command& command,
    const reply& answered,
    time_point sent,
    time_point now) {
    if (answered.is_error()) {
        notice(master, answered.text, now);
    }
    if (command.kind == command_kind::get || command.kind == command_kind::pttl) {
        if (query* const asked = queries_.find(command.subject)) {
            asked->answered(master, command.kind, answered);
            if (asked->complete()) {
                end_query(*asked);
            }
        }
        return;
    }
    if (command.kind == command_kind::lease_left) {
        lease_left_answered(master, command, answered, now);
        return;
    }
    if (command.kind == command_kind::scan_slots) {
        scan_answered(master, command, &answered, now);
        return;
    }
    if (command.kind == command_kind::take_turn || command.kind == command_kind::leave_queue) {
        queue_answered(master, command, answered, sent, now);
        return;
    }
    if (command.shared) {
        batch_replied(master, command, answered, sent, now);
        return;
    }
    const answer got = read(command, answered);
    note_server(master, command, answered, got, sent, now);
    if (claim* const owner = claims_.find(command.subject)) {
        claim_replied(
            *owner, master, command, got, answered.is_error() ? answered.text : "", sent, now);
    } // else nothing is pending for it
}

// Updates what is known of the server from a reply.
void engine::note_server(
    std::size_t master,
    const sent_command& command,
    const reply& answered,
    const answer& got,
    time_point sent,
    time_point now) {
    if (command.how == command_variant::eval || got.use_eval) {
        masters_[master].link->learn(command, answered, got);
    }
    if (got.server_us != 0) {
        masters_[master].link->learn_clock(got.server_us, sent, now);
    }
    if (got.late || got.healed || got.forgot || got.said == vote::quarantined) {
        notice(master, got, now);
    }
    if (got.unpublished) {
        masters_[master].link->published("the server does not let a script PUBLISH", now);
    } else if (command.publishes && got.said == vote::granted) {
        masters_[master].link->published({}, now);
        const claim* const ended = claims_.find(command.subject);
        if (ended != nullptr && ended->form == lock_form::exclusive && !ended->is_slot()) {
            const std::uint64_t lock = hash_of(ended->key);
            if (masters_.arbiter_of(lock) == master) {
                listeners_.counted(lock, got.counter);
            }
        }
    }
}

// `error`: the server's, or empty.
void engine::claim_replied(
    claim& owner,
    std::size_t master,
    const sent_command& command,
    const answer& got,
    std::string_view error,
    time_point sent,
    time_point now) {
    const bool asks = command.kind == command_kind::acquire || command.kind == command_kind::raise;
    if (wrong::older_grant_counted && command.kind == command_kind::acquire && owner.ended()
        && got.said == vote::granted) {
        const wait_queue* const again = queues_.find(owner.waiting_form(), owner.line_key());
        const operation* const newer = again != nullptr ? front_of(*again) : nullptr;
        claim* const attempt = newer != nullptr ? claims_.find(newer->attempt) : nullptr;
        if (attempt != nullptr && attempt->is_asking()) {
            acquire_answered(*attempt, master, attempt->handoffs, got, now);
        }
    }
    if (asks && owner.ended()) {
        return; // the claim has ended: its removal follows this command
    }
    if (command.kind == command_kind::remove && (got.use_eval || got.ask_exists)) {
        closing_moved(now); // it continues in another variant
    }
    if (got.use_eval) {
        use_eval(owner, master, command, got.for_one, now);
        return;
    }
    if (got.ask_exists) {
        const command_kind kind = command.kind == command_kind::remove
                                      ? command_kind::remove_exists
                                      : command_kind::extend_exists;
        sender_.send(
            master,
            {"EXISTS", owner.key},
            {.kind = kind, .round = command.round, .subject = owner.self},
            now);
        return;
    }
    if (got.said == vote::error) {
        owner.votes.note(
            master,
            got.forgot && error.empty() ? "its memory record has changed"
                                        : text_of_error(owner, error));
    } else if (got.late) {
        owner.votes.note(master, "it came after its time and was not executed");
    }
    owner.votes.of[master].latency = std::chrono::floor<decltype(ballot::latency)>(
        std::min<clock::duration>(now - sent, std::chrono::hours(1)));
    if (!owner.is_ending()) { // removals, which are as many, have the same latency
        counters_of(master).latency.add(now - sent);
    }
    claim_answered(owner, master, command, got, now);
}

// The server refused this variant of the command. The other variant is sent now, after later
// commands. For an attempt there is no removal among them, so it still counts.
void engine::use_eval(
    claim& owner, std::size_t master, const sent_command& command, bool alone, time_point now) {
    const bool asks = command.kind == command_kind::acquire || command.kind == command_kind::raise;
    if (asks && command.round != owner.handoffs) {
        return; // an earlier attempt on this claim
    }
    const bool extends = command.kind == command_kind::extend;
    if (sender_.shares_calls(owner, command.kind)) {
        if (!extends || attaches(owner)
            || (owner.is_held() && owner.held().may_send(owner, command.round, now))) {
            sender_.queue(owner, command.kind, set_of(master), now, alone);
        }
        return;
    }
    switch (command.kind) {
    case command_kind::acquire:
        sender_.acquire_again(owner, master, now);
        break;
    case command_kind::raise:
        sender_.raise(owner, master, now);
        break;
    case command_kind::remove:
        send_removals(owner, set_of(master), now);
        break;
    case command_kind::heal:
        attaches(owner) ? sender_.heal(owner, master, command.round, now)
                        : send_heal(owner, master, command.round, now);
        break;
    default:
        sender_.extend(owner, master, command.round, now);
        break;
    }
}

void engine::claim_answered(
    claim& owner,
    std::size_t master,
    const sent_command& command,
    const answer& got,
    time_point now) {
    switch (command.kind) {
    case command_kind::acquire:
        acquire_answered(owner, master, command.round, got, now);
        break;
    case command_kind::raise:
        raise_answered(owner, master, command.round, got, now);
        break;
    case command_kind::remove:
    case command_kind::remove_exists:
        removal_answered(owner, master, got.said, now);
        break;
    case command_kind::extend:
    case command_kind::extend_exists:
    case command_kind::heal:
        if (attaches(owner)) {
            if (command.kind != command_kind::heal) {
                ++counters_of(master).extend_votes[got.said];
            }
            answer vouched = got;
            const bool gone = got.said == vote::absent || got.said == vote::owned_by_other;
            const bool forgot = got.forgot || masters_[master].link->quarantined(now);
            if (gone && forgot) {
                vouched.said = vote::quarantined; // it may have had the key, and lost it
            }
            follow(owner, owner.asking().extended(owner, master, vouched, rules_), now);
        } else {
            extend_answered(owner, master, command, got, now);
        }
        break;
    default:
        break;
    }
}

void engine::dropped(std::size_t master, const sent_command& command, time_point now) {
    if (command.kind == command_kind::get || command.kind == command_kind::pttl) {
        if (query* const asked = queries_.find(command.subject)) {
            asked->dropped(master, masters_[master].link->why_down());
            if (asked->complete()) {
                end_query(*asked);
            }
        }
        return;
    }
    if (command.kind == command_kind::lease_left) {
        return; // the waiter tries again all the same
    }
    if (command.kind == command_kind::scan_slots) {
        scan_answered(master, command, nullptr, now);
        return;
    }
    if (command.kind == command_kind::take_turn || command.kind == command_kind::leave_queue) {
        queue_dropped(command, now);
        return;
    }
    if (command.shared) {
        batch_dropped(master, command, now);
        return;
    }
    if (claim* const owner = claims_.find(command.subject)) {
        note_stray(*owner, master, command.kind);
        claim_unreachable(*owner, master, command, now);
    }
}

void engine::claim_unreachable(
    claim& owner, std::size_t master, const sent_command& command, time_point now) {
    const bool asks = command.kind == command_kind::acquire || command.kind == command_kind::raise;
    if (asks && owner.ended()) {
        return;
    }
    if (asks) {
        owner.votes.note(master, masters_[master].link->why_down());
    }
    claim_answered(owner, master, command, {.said = vote::unreachable}, now);
}

} // namespace redlock::core
