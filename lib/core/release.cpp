// Release, rollback and pending removals: sends the pending removals of claims after
// their end (removal.hpp).
//
// A removal follows the SET on the same connection, whatever the reply to the SET is and without
// waiting for it. If that connection broke, the removal is sent again when the master is back.

#include "decisions.hpp"
#include "engine.hpp"
#include "form_command.hpp"
#include "keys.hpp"

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

} // namespace

void engine::release(handle name, time_point now) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || !lease->acts()) {
        return; // its removal has started
    }
    if (lease->is_lost()) {
        closing_moved(now);
        end_lost(*lease, now);
        finish_closing(now);
        return;
    }
    end_hold(*lease, now);
    end_user_extensions(*lease, errc::released);
    const bool late = now >= lease->held().held_until(); // and the timer has not fired yet
    if (wrong::old_holder_releases) {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            if (masters_[i].link->up()) {
                scratch_.clear();
                append_remove(
                    scratch_,
                    command_variant::eval,
                    native_delete::none,
                    lease->key,
                    lease->token_text(),
                    {});
                send(i, scratch_, {.kind = command_kind::ping, .subject = {}}, now);
            }
        }
    }
    if (late || !hand_off_locally(*lease, now)) {
        wrong::own_queue_not_notified ? void() : wake_queue(*lease, now);
        begin_removal(*lease, now);
    }
    finish_closing(now);
}

bool engine::abandon(handle name) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || !lease->acts()) {
        return false;
    }
    lost_ -= lease->is_lost() ? 1U : 0U;
    if (lease->is_held()) {
        end_user_extensions(*lease, errc::released);
    }
    timers_.cancel(lease->wake);
    wait_queue* const mine = queues_.find(lease->waiting_form(), lease->line_key());
    claims_.destroy(*lease);
    if (mine != nullptr) {
        end_queue(*mine);
    }
    if (life_ == life::closing && !waits_to_close()) {
        close_by_ = never; // the next event ends the closing
    }
    return true;
}

void engine::begin_removal(claim& ended, time_point now) {
    if (ended.queued_in == outbox_.turn()) {
        flush(); // it must not overtake its own acquire
    }
    const bool wanted = ended.acts(); // the result of a rollback is not needed
    const bool late = wanted && (ended.is_lost() || now >= ended.held().held_until());
    ended.operation = {};
    ended.end(
        {now,
         !wrong::released_after_loss && late,
         wanted ? later(now, rules_.master_timeout) : forever,
         ended.expires_at});
    if (wanted) {
        begin_votes_on_removal(ended);
    }
    const bool shares = shares_calls(ended, command_kind::remove) && !deletes_blindly(ended);
    master_set together = 0;
    const server_capabilities* written =
        nullptr; // the variant in scratch_: nearly always the same for all
    command_variant said = command_variant::native;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& mine = ended.votes.of[i];
        if (wrong::no_rollback_when_unknown && ended.believed_until == never
            && mine.said != vote::granted) {
            continue;
        }
        if (mine.asked) {
            const connection& link = *masters_[i].link;
            if (wrong::rollback_unordered && link.up() && mine.said == vote::timed_out) {
                masters_[i].link->closed("the rollback takes another one", now);
                written = nullptr;
            }
            ended.ending().add(i, link.up());
            if (link.up()) {
                if (!removals_.has_room(i)) {
                    removals_.search(i, now);
                    continue;
                }
                const server_capabilities& commands = link.commands();
                const command_variant how = commands.of(ended.form, command_kind::remove);
                if (shares && how != command_variant::native) {
                    together |= set_of(i);
                    continue;
                }
                if (written == nullptr || how != said
                    || commands.delete_command != written->delete_command) {
                    write_removal(ended, commands, how);
                    written = &commands;
                    said = how;
                }
                send_written_removal(ended, i, how, now);
            } else {
                mine.said = vote::unreachable;
            }
        }
    }
    if (together != 0) {
        queue_removal(ended, together, now);
    }
    decide_removal(ended, now);
}

// Queues the removal for a call with other locks.
void engine::queue_removal(claim& ended, master_set to, time_point now) {
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if ((to & set_of(i)) != 0) {
            if (ended.ending().sent(i)) {
                removals_.sent(i);
            }
            ended.votes.of[i].removal_mark = not_written;
        }
    }
    queue(ended, command_kind::remove, to, now);
    if (!rules_.pushes || !ended.announced || !ended.is_slot()) {
        return;
    }
    // The removal is sent first. Its script cannot publish on the channel of the pool, to which the
    // waiters subscribe.
    flush();
    assign_channel(channel_, ended.line_key());
    publish_.clear();
    append_publish(publish_, channel_, ended.token_text());
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if ((to & set_of(i)) != 0) {
            send(i, publish_, {.kind = command_kind::publish, .subject = {}}, now);
        }
    }
}

// Resets the votes, so that they explain the result of the removal only.
void engine::begin_votes_on_removal(claim& ended) {
    ended.votes.texts.clear();
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& mine = ended.votes.of[i];
        mine.left = lease_unknown;
        mine.latency = {};
        mine.said = mine.asked || masters_[i].admitted ? vote::pending : masters_[i].otherwise;
        if (!mine.asked && masters_[i].admitted) {
            ended.votes.note(i, "it was not asked: it had no vote on this lock");
        }
    }
}

