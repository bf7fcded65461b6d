#include "profiles.hpp"

#include "faults.hpp"

#include <array>

namespace simulation {

namespace {

// --- Faults, one of each kind --------------------------------------------------------------------

void add_partition(draft& what) {
    what.add(
        {.kind = partition,
         .client = what.client_or_all(30),
         .master = what.any_master(),
         .amount = what.percent(40) ? 3 : what.between(1, 2)});
}

// Several masters at once are out of one client's reach.
void add_wide_partition(draft& what) {
    const nanos at = what.between(10 * ms, what.faults_end - 100 * ms);
    const nanos span =
        what.between(5 * ms, std::min(what.longest_lease(), what.faults_end - at - 10 * ms));
    const int client = what.any_client();
    const std::int64_t directions = what.between(1, 3);
    for (int m = 0; m < static_cast<int>(what.masters.size()); ++m) {
        if (what.percent(60)) {
            what.faults.push_back(
                {partition,
                 at + what.between(0, 3 * ms),
                 span - what.between(0, 2 * ms),
                 client,
                 m,
                 directions});
        }
    }
}

void add_break(draft& what) {
    fault one{.kind = what.percent(60) ? break_late : break_lost};
    one.client = what.client_or_all(30);
    one.master = what.master_or_all(20);
    one.amount = one.kind == break_late ? what.air.late_max : 0;
    what.add(one, 0);
}

void add_refusal(draft& what) {
    what.add({.kind = refuse, .client = what.client_or_all(30), .master = what.any_master()});
}

void add_stall(draft& what) {
    what.add({.kind = stall, .master = what.any_master()});
}

// What a master has kept when it is back: all, if it fsyncs every write; else whatever it likes.
void add_crash(draft& what) {
    fault one{.kind = crash};
    one.master = what.any_master();
    if (!what.masters[static_cast<std::size_t>(one.master)].fsyncs) {
        const std::uint64_t kind = what.below(3);
        one.amount = kind == 0 ? -1 : kind == 1 ? what.between(0, sec) : what.between(sec, 4 * sec);
    }
    what.add(one, 2 * what.longest_lease());
}

void add_flush(draft& what) {
    what.add({.kind = flush, .master = what.master_or_all(20)}, 0);
}

void add_replacement(draft& what) {
    fault one{.kind = replace};
    one.master = what.any_master();
    one.amount = what.any_master();
    if (one.amount != one.master) {
        what.add(one, 0);
    }
}

void add_pause(draft& what) {
    what.add(
        {.kind = what.percent(50) ? pause : suspend, .client = what.any_client()},
        2 * what.longest_lease());
}

void add_client_end(draft& what) {
    fault one{.kind = what.percent(60) ? client_crash : client_close};
    one.client = what.any_client();
    what.end_in_time(what.add(one));
}

// --- Profiles ------------------------------------------------------------------------------------

void rough_air(draft& what) {
    what.air.slow_percent = static_cast<unsigned>(what.below(8));
    what.air.slow_max = what.between(5 * ms, 2 * what.master_timeout_ms * ms);
    what.air.flush_max = what.percent(50) ? 0 : what.between(0, 3 * ms);
}

void calm(draft&) {}

void add_network_faults(draft& what) {
    rough_air(what);
    what.add_some(
        {{3, add_partition},
         {1, add_wide_partition},
         {3, add_break},
         {1, add_refusal},
         {2, add_stall}});
}

// Connections break and leave commands in flight.
void add_in_flight_faults(draft& what) {
    rough_air(what);
    what.air.slow_percent = 20;
    what.air.late_percent = 80;
    what.add_some({{10, add_break}, {2, add_stall}});
    what.add_some(2, [](draft& made) {
        made.add(
            {.kind = slow_handshake,
             .client = made.client_or_all(50),
             .master = made.master_or_all(50),
             .amount = made.connect_timeout_ms * ms},
            made.faults_end);
    });
}

void add_restart_faults(draft& what) {
    rough_air(what);
    what.add_some({{5, add_crash}, {1, add_break}, {1, add_partition}});
}

void add_client_faults(draft& what) {
    rough_air(what);
    what.add_some({{5, add_pause}, {2, add_client_end}, {1, add_break}});
}

// All clocks as wrong as they may be, relative to each other: half of the bound to either side.
void bad_clocks(draft& what) {
    const std::int64_t half = what.drift_ppb / 2;
    const auto extreme = [&] { return what.percent(50) ? half : -half; };
    for (master_plan& one : what.masters) {
        one.rate_ppb = what.percent(70) ? extreme() : what.between(-half, half);
    }
    for (client_plan& one : what.clients) {
        one.rate_ppb = what.percent(70) ? extreme() : what.between(-half, half);
    }
}

// Steps of all clocks together stay within the margin: forward for leases, either way for offsets.
void add_steps(draft& what) {
    const std::int64_t margin_us = what.drift_margin_ms * 1000;
    const std::uint64_t steps = what.below(4);
    for (std::uint64_t i = 0; i < steps; ++i) {
        fault one{.kind = step};
        one.master = what.any_master();
        const std::int64_t most = (margin_us - 1000) / static_cast<std::int64_t>(steps);
        one.amount = what.percent(60) ? what.between(0, most) : -what.between(0, most);
        what.add(one, 0);
    }
}

void add_clock_faults(draft& what) {
    what.drift_margin_ms = what.between(2, 10);
    what.drift_ppb = what.percent(50) ? what.drift_ppb : 5 * what.drift_ppb;
    bad_clocks(what);
    add_steps(what);
    what.add_some({{1, add_pause}, {1, add_partition}});
}

// Long holds that live on extensions, with partitions around the moments at which they are sent.
void add_extension_faults(draft& what) {
    rough_air(what);
    for_each_op(what, [&](const client_plan& client, op& one) {
        one.renews = what.percent(80);
        one.hold = what.between(what.longest_lease() / 2, 3 * what.longest_lease());
        if (what.percent(40)) {
            one.extend_after.push_back(what.between(0, one.ttl_ms * ms));
            one.extend_ttl_ms = what.between(one.ttl_ms / 2, client.max_ttl_ms);
        }
    });
    what.add_some({{4, add_wide_partition}, {4, add_partition}, {2, add_break}, {1, add_stall}});
}

// Time-outs as long as the leases.
void add_tight_timeouts(draft& what) {
    what.master_timeout_ms = what.between(60, what.max_ttl_ms());
    what.air.slow_percent = static_cast<unsigned>(what.between(5, 40));
    what.air.slow_max = what.between(10 * ms, what.longest_lease());
    what.air.flush_max = what.between(0, 10 * ms);
    what.add_some({{4, add_stall}, {2, add_partition}, {1, add_pause}});
}

// Memory that is lost without a restart. Not for the plain protocol, which says that it may fail.
void add_flush_faults(draft& what) {
    rough_air(what);
    what.add_some({{5, add_flush}, {2, add_replacement}, {1, add_crash}, {1, add_break}});
}

// Holders that live on extensions while masters lose data: missing keys are created again.
void add_heal_faults(draft& what) {
    add_extension_faults(what);
    what.air.late_percent = 60;
    what.add_some({{4, add_flush}, {3, add_crash}, {3, add_break}, {2, add_pause}});
}

// Long leases: what remains of a failed attempt or a release must be removed, as it would stay.
// Nothing is late, since a late command may take a lock that nobody removes before it expires.
void add_rollback_faults(draft& what) {
    what.prompt = true;
    what.air.late_max = 0;
    what.air.lost_pushes_percent = 0; // a waiter that misses one waits for a whole lease
    const std::int64_t ttl = what.between(10'000, 30'000);
    for (client_plan& client : what.clients) {
        client.pushes = what.clients.front().pushes;
        client.max_ttl_ms = ttl;
    }
    for_each_op(what, [&](const client_plan&, op& one) {
        one.ttl_ms = ttl;
        one.extend_after.clear();
        one.hold = what.between(0, 20 * ms);
        one.think = what.between(0, 40 * ms);
        one.max_hold_ms = 0;
        one.end = op::ending::release;
    });
    for (master_plan& one : what.masters) {
        one.age = 1000 * sec;
    }
    what.add_some(5, [](draft& made) {
        const int client = made.client_or_all(30);
        made.add({.kind = break_lost, .client = client, .master = made.master_or_all(20)}, 0);
    });
    what.add_some(3, [](draft& made) {
        fault cut{.kind = partition, .master = made.any_master()};
        cut.client = made.client_or_all(30);
        cut.amount = made.between(1, 3);
        made.add(cut, 200 * ms);
    });
    what.add_some(
        3, [](draft& made) { made.add({.kind = stall, .master = made.any_master()}, 200 * ms); });
}

// Counters of masters that differ: clocks at the ends of their bound, lost counters, votes by the
// least majority.
void add_fence_faults(draft& what) {
    rough_air(what);
    what.ordered = true;
    for (master_plan& one : what.masters) {
        one.offset_us = (what.percent(50) ? 500 : -500) * what.offset_bound_ms;
    }
    for_each_op(what, [&](const client_plan& client, op& one) {
        one.fences = true;
        one.ttl_ms = what.between(30, client.max_ttl_ms);
        one.think = what.between(0, 5 * ms);
        one.hold = what.between(0, 20 * ms);
        one.write_after.assign(1, what.between(0, what.longest_lease()));
    });
    what.add_some(
        {{3, add_flush},
         {2, add_crash},
         {3, add_wide_partition},
         {3, add_stall},
         {3, add_break},
         {2, add_pause}});
}

void add_all_faults(draft& what) {
    rough_air(what);
    bad_clocks(what);
    what.add_some(
        {{2, add_partition},
         {1, add_wide_partition},
         {3, add_break},
         {1, add_stall},
         {2, add_crash},
         {2, add_pause},
         {1, add_client_end}});
    if (what.all_guarded()) {
        what.add_some(1, add_flush);
    }
    if (what.drift_margin_ms >= 4) {
        add_steps(what);
    }
}

// A1 and A2 are broken on purpose.
void break_assumptions(draft& what) {
    add_all_faults(what);
    what.kept = what.ordered = false;
    // Between two looks at a clock that runs as wrong as here. With less, each would show a step.
    what.offset_bound_ms = std::max<std::int64_t>(what.offset_bound_ms, 300);
    for (client_plan& one : what.clients) {
        one.rate_ppb = what.between(-10, 10) * what.drift_ppb;
    }
    for (master_plan& one : what.masters) {
        one.rate_ppb = what.between(-10, 10) * what.drift_ppb;
    }
    for (std::uint64_t i = what.below(3); i > 0; --i) {
        what.add(
            {.kind = step,
             .master = what.any_master(),
             .amount = what.between(-what.max_ttl_ms(), what.max_ttl_ms()) * 1000},
            0);
    }
}

bool forgets_records(fault_kind what) {
    return what == crash || what == flush || what == replace || what == promote || what == take_over
           || what == flush_db || what == remove_keys;
}

// The first masters keep their records for sure.
void keep_records(plan& what, std::size_t masters) {
    std::erase_if(what.faults, [&](const fault& one) {
        return forgets_records(one.kind) && one.master < static_cast<int>(masters);
    });
}

// N - q + 1 masters keep their records, and a crash leaves all or nothing.
void lose_all_or_nothing(draft& what) {
    for (fault& one : what.faults) {
        const bool restores = one.kind == crash || one.kind == promote;
        one.amount = restores ? std::min<std::int64_t>(one.amount, 0) : one.amount;
    }
    keep_records(what, (what.masters.size() + 1) / 2);
}

// The leases of one client are longer than the max_ttl of the others, in some runs. Then A3
// excludes a snapshot from before its first contact: a crash leaves all or nothing.
void take_longer(draft& what) {
    if (!what.percent(30)) {
        return;
    }
    lose_all_or_nothing(what);
    const std::int64_t factor = what.between(2, 3);
    client_plan& client = what.clients.back();
    client.max_ttl_ms *= factor;
    for (auto& worker : client.workers) {
        for (op& one : worker) {
            one.ttl_ms *= factor;
        }
    }
}

// Clients with different lists of masters, of which all contain the first one. Only that one keeps
// its record for sure.
void add_different_lists(draft& what) {
    add_all_faults(what);
    keep_records(what, 1);
    what.members = true;
    what.founded = what.percent(50);
    for (client_plan& one : what.clients) {
        if (what.percent(50)) {
            one.masters = 1 + what.below(what.masters.size());
        }
    }
}

void add_list_faults(draft& what) {
    add_different_lists(what);
    take_longer(what);
}

// The quorum is founded while clients have other lists, or other names for the same masters; some
// are corrected, and some replace a list that is not final at once.
void add_rival_lists(draft& what) {
    add_different_lists(what);
    what.founded = false;
    for (client_plan& one : what.clients) {
        one.respelled = what.percent(30);
        one.replaces = what.percent(40);
        one.corrected = what.percent(50);
    }
    // Masters that do not reply before a list is written to the others.
    for (std::uint64_t left = what.below(4); left > 0; --left) {
        fault one{.kind = what.percent(50) ? refuse : stall};
        one.master = what.any_master();
        one.span = what.between(10 * ms, what.faults_end / 2);
        what.faults.push_back(one);
    }
    for (std::uint64_t left = 1 + what.below(4); left > 0; --left) {
        what.add({.kind = what.percent(50) ? client_crash : pause, .client = what.any_client()}, 0);
    }
    take_longer(what);
}

// Members are added and removed while locks are taken, by several clients at once. In half of the
// runs masters also lose their records, all but the first.
void add_member_changes(draft& what) {
    const std::size_t masters = what.masters.size();
    const bool forgets = what.percent(50);
    if (forgets) {
        add_different_lists(what);
    } else {
        add_network_faults(what);
        add_client_faults(what);
    }
    what.members = what.founded = true;
    for_each_op(what, [&](client_plan& client, op& one) {
        client.masters = 0;
        one.end = what.percent(40) ? op::ending::abandon : one.end; // extended by other processes
    });
    what.members_at_first = masters > 3 ? masters - 1 : masters;
    std::size_t removals = 0;
    for (client_plan& one : what.clients) {
        if (what.percent(60)) {
            const bool adds = what.members_at_first < masters && what.percent(50);
            removals += adds ? 0U : 1U;
            one.change = adds ? "+m" + std::to_string(masters - 1)
                              : "-m" + std::to_string(what.below(what.members_at_first));
        }
    }
    take_longer(what);
    // A client does not work with a quorum of which it has too few masters in its list.
    what.may_refuse = forgets || 2 * what.members_at_first <= masters + 2 * removals;
}

// Leases are longer than what some masters have recorded, or become so when the limit is lowered,
// and masters lose their records: all but N - q + 1 of them, at once and completely (A3).
void add_limit_faults(draft& what) {
    add_all_faults(what);
    const auto masters = static_cast<std::int64_t>(what.masters.size());
    lose_all_or_nothing(what);
    for (std::uint64_t left = what.between(1, 3); masters > 1 && left > 0; --left) {
        const bool crashes = what.percent(50);
        const auto which = static_cast<int>(what.between((masters + 1) / 2, masters - 1));
        what.add({.kind = crashes ? crash : flush, .master = which, .amount = -1}, 0);
    }
    what.members = true;
    what.founded = what.percent(80);
    const std::int64_t base = what.clients.front().max_ttl_ms;
    for (client_plan& one : what.clients) {
        one.takes_recorded = what.percent(60);
        one.max_ttl_ms = what.percent(30) ? base / 2 : one.max_ttl_ms;
        one.max_ttl_ms *= what.percent(20) ? what.between(2, 3) : 1;
        if (what.percent(40)) {
            one.change = "=" + std::to_string(what.between(50, 3 * base));
        }
    }
    for_each_op(what, [&](client_plan& client, op& one) {
        const std::int64_t longest = client.takes_recorded ? 3 * base : client.max_ttl_ms;
        one.ttl_ms = what.percent(50) ? longest : what.between(40, longest);
        one.stop_margin_ms = one.min_validity_ms = one.max_hold_ms = 0;
        one.extend_ttl_ms = what.between(40, longest);
        one.hold = what.between(0, 2 * one.ttl_ms * ms);
        one.end = what.percent(20) ? op::ending::abandon : op::ending::release;
    });
}

// Workers acquire several resources, of which there is one more to choose from, or as readers.
void choose_forms(draft& what) {
    const std::size_t resources = what.resources() + 1;
    for_each_op(what, [&](const client_plan&, op& one) {
        const std::uint64_t kind = what.below(10);
        if (kind < 3) {
            one.how = taking::all;
            for (std::uint64_t i = 1 + what.below(2); i > 0; --i) {
                one.with.push_back(static_cast<unsigned>(what.below(resources)));
            }
        } else if (kind < 6) {
            one.how = taking::reading;
        } else if (kind < 9 && what.percent(40)) {
            one.downgrade_after = what.between(0, one.hold);
        }
    });
}

/// Adds the faults of another profile before that.
template <void (*AddFaults)(draft&)>
void with_forms(draft& what) {
    AddFaults(what);
    choose_forms(what);
}

constexpr std::string_view keeps_all = "A1 to A6 (but holders may write late)";
constexpr std::string_view keeps_little = "A3 only: clocks run and step beyond their bounds";

constexpr std::string_view keeps_most =
    "A1, A3 to A6; but the clock of one master is stepped during its quarantine";

constexpr std::string_view keeps_lists =
    "A1, A2, A4 to A6; clients have different lists, and the first master keeps its record";

constexpr std::string_view keeps_limits =
    "A1 to A6; clients differ in max_ttl and change it, and N - q + 1 masters keep their records";

constexpr std::string_view keeps_keys =
    "A1 to A3, A5, A6; but lock keys are deleted, and an overtaken holder must not be extended";

constexpr std::array table{
    profile{"calm", mixture::plain, keeps_all, calm},
    profile{"network", mixture::plain, keeps_all, add_network_faults},
    profile{"in-flight", mixture::plain, keeps_all, add_in_flight_faults},
    profile{"restarts", mixture::plain, keeps_all, add_restart_faults},
    profile{"clients", mixture::plain, keeps_all, add_client_faults},
    profile{"clocks", mixture::plain, keeps_all, add_clock_faults},
    profile{"extensions", mixture::plain, keeps_all, add_extension_faults},
    profile{"tight", mixture::plain, keeps_all, add_tight_timeouts},
    profile{"rollbacks", mixture::plain, keeps_all, add_rollback_faults},
    profile{"queues", mixture::plain, keeps_all, add_queue_faults},
    profile{"notifications", mixture::plain, keeps_all, add_notification_faults},
    profile{"turns", mixture::plain, keeps_all, add_turns},
    profile{"slots", mixture::plain, keeps_all, add_slot_faults},
    profile{"slot-notifications", mixture::plain, keeps_all, add_slot_notification_faults},
    profile{"no-notifications", mixture::plain, keeps_all, lose_all_notifications},
    profile{"all", mixture::plain, keeps_all, add_all_faults},
    profile{"beyond", mixture::plain, keeps_little, break_assumptions},

    profile{"guarded-calm", mixture::guarded, keeps_all, calm},
    profile{"guarded-network", mixture::guarded, keeps_all, add_network_faults},
    profile{"guarded-in-flight", mixture::guarded, keeps_all, add_in_flight_faults},
    profile{"guarded-restarts", mixture::guarded, keeps_all, add_restart_faults},
    profile{"guarded-clients", mixture::guarded, keeps_all, add_client_faults},
    profile{"guarded-clocks", mixture::guarded, keeps_all, add_clock_faults},
    profile{"guarded-extensions", mixture::guarded, keeps_all, add_extension_faults},
    profile{"guarded-tight", mixture::guarded, keeps_all, add_tight_timeouts},
    profile{"guarded-flushes", mixture::guarded, keeps_all, add_flush_faults},
    profile{"guarded-rollbacks", mixture::guarded, keeps_all, add_rollback_faults},
    profile{"guarded-heals", mixture::guarded, keeps_all, add_heal_faults},
    profile{"guarded-fences", mixture::guarded, keeps_all, add_fence_faults},
    profile{"guarded-queues", mixture::guarded, keeps_all, add_queue_faults},
    profile{"guarded-notifications", mixture::guarded, keeps_all, add_notification_faults},
    profile{"guarded-slots", mixture::guarded, keeps_all, add_slot_faults},
    profile{"guarded-slot-wakes", mixture::guarded, keeps_all, add_slot_notification_faults},
    profile{"guarded-no-notifications", mixture::guarded, keeps_all, lose_all_notifications},
    profile{"guarded-all", mixture::guarded, keeps_all, add_all_faults},
    profile{"guarded-beyond", mixture::guarded, keeps_little, break_assumptions},

    profile{"forms-network", mixture::guarded, keeps_all, with_forms<add_network_faults>},
    profile{"forms-in-flight", mixture::guarded, keeps_all, with_forms<add_in_flight_faults>},
    profile{"forms-clients", mixture::guarded, keeps_all, with_forms<add_client_faults>},
    profile{"forms-clocks", mixture::guarded, keeps_all, with_forms<add_clock_faults>},
    profile{"forms-extensions", mixture::guarded, keeps_all, with_forms<add_extension_faults>},
    profile{"forms-tight", mixture::guarded, keeps_all, with_forms<add_tight_timeouts>},
    profile{"forms-flushes", mixture::guarded, keeps_all, with_forms<add_flush_faults>},
    profile{"forms-rollbacks", mixture::guarded, keeps_all, with_forms<add_rollback_faults>},
    profile{"forms-heals", mixture::guarded, keeps_all, with_forms<add_heal_faults>},
    profile{"forms-fences", mixture::guarded, keeps_all, with_forms<add_fence_faults>},
    profile{"forms-queues", mixture::guarded, keeps_all, with_forms<add_queue_faults>},
    profile{"forms-all", mixture::guarded, keeps_all, with_forms<add_all_faults>},

    profile{"stops", mixture::plain, keeps_all, add_stop_faults},
    profile{"deletions", mixture::plain, keeps_keys, add_deletion_faults},
    profile{"free-locks", mixture::plain, keeps_all, add_free_lock_faults},
    profile{"guarded-stops", mixture::guarded, keeps_all, add_stop_faults},
    profile{"guarded-promotions", mixture::guarded, keeps_all, add_promotion_faults},
    profile{"guarded-take-overs", mixture::guarded, keeps_all, add_take_over_faults},
    profile{"guarded-boot-steps", mixture::guarded, keeps_most, add_boot_step_faults},
    profile{"guarded-lost-records", mixture::guarded, keeps_all, add_lost_record_faults},
    profile{"guarded-deletions", mixture::guarded, keeps_keys, add_deletion_faults},
    profile{"guarded-free-locks", mixture::guarded, keeps_all, add_free_lock_faults},
    profile{"guarded-free-slots", mixture::guarded, keeps_all, add_free_slot_faults},
    profile{"forms-free-locks", mixture::guarded, keeps_all, with_forms<add_free_lock_faults>},
    profile{"forms-stops", mixture::guarded, keeps_all, with_forms<add_stop_faults>},
    profile{"forms-deletions", mixture::guarded, keeps_keys, with_forms<add_deletion_faults>},
    profile{"mixed-stops", mixture::mixed, keeps_all, add_stop_faults},

    profile{"mixed-network", mixture::mixed, keeps_all, add_network_faults},
    profile{"mixed-restarts", mixture::mixed, keeps_all, add_restart_faults},
    profile{"mixed-extensions", mixture::mixed, keeps_all, add_extension_faults},
    profile{"mixed-queues", mixture::mixed, keeps_all, add_queue_faults},
    profile{"mixed-turns", mixture::mixed, keeps_all, add_turns},
    profile{"mixed-slots", mixture::mixed, keeps_all, add_slot_faults},
    profile{"mixed-all", mixture::mixed, keeps_all, add_all_faults},

    profile{"guarded-evictions", mixture::guarded, keeps_all, add_eviction_faults},
    profile{"forms-evictions", mixture::guarded, keeps_all, with_forms<add_eviction_faults>},

    profile{"guarded-lists", mixture::guarded, keeps_lists, add_list_faults},
    profile{"guarded-changes", mixture::guarded, keeps_lists, add_member_changes},
    profile{"guarded-foundings", mixture::guarded, keeps_lists, add_rival_lists},
    profile{"guarded-limits", mixture::guarded, keeps_limits, add_limit_faults},
};

// --- Everything except faults --------------------------------------------------------------------

op some_op(draft& what, std::uint64_t resources, std::int64_t max_ttl_ms, bool fences) {
    op one;
    one.resource = static_cast<unsigned>(what.below(resources));
    one.ttl_ms = what.percent(30) ? max_ttl_ms : what.between(40, max_ttl_ms);
    one.wait_ms = what.percent(25) ? 0 : what.between(20, 2 * max_ttl_ms);
    one.stop_margin_ms = what.percent(15) ? what.between(1, one.ttl_ms / 4) : 0;
    one.min_validity_ms = what.percent(15) ? what.between(1, one.ttl_ms / 4) : 0;
    one.renews = what.percent(60);
    one.max_hold_ms = what.percent(15) ? what.between(one.ttl_ms / 2, 3 * one.ttl_ms) : 0;
    one.fences = fences;
    one.think = what.between(0, what.percent(50) ? 5 * ms : 100 * ms);
    one.hold = what.between(0, (what.percent(70) ? one.ttl_ms / 2 : 3 * one.ttl_ms) * ms);
    if (what.percent(15)) {
        one.cancel_after = what.between(0, 30 * ms);
    }
    if (what.percent(25)) {
        one.extend_after.push_back(what.between(0, one.ttl_ms * ms));
        one.extend_ttl_ms = what.between(40, max_ttl_ms);
    }
    for (std::uint64_t i = what.below(3); fences && i > 0; --i) {
        one.write_after.push_back(what.between(0, 3 * one.ttl_ms * ms));
    }
    const std::uint64_t end = what.below(10);
    one.end = end == 0 ? op::ending::abandon : end == 1 ? op::ending::keep : op::ending::release;
    if (one.end == op::ending::keep && one.renews) {
        one.max_hold_ms = what.between(one.ttl_ms, 2 * one.ttl_ms); // it ends some day
    }
    return one;
}

} // namespace

std::span<const profile> profiles() {
    return table;
}

const profile* find_profile(std::string_view name) {
    const auto found = std::ranges::find(table, name, &profile::name);
    return found == table.end() ? nullptr : &*found;
}

plan make_plan(std::uint64_t seed, const profile& kind) {
    draft made(seed);
    made.profile = kind.name;
    made.faults_end = made.between(800, 2000) * ms;
    made.drift_margin_ms = made.between(2, 6);
    made.offset_bound_ms = kind.speaks == mixture::plain ? 0 : made.between(4, 20);
    made.master_timeout_ms = made.between(15, 60);
    made.connect_timeout_ms = made.between(60, 150);
    made.health_check_ms = made.between(150, 1000);
    made.air.delay_min = made.between(50, 500) * us;
    made.air.delay_max = made.air.delay_min + made.between(100, 3000) * us;
    made.air.late_max = made.percent(70) ? made.between(1, 3000) * ms : 0;

    constexpr std::array<std::size_t, 8> sizes{3, 3, 3, 3, 5, 5, 1, 4};
    const std::size_t masters = sizes[made.below(sizes.size())];
    for (std::size_t i = 0; i < masters; ++i) {
        master_plan one;
        // The masters' clocks agree where that is assumed; plain clients never read them.
        const std::int64_t reach =
            kind.speaks == mixture::plain ? 1'000'000'000 : made.offset_bound_ms * 1000 / 4;
        one.offset_us = made.between(-reach, reach);
        one.rate_ppb = made.between(-100'000, 100'000);
        one.fsyncs = made.percent(15);
        one.age = made.percent(95) ? 1000 * sec : made.between(0, 3 * sec);
        made.masters.push_back(one);
    }
    const std::uint64_t resources = made.percent(70) ? 1 : 2;
    const bool fences = kind.speaks == mixture::guarded && made.percent(80);
    const std::uint64_t clients = 2 + made.below(3);
    const std::int64_t max_ttl = made.between(100, 300);
    for (std::uint64_t i = 0; i < clients; ++i) {
        client_plan one;
        one.rate_ppb = made.between(-100'000, 100'000);
        one.speaks = kind.speaks == mixture::plain     ? speech::plain
                     : kind.speaks == mixture::guarded ? speech::guarded
                     : made.percent(50)                ? speech::plain
                                                       : speech::guarded;
        one.max_ttl_ms = max_ttl;
        const std::uint64_t workers = made.percent(80) ? 1 : 2;
        for (std::uint64_t j = 0; j < workers; ++j) {
            auto& ops = one.workers.emplace_back();
            for (std::uint64_t k = 2 + made.below(4); k > 0; --k) {
                ops.push_back(some_op(made, resources, max_ttl, fences));
            }
        }
        made.clients.push_back(std::move(one));
    }
    made.ordered = fences;
    made.draw_from(4);
    choose_waiting(made);
    made.draw_from(2);
    kind.add_faults(made);
    made.draw_from(6);
    choose_holders(made);
    if (kind.speaks != mixture::plain && !made.members) {
        made.draw_from(8);
        made.members = made.founded = made.percent(50);
    }
    made.draw_from(9);
    choose_transfers(made);
    made.draw_from(7);
    choose_servers(made);
    if (made.progress_bound == 0) {
        made.progress_bound = 10 * sec + 20 * max_ttl * ms + 2 * made.air.late_max;
    }
    return std::move(static_cast<plan&>(made));
}

} // namespace simulation
