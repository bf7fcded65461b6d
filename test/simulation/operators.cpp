#include "faults.hpp"

namespace simulation {

namespace {

void add_partitions(draft& what, std::uint64_t most, int but = -1) {
    for (std::uint64_t left = what.below(most + 1); left > 0; --left) {
        fault one{.kind = partition};
        one.client = what.client_or_all();
        one.master = what.any_master();
        one.amount = what.between(1, 3);
        if (one.master != but) {
            what.add(one);
        }
    }
}

// The largest margin with which an acquire is still allowed, but for so much.
std::int64_t largest_margin(const plan& what, const op& one, std::int64_t rest_ms) {
    const std::int64_t drift =
        one.ttl_ms * (what.drift_ppb / 1000) / 1'000'000 + what.drift_margin_ms + 1;
    return std::max<std::int64_t>(0, one.ttl_ms - drift - rest_ms - one.min_validity_ms);
}

void obey(draft& what, op& one) {
    const std::uint64_t kind = what.below(3);
    one.after_loss = static_cast<op::obedience>(kind);
    one.lingers = what.between(0, one.ttl_ms * ms);
}

void go_to_extremes(draft& what, op& one) {
    switch (what.below(5)) {
    case 0:
        one.stop_margin_ms = largest_margin(what, one, what.between(1, 15));
        break;
    case 1:
        one.max_hold_ms = one.stop_margin_ms + what.between(1, 10);
        break;
    case 2:
        one.max_hold_ms = 3'600'000;
        break;
    case 3:
        one.min_validity_ms = 0;
        one.min_validity_ms = std::max<std::int64_t>(
            0, largest_margin(what, one, what.between(1, 15)) - one.stop_margin_ms);
        break;
    default:
        one.wait_ms = what.percent(50) ? 1 : 3'600'000;
        return;
    }
    // What never has enough of its lease left must not wait indefinitely.
    one.wait_ms = one.wait_ms < 0 ? 2 * one.ttl_ms : one.wait_ms;
}

// Where an end is expected within less than a lease.
bool is_sharp(const plan& what) {
    return what.focused || what.prompt || what.progress_bound != 0;
}

} // namespace

void choose_holders(draft& what) {
    const bool sharp = is_sharp(what);
    for_each_op(what, [&](client_plan& client, op& one) {
        obey(what, one);
        const bool lock = one.how == taking::one && one.slots == 0;
        const bool extreme = what.percent(8);
        const bool fifo = what.percent(6);
        const bool named = what.percent(5);
        const bool hands_on = what.members || what.attempt_within != 0;
        const bool attached = what.percent(hands_on ? 30 : 6);
        const bool unfenced = what.percent(8);
        const bool may_attach = !sharp || what.attempt_within != 0;
        one.attaches = one.attaches || (attached && !named && lock && may_attach);
        if (sharp) {
            return;
        }
        if (extreme) {
            go_to_extremes(what, one);
        }
        one.fences = one.fences && !unfenced;
        if (client.speaks == speech::guarded || one.how == taking::one) {
            one.fifo = fifo && one.wait_ms != 0;
        }
        one.names_token = named && lock;
    });
    // A client may be configured for longer leases than any that is taken.
    for (client_plan& client : what.clients) {
        const std::int64_t factor = what.percent(15) ? what.between(2, 3) : 1;
        client.max_ttl_ms *= sharp ? 1 : factor;
    }
}

void choose_transfers(draft& what) {
    const bool some = what.percent(25);
    for_each_op(what, [&](client_plan&, op& one) {
        const bool chosen = what.percent(70);
        one.transferable = some && chosen && one.end == op::ending::abandon
                           && one.how == taking::one && one.slots == 0 && !one.attaches;
    });
}

void choose_servers(draft& what) {
    if (is_sharp(what)) {
        return;
    }
    const bool operated = what.percent(20);
    for (std::uint64_t left = 1 + what.below(3); left > 0; --left) {
        fault one{.kind = what.any_of({forget_words, reset_stats, reload})};
        one.master = what.master_or_all();
        one.at = what.between(0, what.faults_end - 50 * ms);
        if (operated) {
            what.faults.push_back(one);
        }
    }
    const bool hushed = what.percent(10);
    fault mute{.kind = hush};
    mute.master = what.master_or_all();
    mute.at = what.between(0, what.faults_end - 50 * ms);
    mute.span = what.between(ms, what.faults_end - mute.at - 10 * ms);
    if (hushed) {
        what.faults.push_back(mute);
    }
}

void add_stop_faults(draft& what) {
    for_each_op(what, [&](client_plan&, op& one) {
        one.think = what.between(0, 10 * ms);
        one.wait_ms = what.between(50, 1000);
        one.stop_margin_ms =
            what.percent(80) ? what.between(1, std::max<std::int64_t>(1, one.ttl_ms / 2)) : 0;
        one.min_validity_ms = 0;
        one.hold = what.between(0, 2 * one.ttl_ms * ms);
        one.max_hold_ms =
            what.percent(50) ? one.stop_margin_ms + what.between(1, 2 * one.ttl_ms) : 0;
        one.renews = what.percent(70);
    });
    for (std::uint64_t left = what.below(5); left > 0; --left) {
        fault one{.kind = what.any_of({pause, suspend, stall, client_close})};
        one.client = what.any_client();
        one.master = what.master_or_all();
        what.end_in_time(what.add(one));
    }
    const bool guarded = what.all_guarded();
    for (std::uint64_t left = what.below(3); guarded && left > 0; --left) {
        what.add({.kind = what.percent(50) ? flush : flush_db, .master = what.any_master()}, 0);
    }
    add_partitions(what, 2);
}

void add_promotion_faults(draft& what) {
    for (master_plan& one : what.masters) {
        one.fsyncs = what.percent(60);
    }
    for (std::uint64_t left = 1 + what.below(4); left > 0; --left) {
        what.add(
            {.kind = promote,
             .master = what.any_master(),
             .amount = what.percent(70) ? what.between(0, 200 * ms) : what.between(0, sec)},
            60 * ms);
    }
    add_partitions(what, 5);
}

void add_take_over_faults(draft& what) {
    for (std::uint64_t left = 1 + what.below(4); left > 0; --left) {
        what.add({.kind = take_over, .master = what.any_master()}, 60 * ms);
    }
    add_partitions(what, 5);
}

// Only of one master, which holders and others reach all the time: a client that first asks a
// master after a step that nobody else has noticed yet cannot know of it.
void add_boot_step_faults(draft& what) {
    what.bounded = what.ordered = false;
    what.air.late_max = 0;
    if (what.percent(70)) { // a client that asks again does so in the quarantine
        what.health_check_ms = what.between(30, 150);
    }
    for_each_op(what, [&](client_plan& client, op& one) {
        client.max_ttl_ms = std::max<std::int64_t>(client.max_ttl_ms, 300);
        one.ttl_ms = one.extend_ttl_ms = what.between(200, 300);
        one.think = what.between(0, 20 * ms);
        one.wait_ms = what.between(100, 1000);
        one.hold = what.between(100 * ms, 600 * ms);
    });
    constexpr nanos all_have_asked = 150 * ms;
    const int stepped = what.any_master();
    for (nanos at = what.between(50, 150) * ms; at < what.faults_end - 400 * ms;
         at += what.between(400, 600) * ms) {
        fault one{.kind = crash, .at = at, .span = what.between(ms, 60 * ms)};
        one.master = stepped;
        one.amount = what.percent(50) ? -1 : what.between(0, sec);
        what.faults.push_back(one);
        const nanos after =
            what.percent(30) ? 0 : what.between(all_have_asked, all_have_asked + 100 * ms);
        const std::int64_t far = what.percent(50) ? 3'600'000'000 : 1'000'000;
        // A key on the only master would stay for as long as its clock was set back.
        const bool back = what.masters.size() > 1 && what.percent(30);
        const std::int64_t by = what.between(back ? -far : 0, back ? 0 : far);
        what.faults.push_back({step, at + one.span + after, 0, -1, stepped, by});
        // A holder that has just enough votes before, and that one among them.
        fault cut{.kind = partition, .at = at - what.between(10 * ms, 50 * ms)};
        cut.span = what.between(50, 300) * ms;
        cut.client = what.any_client();
        cut.master = what.any_master();
        cut.amount = what.between(1, 3);
        if (cut.master != stepped) {
            what.faults.push_back(cut);
        }
    }
    add_partitions(what, 3, stepped);
}

void add_lost_record_faults(draft& what) {
    for (std::uint64_t left = 1 + what.below(6); left > 0; --left) {
        what.add(
            {.kind = what.percent(85) ? remove_keys : flush_db,
             .master = what.master_or_all(20),
             .amount = 2 * what.between(1, 3)},
            0);
    }
    add_partitions(what, 4);
}

void add_deletion_faults(draft& what) {
    what.kept = what.ordered = false;
    what.yields = true;
    // One client holds for long and lives on extensions; the others come and go between them.
    for (client_plan& client : what.clients) {
        client.pushes = what.percent(20);
    }
    for_each_op(what, [&](client_plan& client, op& one) {
        const bool lasts = &client == what.clients.data() || what.percent(20);
        one.renews = true;
        one.stop_margin_ms = one.min_validity_ms = one.max_hold_ms = 0;
        one.think = what.between(0, 10 * ms);
        one.wait_ms = what.between(50, 1000);
        one.ttl_ms = one.extend_ttl_ms =
            lasts ? client.max_ttl_ms : what.between(60, client.max_ttl_ms);
        one.hold = lasts ? what.between(what.longest_lease(), 6 * what.longest_lease())
                         : what.between(0, 15 * ms);
        one.extend_after.clear();
        if (lasts && what.percent(30)) {
            one.extend_after.push_back(what.between(0, one.hold));
        }
        one.cancel_after = no_time;
        one.end = op::ending::release;
    });
    what.air.late_max = 0;
    for (std::uint64_t left = 4 + what.below(12); left > 0; --left) {
        const nanos at = what.between(10 * ms, what.faults_end - 50 * ms);
        for (int m = 0; m < static_cast<int>(what.masters.size()); ++m) {
            if (what.percent(80)) {
                what.faults.push_back({remove_keys, at, 0, -1, m, 1});
            }
        }
    }
}

std::int64_t evictable_after(const plan& what) {
    constexpr nanos interval = 105 * ms; // of these leases: see settings::fitness_interval
    return interval + 2 * (what.master_timeout_ms * ms + what.air.delay_max + what.air.slow_max)
           + what.air.flush_max;
}

void add_eviction_faults(draft& what) {
    what.air.slow_percent = static_cast<unsigned>(what.below(8));
    what.air.slow_max = what.between(5 * ms, 2 * what.master_timeout_ms * ms);
    for_each_op(what, [&](client_plan&, op& one) {
        one.think = what.between(0, 20 * ms);
        one.wait_ms = what.between(50, 1000);
        one.hold = what.between(0, 3 * one.ttl_ms * ms);
        one.renews = what.percent(70);
    });
    const nanos lag = evictable_after(what);
    for (nanos at = what.between(20, 200) * ms; at + lag + 60 * ms < what.faults_end;) {
        fault one{.kind = evict, .at = at};
        one.amount = lag + what.between(0, 100 * ms);
        one.span = std::min(one.amount + what.between(0, 300 * ms), what.faults_end - at - ms);
        one.amount = std::min(one.amount, one.span);
        for (one.master = 0; one.master < static_cast<int>(what.masters.size()); ++one.master) {
            if (what.percent(70)) {
                what.faults.push_back(one);
            }
        }
        at += one.span + what.between(0, 400 * ms);
    }
    for (std::uint64_t left = what.below(4); left > 0; --left) {
        fault one{.kind = what.any_of({pause, break_late, client_crash, client_close})};
        one.client = what.any_client();
        one.master = what.master_or_all();
        one.amount = one.kind == break_late ? what.air.late_max : 0;
        what.end_in_time(what.add(one));
    }
    add_partitions(what, 3);
}

// Leases are longer than the promise, so that a waiter that sleeps to the end of one is noticed.
// They leave their process in every way: released, abandoned, attached to by another one, lost, or
// deleted by an operator.
void add_free_lock_faults(draft& what) {
    what.attempt_within = 2 * sec + 300 * ms;
    what.faults_end = what.between(15, 30) * sec;
    what.air.lost_pushes_percent = what.percent(60)   ? 0
                                   : what.percent(50) ? 100
                                                      : static_cast<unsigned>(what.below(100));
    const std::int64_t ttl = what.between(8'000, 20'000);
    std::size_t workers = 0;
    for (client_plan& client : what.clients) {
        client.pushes = what.percent(80);
        client.max_ttl_ms = ttl;
        client.workers.resize(1 + what.below(3), client.workers.front());
        for (auto& worker : client.workers) {
            ++workers;
            for (op& one : worker) {
                const bool fences = one.fences;
                one = op();
                one.fences = fences;
                one.ttl_ms = one.extend_ttl_ms = ttl;
                one.wait_ms = what.percent(50) ? -1 : what.between(5'000, 20'000);
                one.renews = what.percent(30);
                one.think = what.between(0, 2 * sec);
                one.hold = what.between(100 * ms, 5 * sec);
                one.end = what.percent(25) ? op::ending::abandon : op::ending::release;
                one.max_hold_ms = what.percent(10) ? what.between(500, 4'000) : 0;
                if (fences) {
                    one.write_after.push_back(what.between(0, 2 * ttl * ms));
                }
            }
        }
    }
    for (master_plan& one : what.masters) {
        one.age = 1000 * sec;
    }
    for (std::uint64_t left = what.below(5); left > 0; --left) {
        fault one{.kind = what.any_of({deafen, hush, partition, break_lost})};
        if (one.kind == partition || one.kind == break_lost) {
            one.only = wire::pushes;
        }
        one.client = what.client_or_all();
        one.master = what.master_or_all(70);
        one.amount = one.kind == partition ? what.between(1, 3) : 0;
        fault& made = what.add(one, 20 * sec);
        if (one.kind == deafen || (one.kind == hush && what.percent(70))) {
            made.span = no_time;
        }
    }
    if (what.percent(25)) {
        what.kept = what.ordered = false; // nobody is protected from a deletion
        for (std::uint64_t left = 1 + what.below(4); left > 0; --left) {
            fault one{.kind = remove_keys, .amount = 1};
            what.add(one, 0);
        }
    }
    what.progress_bound = static_cast<nanos>(workers + 2) * 4 * sec + 2 * ttl * ms;
}

} // namespace simulation