void engine::send_removal(claim& ended, std::size_t master, command_variant how, time_point now) {
    if (shares_calls(ended, command_kind::remove) && !deletes_blindly(ended)
        && how != command_variant::native) {
        queue_removal(ended, set_of(master), now);
        return;
    }
    write_removal(ended, masters_[master].link->commands(), how);
    send_written_removal(ended, master, how, now);
}

void engine::write_removal(
    const claim& ended, const server_capabilities& commands, command_variant how, bool publishes) {
    scratch_.clear();
    channel_.clear();
    if (deletes_blindly(ended)) {
        append_command(scratch_, {"DEL", ended.key});
        return;
    }
    if (publishes && rules_.pushes && (ended.announced || ended.drops_intent)) {
        assign_channel(channel_, ended.line_key());
    }
    if (rules_.guarded()) {
        append_remove(
            scratch_,
            ended.form,
            how,
            names_of(ended),
            fence_of(ended, ended.fencing_token),
            publishes_separately(ended) ? std::string_view() : channel_,
            ended.drops_intent ? ended.intent : 0);
    } else {
        append_remove(
            scratch_, how, commands.delete_command, ended.key, ended.token_text(), channel_);
    }
}

// Whether a separate PUBLISH follows the removal: waiters for several slots subscribe to the
// channel of the pool, which the script for several locks does not have.
bool engine::publishes_separately(const claim& ended) noexcept {
    return ended.is_slot() && ended.form == lock_form::all;
}

void engine::send_written_removal(
    claim& ended, std::size_t master, command_variant how, time_point now) {
    if (ended.ending().sent(master)) {
        removals_.sent(master);
    }
    const bool by_script = how != command_variant::native && !publishes_separately(ended);
    ended.votes.of[master].removal_mark = send(
        master,
        scratch_,
        {.kind = command_kind::remove,
         .how = how,
         .form = ended.form,
         .publishes = by_script && !channel_.empty(),
         .subject = ended.self},
        now);
    if (!by_script && !channel_.empty()) {
        publish_.clear();
        append_publish(publish_, channel_, ended.token_text());
        send(master, publish_, {.kind = command_kind::publish, .subject = {}}, now);
    }
}

void engine::removal_answered(claim& ended, std::size_t master, vote what, time_point now) {
    ++counters_of(master).release_votes[what];
    ended.votes.of[master].said = what;
    const removal::receipt got = ended.ending().answered(
        master,
        what,
        ended.left_behind,
        now,
        later(now, rules_.health_check_interval),
        masters_.is_known_member(master));
    if (got.in_flight) {
        removals_.answered(master, now);
    }
    if (got.confirmed) {
        closing_moved(now);
    }
    counters_.removals_repeated += got.was_overdue ? 1U : 0U;
    decide_removal(ended, now);
}

// Reports the result once it is known; drops the claim once no removal is pending.
void engine::decide_removal(claim& ended, time_point now) {
    if (const auto result = ended.ending().decide(masters_.needed(), now)) {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            if ((result->silent & set_of(i)) != 0) {
                ended.votes.of[i].said = vote::timed_out;
            }
        }
        switch (result->what) {
        case release_result::released:
            ++counters_.released;
            break;
        case release_result::expired:
        case release_result::stolen:
            ++counters_.released_late;
            break;
        case release_result::uncertain:
            ++counters_.released_uncertain;
            break;
        }
        host_.removed(ended, result->what);
    }
    if (ended.ending().settled()) {
        timers_.cancel(ended.wake);
        claims_.destroy(ended);
    } else {
        timers_.set_by(ended.wake, ended.ending().next_due(now));
    }
}

// The connection broke before the reply to a command that may set the key. The server may have it
// in a buffer, and read it after those of the next connection.
void engine::note_stray(claim& owner, std::size_t master, command_kind what) {
    time_point refused_from = never;
    if (what == command_kind::acquire) {
        owner.left_behind.sets |= set_of(master);
        refused_from = owner.vote_by;
    } else if (what == command_kind::heal) {
        owner.left_behind.heals |= set_of(master);
        refused_from = owner.believed_until;
    } else {
        return;
    }
    // The server's clock is known only within a round trip, so `master_timeout` is added.
    const time_point until = rules_.guarded() && !sets_natively(owner)
                                 ? later(refused_from, rules_.master_timeout)
                                 : owner.expires_at;
    owner.left_behind.until = std::max(owner.left_behind.until, until);
}

void engine::removal_due(claim& ended, time_point now) {
    const removal::repeat again = ended.ending().due(now, masters_.up(), ended.left_behind);
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if ((again.to & set_of(i)) == 0) {
            continue;
        }
        if (again.last || removals_.has_room(i)) {
            send_removal(ended, i, variant_of(ended, i, command_kind::remove), now);
        } else {
            removals_.search(i, now);
        }
    }
    decide_removal(ended, now);
}

void engine::send_pending_removals(std::size_t master, time_point now) {
    removals_.turn(
        master,
        claims_,
        now,
        [&](const claim& ended) { return ended.is_ending() && ended.ending().unsent(master); },
        [&](claim& ended) {
            send_removal(ended, master, variant_of(ended, master, command_kind::remove), now);
        });
}

} // namespace redlock::core
