#include "operators.hpp"

#include "faults.hpp"

namespace simulation {

namespace {

void add_partitions(plan& what, generator& random, std::uint64_t most, int but = -1) {
    for (std::uint64_t left = random.below(most + 1); left > 0; --left) {
        fault one{.kind = fault_kind::partition};
        one.client = client_or_all(what, random);
        one.master = any_master(what, random);
        one.amount = random.between(1, 3);
        if (one.master != but) {
            add(what, random, one, longest_lease(what));
        }
    }
}

// The largest margin with which an acquire is still allowed, but for so much.
std::int64_t largest_margin(const plan& what, const op& one, std::int64_t rest_ms) {
    const std::int64_t drift =
        one.ttl_ms * (what.drift_ppb / 1000) / 1'000'000 + what.drift_margin_ms + 1;
    return std::max<std::int64_t>(0, one.ttl_ms - drift - rest_ms - one.min_validity_ms);
}

void obey(op& one, generator& random) {
    const std::uint64_t kind = random.below(3);
    one.after_loss = static_cast<op::obedience>(kind);
    one.lingers = random.between(0, one.ttl_ms * ms);
}

void go_to_extremes(const plan& what, op& one, generator& random) {
    switch (random.below(5)) {
    case 0:
        one.stop_margin_ms = largest_margin(what, one, random.between(1, 15));
        break;
    case 1:
        one.max_hold_ms = one.stop_margin_ms + random.between(1, 10);
        break;
    case 2:
        one.max_hold_ms = 3'600'000;
        break;
    case 3:
        one.min_validity_ms = 0;
        one.min_validity_ms = std::max<std::int64_t>(
            0, largest_margin(what, one, random.between(1, 15)) - one.stop_margin_ms);
        break;
    default:
        one.wait_ms = random.percent(50) ? 1 : 3'600'000;
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

void choose_holders(plan& what, generator& random) {
    const bool sharp = is_sharp(what);
    for_each_op(what, [&](client_plan& client, op& one) {
        obey(one, random);
        const bool lock = one.how == taking::one && one.slots == 0;
        const bool extreme = random.percent(8);
        const bool fifo = random.percent(6);
        const bool named = random.percent(5);
        const bool hands_on = what.members || what.attempt_within != 0;
        const bool attached = random.percent(hands_on ? 30 : 6);
        const bool unfenced = random.percent(8);
        const bool may_attach = !sharp || what.attempt_within != 0;
        one.attaches = one.attaches || (attached && !named && lock && may_attach);
        if (sharp) {
            return;
        }
        if (extreme) {
            go_to_extremes(what, one, random);
        }
        one.fences = one.fences && !unfenced;
        if (client.speaks == speech::guarded || one.how == taking::one) {
            one.fifo = fifo && one.wait_ms != 0;
        }
        one.names_token = named && lock;
    });
    // A client may be configured for longer leases than any that is taken.
    for (client_plan& client : what.clients) {
        const std::int64_t factor = random.percent(15) ? random.between(2, 3) : 1;
        client.max_ttl_ms *= sharp ? 1 : factor;
    }
}

void choose_transfers(plan& what, generator& random) {
    const bool some = random.percent(25);
    for_each_op(what, [&](client_plan&, op& one) {
        const bool chosen = random.percent(70);
        one.transferable = some && chosen && one.end == op::ending::abandon
                           && one.how == taking::one && one.slots == 0 && !one.attaches;
    });
}

void choose_servers(plan& what, generator& random) {
    if (is_sharp(what)) {
        return;
    }
    const bool operated = random.percent(20);
    for (std::uint64_t left = 1 + random.below(3); left > 0; --left) {
        using enum fault_kind;
        fault one{.kind = any_of(random, {forget_words, reset_stats, reload})};
        one.master = master_or_all(what, random);
        one.at = random.between(0, what.faults_end - 50 * ms);
        if (operated) {
            what.faults.push_back(one);
        }
    }
    const bool hushed = random.percent(10);
    fault hush{.kind = fault_kind::hush};
    hush.master = master_or_all(what, random);
    hush.at = random.between(0, what.faults_end - 50 * ms);
    hush.span = random.between(ms, what.faults_end - hush.at - 10 * ms);
    if (hushed) {
        what.faults.push_back(hush);
    }
}

void add_stop_faults(plan& what, generator& random) {
    for_each_op(what, [&](client_plan&, op& one) {
        one.think = random.between(0, 10 * ms);
        one.wait_ms = random.between(50, 1000);
        one.stop_margin_ms =
            random.percent(80) ? random.between(1, std::max<std::int64_t>(1, one.ttl_ms / 2)) : 0;
        one.min_validity_ms = 0;
        one.hold = random.between(0, 2 * one.ttl_ms * ms);
        one.max_hold_ms =
            random.percent(50) ? one.stop_margin_ms + random.between(1, 2 * one.ttl_ms) : 0;
        one.renews = random.percent(70);
    });
    for (std::uint64_t left = random.below(5); left > 0; --left) {
        using enum fault_kind;
        fault one{.kind = any_of(random, {pause, suspend, stall, client_close})};
        one.client = any_client(what, random);
        one.master = master_or_all(what, random);
        end_in_time(what, add(what, random, one, longest_lease(what)));
    }
    const bool guarded = all_guarded(what);
    for (std::uint64_t left = random.below(3); guarded && left > 0; --left) {
        fault one{.kind = random.percent(50) ? fault_kind::flush : fault_kind::flush_db};
        one.master = any_master(what, random);
        add(what, random, one, 0);
    }
    add_partitions(what, random, 2);
}

void add_promotion_faults(plan& what, generator& random) {
    for (master_plan& one : what.masters) {
        one.fsyncs = random.percent(60);
    }
    for (std::uint64_t left = 1 + random.below(4); left > 0; --left) {
        fault one{.kind = fault_kind::promote};
        one.master = any_master(what, random);
        one.amount = random.percent(70) ? random.between(0, 200 * ms) : random.between(0, sec);
        add(what, random, one, 60 * ms);
    }
    add_partitions(what, random, 5);
}

void add_take_over_faults(plan& what, generator& random) {
    for (std::uint64_t left = 1 + random.below(4); left > 0; --left) {
        fault one{.kind = fault_kind::take_over};
        one.master = any_master(what, random);
        add(what, random, one, 60 * ms);
    }
    add_partitions(what, random, 5);
}

// Only of one master, which holders and others reach all the time: a client that first asks a
// master after a step that nobody else has noticed yet cannot know of it.
void add_boot_step_faults(plan& what, generator& random) {
    what.bounded = what.ordered = false;
    what.air.late_max = 0;
    if (random.percent(70)) { // a client that asks again does so in the quarantine
        what.health_check_ms = random.between(30, 150);
    }
    for_each_op(what, [&](client_plan& client, op& one) {
        client.max_ttl_ms = std::max<std::int64_t>(client.max_ttl_ms, 300);
        one.ttl_ms = one.extend_ttl_ms = random.between(200, 300);
        one.think = random.between(0, 20 * ms);
        one.wait_ms = random.between(100, 1000);
        one.hold = random.between(100 * ms, 600 * ms);
    });
    constexpr nanos all_have_asked = 150 * ms;
    const int stepped = any_master(what, random);
    for (nanos at = random.between(50, 150) * ms; at < what.faults_end - 400 * ms;
         at += random.between(400, 600) * ms) {
        fault one{.kind = fault_kind::crash, .at = at, .span = random.between(ms, 60 * ms)};
        one.master = stepped;
        one.amount = random.percent(50) ? -1 : random.between(0, sec);
        what.faults.push_back(one);
        const nanos after =
            random.percent(30) ? 0 : random.between(all_have_asked, all_have_asked + 100 * ms);
        const std::int64_t far = random.percent(50) ? 3'600'000'000 : 1'000'000;
        // A key on the only master would stay for as long as its clock was set back.
        const bool back = what.masters.size() > 1 && random.percent(30);
        const std::int64_t by = random.between(back ? -far : 0, back ? 0 : far);
        what.faults.push_back({fault_kind::step, at + one.span + after, 0, -1, stepped, by});
        // A holder that has just enough votes before, and that one among them.
        fault cut{.kind = fault_kind::partition, .at = at - random.between(10 * ms, 50 * ms)};
        cut.span = random.between(50, 300) * ms;
        cut.client = any_client(what, random);
        cut.master = any_master(what, random);
        cut.amount = random.between(1, 3);
        if (cut.master != stepped) {
            what.faults.push_back(cut);
        }
    }
    add_partitions(what, random, 3, stepped);
}

void add_lost_record_faults(plan& what, generator& random) {
    for (std::uint64_t left = 1 + random.below(6); left > 0; --left) {
        fault one{.kind = random.percent(85) ? fault_kind::remove_keys : fault_kind::flush_db};
        one.master = master_or_all(what, random, 20);
        one.amount = 2 * random.between(1, 3);
        add(what, random, one, 0);
    }
    add_partitions(what, random, 4);
}

void add_deletion_faults(plan& what, generator& random) {
    what.kept = what.ordered = false;
    what.yields = true;
    // One client holds for long and lives on extensions; the others come and go between them.
    for (client_plan& client : what.clients) {
        client.pushes = random.percent(20);
    }
    for_each_op(what, [&](client_plan& client, op& one) {
        const bool lasts = &client == what.clients.data() || random.percent(20);
        one.renews = true;
        one.stop_margin_ms = one.min_validity_ms = one.max_hold_ms = 0;
        one.think = random.between(0, 10 * ms);
        one.wait_ms = random.between(50, 1000);
        one.ttl_ms = one.extend_ttl_ms =
            lasts ? client.max_ttl_ms : random.between(60, client.max_ttl_ms);
        one.hold = lasts ? random.between(longest_lease(what), 6 * longest_lease(what))
                         : random.between(0, 15 * ms);
        one.extend_after.clear();
        if (lasts && random.percent(30)) {
            one.extend_after.push_back(random.between(0, one.hold));
        }
        one.cancel_after = no_time;
        one.end = op::ending::release;
    });
    what.air.late_max = 0;
    for (std::uint64_t left = 4 + random.below(12); left > 0; --left) {
        const nanos at = random.between(10 * ms, what.faults_end - 50 * ms);
        for (int m = 0; m < static_cast<int>(what.masters.size()); ++m) {
            if (random.percent(80)) {
                what.faults.push_back({fault_kind::remove_keys, at, 0, -1, m, 1});
            }
        }
    }
}

std::int64_t evictable_after(const plan& what) {
    constexpr nanos interval = 105 * ms; // of these leases: see settings::fitness_interval
    return interval + 2 * (what.master_timeout_ms * ms + what.air.delay_max + what.air.slow_max)
           + what.air.flush_max;
}

void add_eviction_faults(plan& what, generator& random) {
    what.air.slow_percent = static_cast<unsigned>(random.below(8));
    what.air.slow_max = random.between(5 * ms, 2 * what.master_timeout_ms * ms);
    for_each_op(what, [&](client_plan&, op& one) {
        one.think = random.between(0, 20 * ms);
        one.wait_ms = random.between(50, 1000);
        one.hold = random.between(0, 3 * one.ttl_ms * ms);
        one.renews = random.percent(70);
    });
    const nanos lag = evictable_after(what);
    for (nanos at = random.between(20, 200) * ms; at + lag + 60 * ms < what.faults_end;) {
        fault one{.kind = fault_kind::evict, .at = at};
        one.amount = lag + random.between(0, 100 * ms);
        one.span = std::min(one.amount + random.between(0, 300 * ms), what.faults_end - at - ms);
        one.amount = std::min(one.amount, one.span);
        for (one.master = 0; one.master < static_cast<int>(what.masters.size()); ++one.master) {
            if (random.percent(70)) {
                what.faults.push_back(one);
            }
        }
        at += one.span + random.between(0, 400 * ms);
    }
    for (std::uint64_t left = random.below(4); left > 0; --left) {
        using enum fault_kind;
        fault one{.kind = any_of(random, {pause, break_late, client_crash, client_close})};
        one.client = any_client(what, random);
        one.master = master_or_all(what, random);
        one.amount = one.kind == break_late ? what.air.late_max : 0;
        end_in_time(what, add(what, random, one, longest_lease(what)));
    }
    add_partitions(what, random, 3);
}

// Leases are longer than the promise, so that a waiter that sleeps to the end of one is noticed.
// They leave their process in every way: released, abandoned, attached to by another one, lost, or
// deleted by an operator.
void add_free_lock_faults(plan& what, generator& random) {
    what.attempt_within = 2 * sec + 300 * ms;
    what.faults_end = random.between(15, 30) * sec;
    what.air.lost_pushes_percent = random.percent(60)   ? 0
                                   : random.percent(50) ? 100
                                                        : static_cast<unsigned>(random.below(100));
    const std::int64_t ttl = random.between(8'000, 20'000);
    std::size_t workers = 0;
    for (client_plan& client : what.clients) {
        client.pushes = random.percent(80);
        client.max_ttl_ms = ttl;
        client.workers.resize(1 + random.below(3), client.workers.front());
        for (auto& worker : client.workers) {
            ++workers;
            for (op& one : worker) {
                const bool fences = one.fences;
                one = op();
                one.fences = fences;
                one.ttl_ms = one.extend_ttl_ms = ttl;
                one.wait_ms = random.percent(50) ? -1 : random.between(5'000, 20'000);
                one.renews = random.percent(30);
                one.think = random.between(0, 2 * sec);
                one.hold = random.between(100 * ms, 5 * sec);
                one.end = random.percent(25) ? op::ending::abandon : op::ending::release;
                one.max_hold_ms = random.percent(10) ? random.between(500, 4'000) : 0;
                if (fences) {
                    one.write_after.push_back(random.between(0, 2 * ttl * ms));
                }
            }
        }
    }
    for (master_plan& one : what.masters) {
        one.age = 1000 * sec;
    }
    for (std::uint64_t left = random.below(5); left > 0; --left) {
        using enum fault_kind;
        fault one{.kind = any_of(random, {deafen, hush, partition, break_lost})};
        if (one.kind == partition || one.kind == break_lost) {
            one.only = wire::pushes;
        }
        one.client = client_or_all(what, random);
        one.master = master_or_all(what, random, 70);
        one.amount = one.kind == partition ? random.between(1, 3) : 0;
        fault& made = add(what, random, one, 20 * sec);
        if (one.kind == deafen || (one.kind == hush && random.percent(70))) {
            made.span = no_time;
        }
    }
    if (random.percent(25)) {
        what.kept = what.ordered = false; // nobody is protected from a deletion
        for (std::uint64_t left = 1 + random.below(4); left > 0; --left) {
            fault one{.kind = fault_kind::remove_keys, .amount = 1};
            add(what, random, one, 0);
        }
    }
    what.progress_bound = static_cast<nanos>(workers + 2) * 4 * sec + 2 * ttl * ms;
}

} // namespace simulation
