#include "waiting.hpp"

#include "faults.hpp"
#include "operators.hpp"

namespace simulation {

namespace {

void add_push_faults(plan& what, generator& random, std::uint64_t most) {
    for (std::uint64_t left = random.below(most + 1); left > 0; --left) {
        using enum fault_kind;
        fault one{.kind = any_of(random, {refuse, partition, break_late, break_lost})};
        one.only = wire::pushes;
        one.client = client_or_all(what, random);
        one.master = master_or_all(what, random);
        one.amount = one.kind == partition ? random.between(1, 3) : 0;
        one.at = random.between(10 * ms, what.faults_end - 50 * ms);
        const bool lasts = one.kind == refuse || one.kind == partition;
        one.span = lasts ? random.between(ms, what.faults_end - one.at - 10 * ms) : 0;
        what.faults.push_back(one);
    }
}

struct shape {
    std::int64_t ttl_min_ms = 40;
    nanos hold_max = 20 * ms;
    nanos think_max = 20 * ms;
    bool lets_go = true; // what is taken is released
};

op some_wait(const plan& what, generator& random, const shape& of, std::int64_t max_ttl_ms) {
    op one;
    one.resource = random.percent(80) ? 0 : 1;
    one.fences = what.ordered && one.resource == 0;
    one.ttl_ms = one.extend_ttl_ms = random.between(of.ttl_min_ms, max_ttl_ms);
    const std::uint64_t wait = random.below(10);
    one.wait_ms = wait < 4   ? -1
                  : wait < 7 ? random.between(100, 1000)
                  : wait < 9 ? random.between(1, 60)
                             : 0;
    one.stop_margin_ms = random.percent(15) ? random.between(1, one.ttl_ms / 4) : 0;
    one.min_validity_ms = random.percent(25) ? random.between(1, one.ttl_ms / 2) : 0;
    one.renews = random.percent(60);
    one.think = random.between(0, random.percent(50) ? ms : of.think_max);
    one.hold = random.percent(20) ? 0 : random.between(0, of.hold_max);
    if (random.percent(25)) {
        one.cancel_after = random.between(0, random.percent(50) ? 5 * ms : 60 * ms);
    }
    if (random.percent(15)) {
        one.extend_after.push_back(random.between(0, of.hold_max));
    }
    if (!of.lets_go && random.percent(15)) {
        one.hold = random.between(0, 2 * one.ttl_ms * ms);
        one.end = random.percent(70) ? op::ending::release : op::ending::abandon;
    }
    for (std::uint64_t i = random.below(2); one.fences && i > 0; --i) {
        one.write_after.push_back(random.between(0, 200 * ms));
    }
    return one;
}

void make_lines(plan& what, generator& random, const shape& of) {
    for (client_plan& client : what.clients) {
        client.workers.clear();
        for (std::uint64_t j = 2 + random.below(3); j > 0; --j) {
            auto& ops = client.workers.emplace_back();
            for (std::uint64_t k = 3 + random.below(4); k > 0; --k) {
                ops.push_back(some_wait(what, random, of, client.max_ttl_ms));
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

void add_faults(plan& what, generator& random, std::uint64_t most) {
    for (std::uint64_t left = random.below(most + 1); left > 0; --left) {
        using enum fault_kind;
        fault one{.kind = any_of(random, {stall, partition, pause, break_late, break_lost})};
        one.client = any_client(what, random);
        one.master = master_or_all(what, random, 20);
        one.amount = one.kind == partition    ? random.between(1, 3)
                     : one.kind == break_late ? what.air.late_max
                                              : 0;
        one.at = random.between(10 * ms, what.faults_end - 200 * ms);
        const bool breaks = one.kind == break_late || one.kind == break_lost;
        one.span = breaks ? 0 : random.between(ms, 150 * ms);
        what.faults.push_back(one);
    }
}

// Every lock is a slot of a small pool.
void make_slots(plan& what, generator& random) {
    const auto slots = static_cast<unsigned>(1 + random.below(4));
    for_each_op(what, [&](const client_plan& client, op& one) {
        one.resource = 0;
        one.slots = slots + (random.percent(15) ? 1 : 0);
        if (client.speaks == speech::guarded && random.percent(25)) {
            one.wants = static_cast<unsigned>(1 + random.below(slots));
        }
        one.fences = what.ordered;
    });
}

} // namespace

void choose_waiting(plan& what, generator& random) {
    const std::uint64_t who = random.below(20);
    for (client_plan& client : what.clients) {
        client.pushes = who < 14 || (who < 17 && random.percent(50));
        const std::uint64_t hands = random.below(3);
        client.local_handoff_ms = hands == 0 ? 0 : hands == 1 ? random.between(1, 40) : 100'000;
    }
    const std::uint64_t lost = random.below(10);
    what.air.lost_pushes_percent = lost < 7   ? 0
                                   : lost < 9 ? static_cast<unsigned>(random.between(1, 60))
                                              : 100;
    add_push_faults(what, random, who < 17 ? 3 : 0);
}

void add_queue_faults(plan& what, generator& random) {
    what.air.slow_percent = static_cast<unsigned>(random.below(10));
    what.air.slow_max = random.between(5 * ms, 2 * what.master_timeout_ms * ms);
    make_lines(what, random, {.lets_go = false});
    add_faults(what, random, 8);
}

void add_slot_faults(plan& what, generator& random) {
    add_queue_faults(what, random);
    make_slots(what, random);
}

void add_free_slot_faults(plan& what, generator& random) {
    add_free_lock_faults(what, random);
    make_slots(what, random);
    // The front of a queue may want more than is free, and the others wait for their turn.
    const unsigned slots = what.clients.front().workers.front().front().slots;
    for_each_op(what, [&](const client_plan&, op& one) {
        one.slots = slots;
        one.wants = 1;
    });
}

void add_slot_notification_faults(plan& what, generator& random) {
    add_notification_faults(what, random);
    make_slots(what, random);
}

void add_notification_faults(plan& what, generator& random) {
    what.prompt = true;
    what.polls = false; // a poll would make up for the notification that is missed
    what.air.late_max = 0;
    for (client_plan& client : what.clients) {
        client.max_ttl_ms = 30'000;
    }
    make_lines(what, random, {.ttl_min_ms = 20'000});
    everybody_listens(what, 0);
    add_push_faults(what, random, 6);
    // Broken connections are made again, and then each waiter has its turn.
    what.progress_bound =
        (2 * what.health_check_ms + 2 * what.master_timeout_ms + 2 * what.connect_timeout_ms) * ms
        + static_cast<nanos>(workers_of(what)) * 200 * ms;
}

void add_turns(plan& what, generator& random) {
    what.faults.clear();
    what.faults_end = 2 * sec;
    const nanos hold = random.below(4) * ms;
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

void lose_all_notifications(plan& what, generator& random) {
    make_lines(what, random, {.lets_go = false});
    everybody_listens(what, 100);
    add_faults(what, random, 4);
    // Each has its turn when the lease before it, of which the votes told, must be over.
    what.progress_bound = static_cast<nanos>(workers_of(what) + 1)
                              * (what.max_ttl_ms() + 2 * what.master_timeout_ms + 200) * ms
                          + what.air.late_max;
}

} // namespace simulation
