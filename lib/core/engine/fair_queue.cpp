// Turns: the order of arrival between processes, on request. One master, usually the arbiter of the
// lock, keeps a fair queue of the wait queues that want one. The front of a wait queue requests its
// turn there, and makes an attempt on all masters when its turn has come.
//
// The fair queue only filters attempts. So safety does not depend on it, and if no master keeps a
// queue the front continues without one. A wait queue renews its ticket; a ticket that is not
// renewed is dropped.

#include "core/base/hash.hpp"
#include "core/bytes/fair_queue_scripts.hpp"
#include "core/bytes/keys.hpp"
#include "engine.hpp"

#include <algorithm>
#include <array>

namespace redlock::core {

// Requests a ticket for the front. Returns false if it continues without one: it wants no order, or
// no master keeps the queue.
bool engine::take_ticket(acquire_call& front, time_point now) {
    wait_queue& mine = *front.queue;
    queue_ticket& ticket = mine.ticket;
    if (!ticket.wanted(front.options, now)) {
        return false;
    }
    const std::size_t queue_master = masters_.queue_master_of(mine.key);
    if (queue_master != ticket.queue_master) {
        // The queue has moved to another master: every client that sees the same masters starts
        // again there.
        leave_queue(mine, now);
    }
    if (queue_master == nobody || masters_[queue_master].link->overloaded()) {
        return false;
    }
    if (ticket.waiter.empty()) {
        std::array<unsigned char, 10> name{};
        host_.random(name);
        ticket.waiter.resize(2 * name.size());
        write_hex(name, ticket.waiter);
    }
    ticket.ask(queue_master);
    call_queue(mine, command_kind::take_ticket, now);
    front.stage = acquire_call::phase::ticketed;
    timers_.set(front.wake, std::min(later(now, rules_.master_timeout), front.wait_until));
    return true;
}

// The scripts look at the lock: removals of this turn come first.
void engine::call_queue(const wait_queue& waiters, command_kind kind, time_point now) {
    wire_.flush();
    const queue_ticket& ticket = waiters.ticket;
    const command_variant how =
        masters_[ticket.queue_master].link->commands().of(lock_form::exclusive, kind);
    const bool takes = kind == command_kind::take_ticket;
    std::string queue;
    assign_queue_key(queue, rules_.key_prefix, resource_of(waiters.key, rules_.key_prefix));
    std::string tickets;
    assign_tickets_key(tickets, queue);
    std::string argument; // of a leave: the channel; empty: publishes nothing
    if (takes) {
        argument = decimal(rules_.ticket_lease().count());
    } else if (rules_.pushes) {
        assign_channel(argument, waiters.key);
    }
    wire_.send(
        ticket.queue_master,
        {verb(how),
         body(how, takes ? ticket_take : ticket_leave),
         "3",
         waiters.key,
         queue,
         tickets,
         ticket.waiter,
         argument},
        {.kind = kind, .how = how, .epoch = ticket.epoch, .to = this, .subject = waiters.self},
        now);
}

void engine::ticket_answered(const arrival& at, const reply* answered) {
    answer got;
    if (answered != nullptr) {
        got = read_answer(at.command.kind, *answered, at.command.how);
        masters_[at.master].link->learn(at.command, *answered, got);
    }
    if (at.command.kind == command_kind::leave_queue) {
        --leaving_; // if it was not understood, the ticket expires
        return;
    }
    wait_queue* const mine = queues_.find(at.command.subject.to<wait_queue>());
    if (mine == nullptr || at.command.epoch != mine->ticket.epoch) {
        return; // the ticket was given up; its leave command follows
    }
    if (got.use_eval) {
        call_queue(*mine, command_kind::take_ticket, at.now);
        return;
    }
    const bool comes = got.said == vote::granted;
    const bool kept = comes || got.said == vote::held;
    if (kept) {
        mine->ticket.answered(comes || got.counter == 0, at.sent);
    } else if (answered != nullptr) {
        if (!std::exchange(masters_[at.master].queue_refused, true)) {
            log(log_level::info,
                at.master,
                "keeps no queue, so the order is not that of arrival: "
                    + std::string(answered->is_error() ? answered->text : "unexpected reply"));
        }
        mine->ticket.refused(later(at.now, rules_.health_check_interval));
    }
    acquire_call* const front = mine->front();
    if (front == nullptr || front->stage != acquire_call::phase::ticketed) {
        return; // the front has continued without a ticket
    }
    if (!kept) { // another master may keep the queue, or none
        act(*front, pause_over(*front, at.now), at.now);
    } else if (
        held_here(*mine) != nullptr || (!comes && (got.counter != 0 || front->intent == 0))) {
        act(*front, wait_with_ticket(*front, got, at.now), at.now);
    } else {
        front->ask_arbiter = false; // it has just replied
        try_it(*front, at.now);
    }
}

next_step engine::wait_with_ticket(acquire_call& front, const answer& got, time_point now) {
    wait_queue& mine = *front.queue;
    const auto left = got.said == vote::held ? got.left.value_or(lease_unknown) : lease_unknown;
    const next_step next = mine.must_wait(got.counter, left, view_of(mine, now));
    if (next == next_step::ask) {
        return pause_over(front, now);
    }
    if (next == next_step::wait) {
        if (got.counter == 0) { // it is first, and the lock is held
            ask_holder(command_kind::get, front, mine.ticket.queue_master, now);
        }
        watch(mine, now);
        pause(front, mine.ticket_by(left, view_of(mine, now)), now);
    }
    return next;
}

// Gives up the ticket. If the connection is down, the ticket expires by itself.
void engine::leave_queue(wait_queue& waiters, time_point now) {
    queue_ticket& ticket = waiters.ticket;
    if (ticket.queue_master != nobody && masters_[ticket.queue_master].link->up()) {
        ++leaving_;
        call_queue(waiters, command_kind::leave_queue, now);
    }
    ticket.leave();
}

} // namespace redlock::core
