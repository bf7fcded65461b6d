// Rollback, release and debts: the key must go from every master that may have it.
//
// A removal goes out on the connection that the SET went out on, behind it, whatever that answered
// and also if it didn't. Where that connection broke, the removal is owed: it is sent again when
// the master is back, until the key must have expired by itself.
//
// What was in flight on a connection that broke may still be executed, after a removal on the next
// one. So a removal does not settle such a debt before the stray command can set the key no more:
// guarded, when the server refuses it as late; plain, when the key must have expired. It is
// repeated then.

#include "decisions.hpp"
#include "engine.hpp"
#include "form_command.hpp"
#include "keys.hpp"

namespace redlock::core {

void engine::release(handle name, time_point now) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || !lease->acts()) {
        return; // its removal is under way or done
    }
    if (lease->stage == claim::phase::lost) {
        closing_moved(now);
        end_lost(*lease, now);
        finish_closing(now);
        return;
    }
    end_hold(*lease, now);
    end_user_extensions(*lease, errc::released);
    lease->late = now >= lease->held_until(); // and the timer of that moment has yet to fire
    if (wrong::old_holder_releases) {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            if (masters_[i].link->up()) {
                write_removal(*lease, masters_[i].link->commands(), rung::eval);
                send(i, scratch_, {.kind = command_kind::ping, .subject = {}}, now);
            }
        }
    }
    if (lease->late || !hand_over(*lease, now)) {
        wrong::own_line_not_woken ? void() : wake_line(*lease, now);
        begin_removal(*lease, now);
    }
    finish_closing(now);
}

bool engine::abandon(handle name) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || !lease->acts()) {
        return false;
    }
    lost_ -= lease->stage == claim::phase::lost ? 1U : 0U;
    end_user_extensions(*lease, errc::released);
    timers_.cancel(lease->wake);
    line* const mine = lines_.find(lease->line_form(), lease->line_key());
    claims_.destroy(*lease);
    if (mine != nullptr) {
        end_line(*mine);
    }
    if (life_ == life::closing && !waits_to_close()) {
        close_by_ = never; // the next event ends the closing
    }
    return true;
}

void engine::begin_removal(claim& ended, time_point now) {
    ended.stage = claim::phase::removing;
    ended.operation = {};
    ended.removal_began = now;
    if (!ended.reported) {
        begin_votes_on_removal(ended);
    }
    ended.decide_by = ended.reported ? forever : later(now, rules_.master_timeout);
    const ladder* written = nullptr; // whose words are in scratch_: nearly always everybody's
    rung said = rung::native;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& mine = ended.votes.of[i];
        if (wrong::no_rollback_when_unknown && ended.believed_until == never
            && mine.said != vote::granted) {
            continue;
        }
        if (mine.asked) {
            mine.owed = true;
            ++ended.owing;
            const connection& link = *masters_[i].link;
            if (wrong::rollback_unordered && link.up() && mine.said == vote::timed_out) {
                masters_[i].link->closed("the rollback takes another one", now);
                written = nullptr;
            }
            if (link.up()) {
                ++ended.tally.pending;
                if (!has_room(i)) {
                    search_owed(i, now);
                    continue;
                }
                const ladder& commands = link.commands();
                const rung how = commands.of(ended.form, command_kind::remove);
                if (written == nullptr || how != said
                    || commands.delete_command != written->delete_command) {
                    write_removal(ended, commands, how);
                    written = &commands;
                    said = how;
                }
                send_written_removal(ended, i, how, now);
            } else {
                mine.said = vote::unreachable;
                mine.debt = true;
            }
        }
    }
    decide_removal(ended, now);
}

// What its result is explained with: what the masters say from here on, and nothing from before.
void engine::begin_votes_on_removal(claim& ended) {
    ended.votes.texts.clear();
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& mine = ended.votes.of[i];
        mine.left = not_told;
        mine.latency = {};
        mine.said = mine.asked || masters_[i].admitted ? vote::pending : masters_[i].otherwise;
        if (!mine.asked && masters_[i].admitted) {
            ended.votes.note(i, "it was not asked: it had no vote on this lock");
        }
    }
}

void engine::send_removal(claim& ended, std::size_t master, rung how, time_point now) {
    write_removal(ended, masters_[master].link->commands(), how);
    send_written_removal(ended, master, how, now);
}

void engine::write_removal(const claim& ended, const ladder& commands, rung how) {
    scratch_.clear();
    channel_.clear();
    if (wrong::rollback_without_compare && ended.believed_until == never) {
        append_command(scratch_, {"DEL", ended.key});
        return;
    }
    if (wrong::release_without_compare && ended.believed_until != never) {
        append_command(scratch_, {"DEL", ended.key});
        return;
    }
    if (rules_.pushes && (ended.announced || ended.drops_intent)) {
        assign_channel(channel_, ended.line_key());
    }
    if (rules_.guarded()) {
        append_remove(
            scratch_,
            ended.form,
            how,
            names_of(ended),
            fence_of(ended, ended.fencing_token),
            tells_apart(ended) ? std::string_view() : channel_,
            ended.drops_intent ? ended.intent : 0);
    } else {
        append_remove(
            scratch_, how, commands.delete_command, ended.key, ended.token_text(), channel_);
    }
}

// Whether the release is told by a command of its own, which goes right behind: the script for
// several locks tells the channel of each, and who waits for slots listens to that of the pool.
bool engine::tells_apart(const claim& ended) noexcept {
    return ended.is_slot() && ended.form == lock_form::all;
}

