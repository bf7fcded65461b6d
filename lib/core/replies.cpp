// To whom in the engine a reply belongs, and what becomes of the commands of a connection that
// broke.

#include "engine.hpp"

namespace redlock::core {

void engine::notice_error(std::size_t master, const reply& answer, time_point now) {
    if (answer.is_error() && means_unfit(answer.text)) {
        masters_[master].link->introduce_again(now);
        refresh_links_due();
        wants_write_ = true;
    }
}

void engine::replied(
    std::size_t master,
    const ticket& command,
    const reply& answer,
    time_point sent,
    time_point now) {
    notice_error(master, answer, now);
    if (command.kind == command_kind::get || command.kind == command_kind::pttl) {
        if (query* const asked = queries_.find(command.subject)) {
            query_answered(*asked, master, command, answer);
            if (asked->pending == 0) {
                query_done(*asked);
            }
        }
        return;
    }
    claim* const owner = claims_.find(command.subject);
    if (owner == nullptr) {
        return; // settled: its keys have expired
    }
    ballot& mine = owner->votes.of[master];
    if (command.kind == command_kind::set) {
        // Of an attempt that was given up, the removal is right behind: the answer changes nothing.
        if (owner->stage == claim::phase::removing) {
            return;
        }
        mine.latency = now - sent;
        const vote said = vote_on_set(answer);
        if (said == vote::error) {
            owner->votes.note(master, answer.is_error() ? answer.text : "unexpected reply");
        }
        vote_for(*owner, master, said, now);
        return;
    }

    vote said = vote::error;
    if (command.kind == command_kind::remove_exists
        || command.kind == command_kind::extend_exists) {
        said = vote_on_exists(answer);
    } else {
        const compared result = compare_result(answer, command.how);
        const bool removing = command.kind == command_kind::remove;
        connection& link = *masters_[master].link;
        link.learn(command.kind, command.how, answer);
        if (result.say_otherwise) {
            const ladder& commands = link.commands();
            removing ? send_removal(*owner, master, commands.remove_script(), now)
                     : send_extend(*owner, master, command.round, commands.extend_script(), now);
            return;
        }
        if (result.ask_exists) {
            scratch_.clear();
            append_command(scratch_, {"EXISTS", owner->key});
            const command_kind kind =
                removing ? command_kind::remove_exists : command_kind::extend_exists;
            send(
                master,
                scratch_,
                {.kind = kind, .round = command.round, .subject = owner->self},
                now);
            return;
        }
        said = result.said;
    }
    if (said == vote::error) {
        owner->votes.note(master, answer.is_error() ? answer.text : "unexpected reply");
    }
    mine.latency = now - sent;
    if (command.kind == command_kind::remove || command.kind == command_kind::remove_exists) {
        removal_answered(*owner, master, said, now);
    } else {
        extend_answered(*owner, master, command.round, said, now);
    }
}

void engine::dropped(std::size_t master, const ticket& command, time_point now) {
    if (command.kind == command_kind::get || command.kind == command_kind::pttl) {
        if (query* const asked = queries_.find(command.subject)) {
            asked->result.masters[master].vote = vote::unreachable;
            asked->result.masters[master].text = masters_[master].link->why_down();
            if (--asked->pending == 0) {
                query_done(*asked);
            }
        }
        return;
    }
    claim* const owner = claims_.find(command.subject);
    if (owner == nullptr) {
        return;
    }
    switch (command.kind) {
    case command_kind::set:
        if (owner->stage != claim::phase::removing) {
            owner->votes.note(master, masters_[master].link->why_down());
            vote_for(*owner, master, vote::unreachable, now);
        }
        break;
    case command_kind::remove:
    case command_kind::remove_exists:
        removal_answered(*owner, master, vote::unreachable, now);
        break;
    case command_kind::extend:
    case command_kind::extend_exists:
        extend_answered(*owner, master, command.round, vote::unreachable, now);
        break;
    default:
        break;
    }
}

} // namespace redlock::core
