#include "fair_queue.hpp"

#include "core/base/hash.hpp"
#include "core/bytes/command.hpp"
#include "core/bytes/fair_queue_scripts.hpp"
#include "core/bytes/keys.hpp"

#include <array>
#include <string>
#include <utility>

namespace redlock::core {

bool fair_queue::ask(wait_queue& waiters, const acquire_options& front, time_point now) {
    queue_ticket& ticket = waiters.ticket;
    if (!ticket.wanted(front, now)) {
        return false;
    }
    const std::size_t queue_master = masters_.queue_master_of(waiters.key);
    if (queue_master != ticket.queue_master) {
        // The queue has moved to another master: every client that sees the same masters starts
        // again there.
        leave(waiters, now);
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
    call(waiters, command_kind::take_ticket, now);
    return true;
}

// The scripts look at the lock: removals of this turn come first.
void fair_queue::call(const wait_queue& waiters, command_kind kind, time_point now) {
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
        {.kind = kind, .how = how, .epoch = ticket.epoch, .to = &replies_, .subject = waiters.self},
        now);
}

fair_queue::meaning
fair_queue::answered(wait_queue* waiters, const arrival& at, const reply* answered) {
    answer got;
    if (answered != nullptr) {
        got = read_answer(at.command.kind, *answered, at.command.how);
        masters_[at.master].link->learn(at.command, *answered, got);
    }
    if (at.command.kind == command_kind::leave_queue) {
        --leaving_; // if it was not understood, the ticket expires
        return {};
    }
    if (waiters == nullptr || at.command.epoch != waiters->ticket.epoch) {
        return {}; // the ticket was given up; its leave command follows
    }
    if (answered == nullptr) {
        return {meaning::what::none}; // another master may keep the queue
    }
    if (got.use_eval) {
        call(*waiters, command_kind::take_ticket, at.now);
        return {};
    }
    if (got.said != vote::granted && got.said != vote::held) {
        if (!std::exchange(masters_[at.master].queue_refused, true)
            && host_.logs(log_level::info)) {
            host_.log(
                log_level::info,
                rules_.names[at.master] + ": keeps no queue, so the order is not that of arrival: "
                    + std::string(answered->is_error() ? answered->text : "unexpected reply"));
        }
        waiters->ticket.refused(later(at.now, rules_.health_check_interval));
        return {meaning::what::none};
    }
    waiters->ticket.answered(got.said == vote::granted || got.counter == 0, at.sent);
    return {got.said == vote::granted ? meaning::what::come : meaning::what::wait, got};
}

void fair_queue::leave(wait_queue& waiters, time_point now) {
    queue_ticket& ticket = waiters.ticket;
    if (ticket.queue_master != nobody && masters_[ticket.queue_master].link->up()) {
        ++leaving_;
        call(waiters, command_kind::leave_queue, now);
    }
    ticket.leave();
}

} // namespace redlock::core
