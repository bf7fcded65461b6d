// Turns: the order of arrival between processes, for those who ask for it. One master, the arbiter
// of the lock, keeps a queue of the lines that want it. The head of a line asks it for its turn,
// and makes an attempt on all masters when it is told that it has come.
//
// The queue is only a filter in front of attempts, never a permission: the votes of a majority
// decide as always. So nothing about it is proved or repeated, and where it cannot be had the head
// goes on without. A line keeps its place by asking again and again; who does not is dropped.

#include "engine.hpp"
#include "keys.hpp"

namespace redlock::core {

// False where the head is to go on without: it wants no order, or nobody keeps it.
bool engine::take_turn(operation& wanted, time_point now) {
    line& mine = *lines_.find(wanted.line);
    queue_place& place = mine.turn;
    if (wanted.options.order != fairness::fifo || now < place.refused_until) {
        return false;
    }
    const std::size_t keeper = masters_.keeper_of(mine.key);
    if (keeper != place.keeper) {
        leave_queue(mine, now); // all who see what we see begin anew at another
    }
    if (keeper == claim::nobody || masters_[keeper].link->overloaded()) {
        return false;
    }
    if (place.waiter.empty()) {
        std::array<unsigned char, 10> name{};
        host_.random(name);
        for (const unsigned char byte : name) {
            place.waiter += "0123456789abcdef"[byte >> 4U];
            place.waiter += "0123456789abcdef"[byte & 15U];
        }
    }
    place.keeper = keeper;
    place.again = false;
    ++place.round;
    wanted.stage = operation::phase::turning;
    timers_.set(wanted.wake, std::min(later(now, rules_.master_timeout), wanted.wait_until));
    send_turn(mine, masters_[keeper].link->commands().turn(), now);
    return true;
}

void engine::send_turn(const line& waiters, rung how, time_point now) {
    const queue_place& place = waiters.turn;
    assign_queue_key(queue_key_, rules_.key_prefix, resource_of(waiters.key, rules_.key_prefix));
    assign_places_key(places_key_, queue_key_);
    scratch_.clear();
    append_turn(
        scratch_, how, {waiters.key, queue_key_, places_key_, place.waiter}, rules_.place_lease());
    send(
        place.keeper,
        scratch_,
        {.kind = command_kind::take_turn,
         .how = how,
         .round = place.round,
         .subject = waiters.self},
        now);
}

void engine::queue_answered(
    std::size_t master,
    const ticket& command,
    const reply& answered,
    time_point sent,
    time_point now) {
    const answer got = read_turn(answered, command.how);
    masters_[master].link->learn(command, answered, got);
    if (command.kind == command_kind::leave_queue) {
        --leaving_; // where it was not understood the place ends by itself
        return;
    }
    line* const mine = lines_.find(command.subject);
    if (mine == nullptr || command.round != mine->turn.round) {
        return; // it was given up, and its end is right behind
    }
    if (got.say_otherwise) {
        send_turn(*mine, masters_[master].link->commands().turn(), now);
        return;
    }
    if (got.said != vote::granted && got.said != vote::held) {
        give_up_turns(*mine, answered.is_error() ? answered.text : "unexpected reply", now);
    } else {
        mine->turn.renewed = sent;
        mine->turn.first = got.said == vote::granted || got.counter == 0;
    }
    operation* const wanted = operations_.find(mine->head);
    if (wanted == nullptr || wanted->stage != operation::phase::turning) {
        return; // it went on without
    }
    if (got.said == vote::held || (got.said == vote::granted && held_here(*mine) != nullptr)) {
        wait_for_turn(*wanted, *mine, got, now);
    } else if (got.said == vote::granted) {
        wanted->ask_arbiter = false; // it was just asked
        start_attempt(*wanted, now);
    } else {
        head_due(*wanted, now);
    }
}

void engine::wait_for_turn(operation& wanted, line& waiters, const answer& got, time_point now) {
    // Until the lock's lease ends there, or the place of who is first.
    const auto left = got.said == vote::held ? got.left.value_or(not_told) : not_told;
    wanted.outcome = errc::contended;
    if (wanted.last.of.empty()) {
        wanted.last.reset(masters_.size());
        ballot& theirs = wanted.last.of[waiters.turn.keeper];
        theirs.said = vote::held;
        if (got.counter == 0) {
            theirs.left = left;
        } else {
            wanted.last.note(
                waiters.turn.keeper, std::to_string(got.counter) + " before it in the queue");
        }
    }
    if (waiters.turn.again) {
        head_due(wanted, now);
        return;
    }
    if (wanted.wait_until <= later(now, 2 * retry_floor())) {
        time_out(wanted, now); // there is no time for an attempt
        return;
    }
    watch(waiters, now);
    time_point due = look_again(waiters, now);
    if (!masters_.hears_a_quorum()) {
        const auto floor = retry_floor();
        due = std::min(due, later(now, wanted.delay.next(floor, rules_.retry_delay_max, random_)));
    }
    if (left != not_told) {
        due = std::min(due, later(now, left + std::chrono::milliseconds(1)));
    }
    pause(wanted, due, now);
}

// When a line has to ask again so as to keep its place. After an attempt it pauses also where that
// is due.
time_point engine::look_again(const line& waiters, time_point now) const noexcept {
    const queue_place& place = waiters.turn;
    if (place.keeper == claim::nobody) {
        return forever;
    }
    const time_point soon = later(now, retry_floor());
    return place.renewed == never ? soon
                                  : std::max(soon, later(place.renewed, rules_.place_lease() / 4));
}

// The keeper is tried again later: what it lacks may be given to it.
void engine::give_up_turns(line& waiters, std::string_view why, time_point now) {
    queue_place& place = waiters.turn;
    member& keeper = masters_[place.keeper];
    if (!std::exchange(keeper.queue_refused, true)) {
        noted(
            place.keeper,
            "keeps no queue, so the order is not that of arrival: " + std::string(why));
    }
    place.keeper = claim::nobody;
    place.first = false;
    place.refused_until = later(now, rules_.health_check_interval);
}

void engine::queue_dropped(const ticket& command, time_point now) {
    if (command.kind == command_kind::leave_queue) {
        --leaving_;
        return;
    }
    line* const mine = lines_.find(command.subject);
    if (mine == nullptr || command.round != mine->turn.round) {
        return;
    }
    operation* const wanted = operations_.find(mine->head);
    if (wanted != nullptr && wanted->stage == operation::phase::turning) {
        head_due(*wanted, now); // that connection is down, so another is asked now
    }
}

// The place was used, or nobody wants it any more. Where the connection is down it ends by itself.
void engine::leave_queue(line& waiters, time_point now) {
    queue_place& place = waiters.turn;
    if (place.keeper != claim::nobody && masters_[place.keeper].link->up()) {
        assign_queue_key(
            queue_key_, rules_.key_prefix, resource_of(waiters.key, rules_.key_prefix));
        assign_places_key(places_key_, queue_key_);
        channel_.clear();
        if (rules_.pushes) {
            assign_channel(channel_, waiters.key);
        }
        const rung how = masters_[place.keeper].link->commands().leave();
        scratch_.clear();
        append_leave(scratch_, how, {waiters.key, queue_key_, places_key_, place.waiter}, channel_);
        ++leaving_;
        send(
            place.keeper,
            scratch_,
            {.kind = command_kind::leave_queue, .how = how, .subject = waiters.self},
            now);
    }
    const time_point refused_until = place.refused_until;
    place.reset();
    place.refused_until = refused_until;
}

// Within a process, too, a lease goes to the next only when nobody elsewhere is before it.
bool engine::may_hand_over(
    const operation& next, const line& waiters, time_point now) const noexcept {
    const queue_place& place = waiters.turn;
    return next.options.order != fairness::fifo
           || (place.first && now < later(place.renewed, rules_.place_lease()));
}

} // namespace redlock::core
