#include "faults.hpp"

namespace simulation {

namespace {

void add_push_faults(draft& what, std::uint64_t most) {
    for (std::uint64_t left = what.below(most + 1); left > 0; --left) {
        fault one{.kind = what.any_of({refuse, partition, break_late, break_lost})};
        one.only = wire::pushes;
        one.client = what.client_or_all();
        one.master = what.master_or_all();
        one.amount = one.kind == partition ? what.between(1, 3) : 0;
        one.at = what.between(10 * ms, what.faults_end - 50 * ms);
        const bool lasts = one.kind == refuse || one.kind == partition;
        one.span = lasts ? what.between(ms, what.faults_end - one.at - 10 * ms) : 0;
        what.faults.push_back(one);
    }
}

struct shape {
    std::int64_t ttl_min_ms = 40;
    nanos hold_max = 20 * ms;
    nanos think_max = 20 * ms;
    bool lets_go = true; // what is taken is released
};

op some_wait(draft& what, const shape& of, std::int64_t max_ttl_ms) {
    op one;
    one.resource = what.percent(80) ? 0 : 1;
    one.fences = what.ordered && one.resource == 0;
    one.ttl_ms = one.extend_ttl_ms = what.between(of.ttl_min_ms, max_ttl_ms);
    const std::uint64_t wait = what.below(10);
    one.wait_ms = wait < 4   ? -1
                  : wait < 7 ? what.between(100, 1000)
                  : wait < 9 ? what.between(1, 60)
                             : 0;
    one.stop_margin_ms = what.percent(15) ? what.between(1, one.ttl_ms / 4) : 0;
    one.min_validity_ms = what.percent(25) ? what.between(1, one.ttl_ms / 2) : 0;
    one.renews = what.percent(60);
    one.think = what.between(0, what.percent(50) ? ms : of.think_max);
    one.hold = what.percent(20) ? 0 : what.between(0, of.hold_max);
    if (what.percent(25)) {
        one.cancel_after = what.between(0, what.percent(50) ? 5 * ms : 60 * ms);
    }
    if (what.percent(15)) {
        one.extend_after.push_back(what.between(0, of.hold_max));
    }
    if (!of.lets_go && what.percent(15)) {
        one.hold = what.between(0, 2 * one.ttl_ms * ms);
        one.end = what.percent(70) ? op::ending::release : op::ending::abandon;
    }
    for (std::uint64_t i = what.below(2); one.fences && i > 0; --i) {
        one.write_after.push_back(what.between(0, 200 * ms));
    }
    return one;
}

void make_lines(draft& what, const shape& of) {
    for (client_plan& client : what.clients) {
        client.workers.clear();
        for (std::uint64_t j = 2 + what.below(3); j > 0; --j) {
            auto& ops = client.workers.emplace_back();
            for (std::uint64_t k = 3 + what.below(4); k > 0; --k) {
                ops.push_back(some_wait(what, of, client.max_ttl_ms));
            }
        }
    }
}

std::size_t workers_of(const plan& what) {
    std::size_t all = 0;
    for (const client_plan& client : what.clients) {
        all += client.workers.size();
    }
    return all;
}

void everybody_listens(plan& what, unsigned lost_percent) {
    for (client_plan& client : what.clients) {
        client.pushes = true;
    }
    what.air.lost_pushes_percent = lost_percent;
    for (master_plan& one : what.masters) {
        one.age = 1000 * sec;
    }
}

void add_faults(draft& what, std::uint64_t most) {
    for (std::uint64_t left = what.below(most + 1); left > 0; --left) {
        fault one{.kind = what.any_of({stall, partition, pause, break_late, break_lost})};
        one.client = what.any_client();
        one.master = what.master_or_all(20);
        one.amount = one.kind == partition    ? what.between(1, 3)
                     : one.kind == break_late ? what.air.late_max
                                              : 0;
        one.at = what.between(10 * ms, what.faults_end - 200 * ms);
        const bool breaks = one.kind == break_late || one.kind == break_lost;
        one.span = breaks ? 0 : what.between(ms, 150 * ms);
        what.faults.push_back(one);
    }
}

// Every lock is a slot of a small pool.
void make_slots(draft& what) {
    const auto slots = static_cast<unsigned>(1 + what.below(4));
    for_each_op(what, [&](const client_plan& client, op& one) {
        one.resource = 0;
        one.slots = slots + (what.percent(15) ? 1 : 0);
        if (client.speaks == speech::guarded && what.percent(25)) {
            one.wants = static_cast<unsigned>(1 + what.below(slots));
        }
        one.fences = what.ordered;
    });
}

} // namespace

void choose_waiting(draft& what) {
    const std::uint64_t who = what.below(20);
    for (client_plan& client : what.clients) {
        client.pushes = who < 14 || (who < 17 && what.percent(50));
        const std::uint64_t hands = what.below(3);
        client.local_handoff_ms = hands == 0 ? 0 : hands == 1 ? what.between(1, 40) : 100'000;
    }
    const std::uint64_t lost = what.below(10);
    what.air.lost_pushes_percent = lost < 7   ? 0
                                   : lost < 9 ? static_cast<unsigned>(what.between(1, 60))
                                              : 100;
    add_push_faults(what, who < 17 ? 3 : 0);
}

void add_queue_faults(draft& what) {
    what.air.slow_percent = static_cast<unsigned>(what.below(10));
    what.air.slow_max = what.between(5 * ms, 2 * what.master_timeout_ms * ms);
    make_lines(what, {.lets_go = false});
    add_faults(what, 8);
}

void add_slot_faults(draft& what) {
    add_queue_faults(what);
    make_slots(what);
}

void add_free_slot_faults(draft& what) {
    add_free_lock_faults(what);
    make_slots(what);
    // The front of a queue may want more than is free, and the others wait for their turn.
    const unsigned slots = what.clients.front().workers.front().front().slots;
    for_each_op(what, [&](const client_plan&, op& one) {
        one.slots = slots;
        one.wants = 1;
    });
}

void add_slot_notification_faults(draft& what) {
    add_notification_faults(what);
    make_slots(what);
}

void add_notification_faults(draft& what) {
    what.prompt = true;
    what.polls = false; // a poll would make up for the notification that is missed
    what.air.late_max = 0;
    for (client_plan& client : what.clients) {
        client.max_ttl_ms = 30'000;
    }
    make_lines(what, {.ttl_min_ms = 20'000});
    everybody_listens(what, 0);
    add_push_faults(what, 6);
    // Broken connections are made again, and then each waiter has its turn.
    what.progress_bound =
        (2 * what.health_check_ms + 2 * what.master_timeout_ms + 2 * what.connect_timeout_ms) * ms
        + static_cast<nanos>(workers_of(what)) * 200 * ms;
}

void add_turns(draft& what) {
    what.faults.clear();
    what.faults_end = 2 * sec;
    const nanos hold = what.below(4) * ms;
    for (client_plan& client : what.clients) {
        op one;
        one.ttl_ms = one.extend_ttl_ms = client.max_ttl_ms;
        one.wait_ms = -1;
        one.hold = hold;
        client.workers.assign(1, std::vector<op>(100, one));
    }
    what.ordered = false;
    everybody_listens(what, 0);
    // The next holder is whichever waiter asks the arbiter first: each has the same chance, once it
    // is subscribed.
    what.passes = static_cast<unsigned>(24 * what.clients.size());
    what.progress_bound = 10 * sec;
}

void lose_all_notifications(draft& what) {
    make_lines(what, {.lets_go = false});
    everybody_listens(what, 100);
    add_faults(what, 4);
    // Each has its turn when the lease before it, of which the votes told, must be over.
    what.progress_bound = static_cast<nanos>(workers_of(what) + 1)
                              * (what.max_ttl_ms() + 2 * what.master_timeout_ms + 200) * ms
                          + what.air.late_max;
}

} // namespace simulation
