// Turns: the order of arrival between processes, on request. One master, usually the arbiter of the
// lock, keeps a fair queue of the wait queues that want one. The front of a wait queue requests its
// turn there, and makes an attempt on all masters when its turn has come.
//
// The fair queue only filters attempts. So safety does not depend on it, and if no master keeps a
// queue the front continues without one. A wait queue renews its ticket; a ticket that is not
// renewed is dropped.

#include "engine.hpp"
#include "keys.hpp"

#include <string>
#include <string_view>

namespace redlock::core {

namespace {

// The keys of a fair queue.
class queue_keys {
public:
    queue_keys(std::string_view lock, std::string_view prefix) : lock_(lock) {
        assign_queue_key(queue_, prefix, resource_of(lock, prefix));
        assign_places_key(places_, queue_);
    }
    queue_names names(std::string_view waiter) const { return {lock_, queue_, places_, waiter}; }

private:
    std::string_view lock_;
    std::string queue_;
    std::string places_;
};

} // namespace

// Returns false if the front continues without a turn: it wants no order, or no master keeps the
// queue.
bool engine::take_turn(operation& wanted, time_point now) {
    wait_queue& mine = *wanted.queue;
    queue_ticket& place = mine.place;
    if (!place.wanted(wanted.options, now)) {
        return false;
    }
    const std::size_t queue_master = masters_.queue_master_of(mine.key);
    if (queue_master != place.queue_master) {
        // The queue has moved to another master: every client that sees the same masters starts
        // again there.
        leave_queue(mine, now);
    }
    if (queue_master == nobody || masters_[queue_master].link->overloaded()) {
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
    place.ask(queue_master);
    wanted.stage = operation::phase::turning;
    timers_.set(wanted.wake, std::min(later(now, rules_.master_timeout), wanted.wait_until));
    send_turn(mine, masters_[queue_master].link->commands().turn(), now);
    return true;
}

void engine::send_turn(const wait_queue& waiters, command_variant how, time_point now) {
    sender_.flush(); // the script looks at the lock
    const queue_ticket& place = waiters.place;
    const queue_keys keys(waiters.key, rules_.key_prefix);
    std::string bytes;
    append_turn(bytes, how, keys.names(place.waiter), rules_.place_lease());
    sender_.send(
        place.queue_master,
        bytes,
        {.kind = command_kind::take_turn,
         .how = how,
         .round = place.round,
         .subject = waiters.self},
        now);
}

void engine::queue_answered(
    std::size_t master,
    const sent_command& command,
    const reply& answered,
    time_point sent,
    time_point now) {
    const answer got = read_turn(answered, command.how);
    masters_[master].link->learn(command, answered, got);
    if (command.kind == command_kind::leave_queue) {
        --leaving_; // if it was not understood, the ticket expires
        return;
    }
    wait_queue* const mine = queues_.find(command.subject);
    if (mine == nullptr || command.round != mine->place.round) {
        return; // the ticket was given up; its leave command follows
    }
    if (got.use_eval) {
        send_turn(*mine, masters_[master].link->commands().turn(), now);
        return;
    }
    if (got.said != vote::granted && got.said != vote::held) {
        give_up_turns(*mine, answered.is_error() ? answered.text : "unexpected reply", now);
    } else {
        mine->place.answered(got.said == vote::granted || got.counter == 0, sent);
    }
    operation* const wanted = front_of(*mine);
    if (wanted == nullptr || wanted->stage != operation::phase::turning) {
        return; // the front has continued without a turn
    }
    if (got.said == vote::held || (got.said == vote::granted && held_here(*mine) != nullptr)) {
        wait_for_turn(*wanted, *mine, got, now);
    } else if (got.said == vote::granted) {
        wanted->ask_arbiter = false; // it has just replied
        start_attempt(*wanted, now);
    } else {
        front_due(*wanted, now);
    }
}

void engine::wait_for_turn(
    operation& wanted, wait_queue& waiters, const answer& got, time_point now) {
    const auto left = got.said == vote::held ? got.left.value_or(lease_unknown) : lease_unknown;
    switch (waiters.must_wait(got.counter, left, view_of(waiters, now)).does) {
    case next_step::what::ask:
        front_due(wanted, now);
        break;
    case next_step::what::time_out:
        time_out(wanted, now);
        break;
    case next_step::what::wait:
        watch(waiters, now);
        pause(wanted, waiters.turn_by(left, view_of(waiters, now), random_), now);
        break;
    }
}

void engine::give_up_turns(wait_queue& waiters, std::string_view why, time_point now) {
    const std::size_t queue_master = waiters.place.queue_master;
    if (!std::exchange(masters_[queue_master].queue_refused, true)) {
        noted(
            queue_master,
            "keeps no queue, so the order is not that of arrival: " + std::string(why));
    }
    waiters.place.refused(later(now, rules_.health_check_interval));
}

void engine::queue_dropped(const sent_command& command, time_point now) {
    if (command.kind == command_kind::leave_queue) {
        --leaving_;
        return;
    }
    wait_queue* const mine = queues_.find(command.subject);
    if (mine == nullptr || command.round != mine->place.round) {
        return;
    }
    operation* const wanted = front_of(*mine);
    if (wanted != nullptr && wanted->stage == operation::phase::turning) {
        front_due(*wanted, now); // the connection is down: another master may keep the queue
    }
}

// If the connection is down, the ticket expires by itself.
void engine::leave_queue(wait_queue& waiters, time_point now) {
    queue_ticket& place = waiters.place;
    if (place.queue_master != nobody && masters_[place.queue_master].link->up()) {
        sender_.flush();
        const queue_keys keys(waiters.key, rules_.key_prefix);
        std::string channel;
        if (rules_.pushes) {
            assign_channel(channel, waiters.key);
        }
        const command_variant how = masters_[place.queue_master].link->commands().leave();
        std::string bytes;
        append_leave(bytes, how, keys.names(place.waiter), channel);
        ++leaving_;
        sender_.send(
            place.queue_master,
            bytes,
            {.kind = command_kind::leave_queue, .how = how, .subject = waiters.self},
            now);
    }
    place.leave();
}

} // namespace redlock::core