void engine::send_written_removal(claim& ended, std::size_t master, rung how, time_point now) {
    ballot& mine = ended.votes.of[master];
    masters_[master].removals += mine.removing ? 0U : 1U; // or it is said again in another way
    const bool by_script = how != rung::native && !tells_apart(ended);
    mine.removing = true;
    mine.removal_mark = send(
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
    ballot& mine = ended.votes.of[master];
    member& to = masters_[master];
    to.removals -= mine.removing ? 1U : 0U;
    if (to.next_owed != none && to.removals <= rules_.removals_max / 2) {
        debts_due_ = std::min(debts_due_, now);
    }
    mine.removing = false;
    const vote before = std::exchange(mine.said, what);
    const bool confirmed = confirms_removal(what);
    // An acquire sets the key once: where it is removed it was executed.
    const bool stray = mine.stray_heal || (mine.stray_set && what != vote::granted);
    const bool early = stray && now < ended.stray_until;
    if (confirmed) {
        closing_moved(now);
    }
    if ((confirmed && !early) || now >= ended.expires_at) {
        --ended.owing;
        mine.owed = false;
        counters_.debts_paid += mine.debt ? 1U : 0U;
    } else {
        mine.debt = true;
        if (confirmed) {
            ended.retry_at = std::min(ended.retry_at, ended.stray_until);
        } else if (what == vote::error) {
            ended.retry_at = std::min(ended.retry_at, later(now, rules_.health_check_interval));
        }
    }
    ended.tally.add(what, before);
    decide_removal(ended, now);
}

// Reports the result once it is known; lets go of the claim once nothing is owed any more.
void engine::decide_removal(claim& ended, time_point now) {
    if (!ended.reported) {
        std::optional<release_result> result =
            ended.tally.decide(rules_.quorum(), !wrong::released_after_loss && ended.late);
        if (!result && now >= ended.decide_by) {
            result = release_result::uncertain;
            for (ballot& mine : ended.votes.of) {
                mine.said =
                    mine.removing && mine.said == vote::pending ? vote::timed_out : mine.said;
            }
        }
        if (result) {
            ended.reported = true;
            ended.decide_by = forever;
            switch (*result) {
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
            host_.removed(ended, *result);
        }
    }
    settle(ended, now);
}

void engine::settle(claim& ended, time_point now) {
    if (!ended.reported || ended.owing > 0) {
        const time_point expiry = now < ended.expires_at ? ended.expires_at : forever;
        timers_.set_by(ended.wake, std::min({ended.decide_by, ended.retry_at, expiry}));
    } else {
        timers_.cancel(ended.wake);
        claims_.destroy(ended);
    }
}

// The connection broke before the answer to a command that may set the key. The server may have it
// in a buffer, and read it after what comes on the next connection.
void engine::note_stray(claim& owner, std::size_t master, command_kind what) {
    ballot& mine = owner.votes.of[master];
    time_point refused_from = never;
    if (what == command_kind::acquire) {
        mine.stray_set = true;
        refused_from = owner.vote_by;
    } else if (what == command_kind::heal) {
        mine.stray_heal = true;
        refused_from = owner.believed_until;
    } else {
        return;
    }
    // The server's clock is known to a round trip only.
    const time_point until =
        rules_.guarded() ? later(refused_from, rules_.master_timeout) : owner.expires_at;
    owner.stray_until = std::max(owner.stray_until, until);
}

void engine::removal_due(claim& ended, time_point now) {
    if (now >= ended.expires_at) {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            ballot& mine = ended.votes.of[i];
            if (!mine.owed || mine.removing) {
                continue;
            }
            if ((mine.stray_set || mine.stray_heal) && masters_[i].link->up()) {
                mine.stray_set = mine.stray_heal = false;
                send_removal(ended, i, way_of(ended, i, command_kind::remove), now); // the last
            } else { // a debt: the key is gone by itself
                mine.owed = false;
                --ended.owing;
            }
        }
        ended.retry_at = forever;
    } else if (now >= ended.retry_at) {
        ended.retry_at = forever;
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            const ballot& mine = ended.votes.of[i];
            if (mine.owed && !mine.removing && masters_[i].link->up()) {
                if (has_room(i)) {
                    send_removal(ended, i, way_of(ended, i, command_kind::remove), now);
                } else {
                    search_owed(i, now);
                }
            }
        }
    }
    decide_removal(ended, now);
}

// Has what is owed to this master sent from now on, as far as there is room.
void engine::search_owed(std::size_t master, time_point now) {
    member& to = masters_[master];
    if (to.next_owed == none) {
        to.next_owed = 0;
    } else {
        to.owed_before = true;
    }
    if (has_room(master)) {
        debts_due_ = std::min(debts_due_, now);
    }
}

// One turn of that. A master that is back may be owed a removal by each of very many claims: sent
// in one burst they would keep it from answering within `master_timeout`, and it would lose its
// vote.
void engine::pay_debts(std::size_t master, time_point now) {
    member& to = masters_[master];
    if (to.next_owed == none) {
        return;
    }
    std::size_t left = rules_.turn_max;
    to.next_owed = claims_.for_some(to.next_owed, searched_max, [&](claim& ended) {
        const ballot& mine = ended.votes.of[master];
        if (ended.stage == claim::phase::removing && mine.owed && !mine.removing) {
            if (left == 0 || !has_room(master)) {
                return false;
            }
            --left;
            send_removal(ended, master, way_of(ended, master, command_kind::remove), now);
        }
        return true;
    });
    if (to.next_owed == claims_.end()) {
        to.next_owed = to.owed_before ? 0 : none;
        to.owed_before = false;
    }
    if (to.next_owed != none && has_room(master)) {
        debts_due_ = now;
    }
}

bool engine::removals_under_way() const noexcept {
    return std::ranges::any_of(
        masters_, [](const member& one) { return one.removals > 0 || one.next_owed != none; });
}

} // namespace redlock::core
