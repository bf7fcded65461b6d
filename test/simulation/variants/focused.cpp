#include "focused.hpp"

#include "../faults.hpp"

#include <algorithm>
#include <array>

namespace simulation {

namespace {

/// What a focused plan has before its faults: healthy masters, clients that want one resource.
struct scene {
    speech speaks = speech::plain;
    std::size_t clients = 2;
    std::int64_t ttl_ms = 200;
};

scene begin(plan& what, const scene& wanted) {
    plan made;
    made.seed = what.seed;
    made.profile = what.profile;
    made.focused = true;
    made.masters.resize(3);
    client_plan client;
    client.speaks = wanted.speaks;
    client.max_ttl_ms = wanted.ttl_ms;
    client.workers.resize(1);
    made.clients.assign(wanted.clients, client);
    made.faults_end = sec;
    made.offset_bound_ms = wanted.speaks == speech::plain ? 0 : 4;
    made.air.delay_max = 500 * us;
    what = made;
    return wanted;
}

op simple(const scene& wanted) {
    op one;
    one.ttl_ms = one.extend_ttl_ms = wanted.ttl_ms;
    one.wait_ms = -1;
    one.renews = false;
    one.fences = wanted.speaks == speech::guarded;
    return one;
}

/// It wants the lock after that time, and holds it for that long, or to the end.
op holding(const scene& wanted, nanos think, nanos hold = 0) {
    op one = simple(wanted);
    one.think = think;
    one.hold = hold;
    return one;
}

op kept(const scene& wanted, nanos think) {
    op one = holding(wanted, think);
    one.end = op::ending::keep;
    return one;
}

std::vector<op>& ops_of(plan& what, std::size_t client) {
    return what.clients[client].workers.front();
}

/// Two masters, and the third, in any order.
struct three_masters {
    explicit three_masters(generator& random)
        : a(static_cast<int>(random.below(3))),
          b((a + 1 + static_cast<int>(random.below(2))) % 3),
          c(3 - a - b) {}
    int a;
    int b;
    int c;
};

// Leases that are longer than anybody waits: a key that remains is noticed. Masters stall about as
// long as clients wait for a reply; no connection breaks by itself, as a lease that long may
// rightly block the lock when a command arrives after its removal was confirmed.
void long_leases(draft& what) {
    const scene wanted = begin(what, {.clients = 2 + what.below(2), .ttl_ms = 60'000});
    what.health_check_ms = 2000;
    what.air.late_percent = 100;
    what.air.late_max = 300 * ms;
    for (std::size_t c = 0; c < wanted.clients; ++c) {
        for (int i = 0; i < 10; ++i) {
            op one = simple(wanted);
            one.wait_ms = what.percent(50) ? 0 : 100;
            one.think = what.between(0, 40 * ms);
            one.hold = what.between(0, 20 * ms);
            ops_of(what, c).push_back(one);
        }
    }
    for (std::int64_t i = what.between(4, 12); i > 0; --i) {
        fault one{.kind = stall};
        one.master = what.percent(60) ? -1 : static_cast<int>(what.below(3));
        one.at = what.between(50 * ms, 900 * ms);
        one.span = what.between(10, 60) * ms;
        what.faults.push_back(one);
    }
}

void cut_off(plan& what, int client, int master, nanos from, nanos until) {
    what.faults.push_back({refuse, from, until - from, client, master, 0});
    what.faults.push_back({break_lost, from, 0, client, master, 0});
}

// The clock of a master leaps while somebody raises its counter: the lock there ends early, and A2
// is broken. A token is given to one owner only all the same, because no memory is lost. `a` is one
// ahead of the others when the first client asks `a` and `b`; its raise of `b` is late, and the
// other client, which asks `b` and `c`, comes to the same number.
void leaps(draft& what) {
    const scene wanted = begin(what, {.speaks = speech::guarded, .clients = 3, .ttl_ms = 150});
    what.kept = false;
    what.unique = true;
    what.faults_end = 500 * ms;
    what.master_timeout_ms = 70;
    what.air.delay_min = what.air.delay_max = 500 * us;
    const auto [a, b, c] = three_masters(what);
    const nanos asked = 100 * ms;
    const nanos over = 400 * ms;

    // All counters are level after the first lock; what the second attempt says arrives at `a`
    // only.
    op levels = holding(wanted, 20 * ms, ms);
    op advances = simple(wanted);
    advances.think = 40 * ms;
    advances.wait_ms = 0;
    ops_of(what, 2) = {levels, advances};
    const nanos advanced = levels.think + 2 * what.air.delay_max + levels.hold + advances.think;
    cut_off(what, 2, b, advanced + 200 * us, over);
    cut_off(what, 2, c, advanced + 200 * us, over);

    ops_of(what, 0) = {holding(wanted, asked)};
    cut_off(what, 0, c, 40 * ms, over);
    // After the acquire, and before the raise.
    what.faults.push_back({partition, asked + 600 * us, what.between(20, 60) * ms, 0, b, 1});
    what.faults.push_back({step, asked + 2 * ms, 0, -1, b, (wanted.ttl_ms + 10) * 1000});

    op second = simple(wanted);
    second.think = asked + what.between(3, 10) * ms;
    second.hold = what.between(0, 30 * ms);
    ops_of(what, 1) = {second};
    cut_off(what, 1, a, 40 * ms, over);
    // It connects after the step: before, it would notice that, and not count `b`.
    what.faults.push_back({break_lost, asked + ms, 0, 1, b, 0});
}

// A holder that a master has to be healed for, while another client counts a vote of that master
// from before it forgot. `a` votes for the holder throughout, `b` is the one that forgets, and `c`
// votes for the holder first, and for the other client as soon as the holder's key is gone.
void heal(draft& what) {
    const scene wanted =
        begin(what, {.speaks = speech::guarded, .clients = 2, .ttl_ms = what.between(180, 260)});
    what.ordered = true;
    what.master_timeout_ms = 60;
    const auto [b, c, a] = three_masters(what);
    const nanos ttl = wanted.ttl_ms * ms;

    // The holder takes the lock without `b`, and extends it when it is nearly over, without `c`.
    const nanos taken = what.between(40, 60) * ms;
    const nanos extended = taken + ttl - what.between(10, 20) * ms;
    op holder = kept(wanted, taken);
    holder.extend_after = {extended - taken};
    ops_of(what, 0).push_back(holder);
    what.faults.push_back({partition, taken - 5 * ms, 80 * ms, 0, b, 3});
    // The holder hears soon that `c` is gone: there is no time to wait for its answer.
    what.faults.push_back({partition, extended - 3 * ms, ttl, 0, c, 1});
    what.faults.push_back({break_lost, extended + 2 * ms, 0, 0, c});

    // The other one asks before that, and hears of `c` when the holder's key there is gone.
    const nanos asked = extended - what.between(5, 15) * ms;
    const nanos gone = taken + ttl + what.between(2, 8) * ms;
    ops_of(what, 1) = {kept(wanted, asked)};
    what.faults.push_back({partition, asked - ms, gone - asked + ms, 1, c, 1});

    what.faults.push_back({flush, what.between(asked + ms, extended), 0, -1, b, 0});
}

void uncertified(draft& what) {
    const scene wanted = begin(what, {.speaks = speech::guarded, .clients = 2, .ttl_ms = 400});
    what.master_timeout_ms = 300;
    const auto [a, b, c] = three_masters(what);
    const auto lock = [&](std::int64_t ttl_ms, nanos asked) {
        op one = kept(wanted, asked);
        one.fences = false;
        one.ttl_ms = one.extend_ttl_ms = ttl_ms;
        return one;
    };

    // The first has the vote of `a`, which forgets it, and is slow to ask the others.
    const std::int64_t short_ms = what.between(100, 140);
    const nanos asked = what.between(40, 60) * ms;
    const nanos taken = asked + what.between(8, 15) * ms;
    const nanos gone = taken + short_ms * ms + what.between(2, 8) * ms;
    ops_of(what, 0).push_back(lock(400, asked));
    what.faults.push_back({partition, asked - ms, gone - asked + ms, 0, b, 1});
    what.faults.push_back({partition, asked - ms, 2 * sec, 0, c, 1});
    what.faults.push_back({flush, taken - what.between(1, 4) * ms, 0, -1, a, 0});

    // The next one sets a key there all the same, and has the lock by the others. It extends it
    // when it is nearly over, without `b`.
    const nanos extended = taken + short_ms * ms - what.between(10, 25) * ms;
    op next = lock(short_ms, taken);
    next.extend_after = {extended - taken};
    ops_of(what, 1).push_back(next);
    what.faults.push_back({partition, extended - 3 * ms, 2 * sec, 1, b, 1});
    what.faults.push_back({break_lost, extended + 2 * ms, 0, 1, b});
}

// It becomes a reader in place of that.
void uncertified_reader(draft& what) {
    uncertified(what);
    op& next = ops_of(what, 1).back();
    next.downgrade_after = next.extend_after.front();
    next.extend_after.clear();
}

// The acquire reaches `b` only after the lease, which was extended on `a` alone. By
// then another owner has had the lock from `b` and `c`, and a third client attaches with the token.
void strays(draft& what) {
    const scene wanted = begin(what, {.speaks = speech::guarded, .clients = 3, .ttl_ms = 300});
    const auto [a, b, c] = three_masters(what);
    const nanos asked = what.between(40, 60) * ms;
    const std::int64_t short_ms = what.between(90, 120);
    const nanos over = asked + short_ms * ms;
    op first = holding(wanted, asked);
    first.fences = false;
    first.ttl_ms = short_ms;
    first.names_token = what.percent(50);
    first.transferable = !first.names_token;
    first.extend_after = {what.between(10, 30) * ms};
    first.hold = what.between(40, 60) * ms;
    first.end = op::ending::abandon;
    ops_of(what, 0).push_back(first);
    what.faults.push_back({partition, asked - ms, 5 * ms, 0, b, 1});
    what.faults.push_back({break_late, asked + 3 * ms, 0, 0, b, 250 * ms});
    what.faults.push_back({refuse, asked + ms, 300 * ms, 0, b});
    what.faults.push_back({partition, asked + 8 * ms, 300 * ms, 0, c, 1});

    op other = simple(wanted);
    other.fences = false;
    other.think = over + what.between(2, 10) * ms;
    other.hold = what.between(1, 20) * ms;
    ops_of(what, 1).push_back(other);

    op later = holding(wanted, other.think + other.hold + what.between(5, 150) * ms, ms);
    later.fences = false;
    later.attaches = true;
    ops_of(what, 2).push_back(later);
}

// An owner has the lock from `a` and `b`, and acts until its deadline. Another client attaches to
// it. `a` loses its data after it was extended, and before it reports its fencing counter. A third
// client waits.
void interrupted_attaches(draft& what) {
    const scene wanted = begin(what, {.speaks = speech::guarded, .clients = 3, .ttl_ms = 300});
    const auto [a, b, c] = three_masters(what);
    const nanos asked = what.between(40, 60) * ms;
    op first = holding(wanted, asked, what.between(5, 20) * ms);
    first.end = op::ending::abandon;
    ops_of(what, 0).push_back(first);
    what.faults.push_back({partition, asked - ms, 300 * ms, 0, c, 1});

    const nanos attached = asked + what.between(30, 60) * ms;
    op second = holding(wanted, attached);
    second.attaches = true;
    ops_of(what, 1).push_back(second);
    what.faults.push_back({flush, attached + what.between(0, 4000) * us, 0, -1, a});

    ops_of(what, 2) = {holding(wanted, attached - what.between(0, 20) * ms)};
}

// `max_ttl` is lowered while an owner has a longer lease, from `a` and `b`. Then `a` loses its
// data, and another client asks for a short lease until it has one.
void lowered_limits(draft& what) {
    const scene wanted = begin(what, {.speaks = speech::guarded, .clients = 3, .ttl_ms = 400});
    what.members = what.founded = true;
    const auto [a, b, c] = three_masters(what);
    const nanos asked = what.between(20, 40) * ms;
    const std::int64_t short_ms = what.between(40, 60);
    ops_of(what, 0) = {kept(wanted, asked)};
    what.faults.push_back({partition, asked - ms, 400 * ms, 0, c, 1});

    what.clients[1].change = "=" + std::to_string(short_ms);
    what.faults.push_back({client_crash, 1, asked + 10 * ms, 1});
    what.faults.push_back({flush, asked + what.between(80, 150) * ms, 0, -1, a});

    for (client_plan& one : what.clients) {
        one.takes_recorded = true;
    }
    op other = holding(wanted, asked + what.between(60, 150) * ms);
    other.ttl_ms = other.extend_ttl_ms = short_ms;
    ops_of(what, 2).push_back(other);
}

// The counters of a new name start while the clocks are as far apart as they may be, for longer
// than a lease. `b` votes with `a`, whose clock is ahead, loses its data, and later votes with `c`,
// whose counter is missing.
void first_counters(draft& what) {
    const scene wanted = begin(what, {.speaks = speech::guarded, .clients = 2, .ttl_ms = 40});
    what.ordered = true;
    what.offset_bound_ms = 1'000;
    what.faults_end = 4 * sec;
    what.progress_bound = 10 * sec;
    const auto [a, b, c] = three_masters(what);
    for (const int one : {a, b, c}) {
        const std::int64_t offset_ms = what.between(450, 490);
        what.masters[static_cast<std::size_t>(one)].offset_us =
            (one == a ? 1000 : -1000) * offset_ms;
    }
    const nanos asked = what.between(20, 40) * ms;
    ops_of(what, 0) = {holding(wanted, asked, what.between(5, 15) * ms)};
    what.faults.push_back({partition, asked - ms, 4 * sec, 0, c, 1});
    what.faults.push_back({flush, asked + what.between(6, 40) * ms, 0, -1, b});
    what.faults.push_back({partition, asked + 100 * ms, 4 * sec, -1, a, 1});

    op other = holding(wanted, asked + what.between(100, 2'000) * ms);
    ops_of(what, 1).push_back(other);
}

// Two handoffs in a row. The reply of `c` to the raise of the first comes while that of the second
// is awaited, which only `a` receives. Another client, without `a`, is the next owner.
void late_raises(draft& what) {
    const scene wanted = begin(what, {.speaks = speech::guarded, .clients = 2, .ttl_ms = 120});
    what.ordered = true;
    const auto [a, b, c] = three_masters(what);
    const nanos taken = what.between(40, 60) * ms;
    const nanos once = taken + what.between(5 * ms, 15 * ms);
    const nanos twice = once + what.between(4 * ms, 15 * ms);
    const nanos over = taken + wanted.ttl_ms * ms;
    op first = holding(wanted, taken, once - taken);
    op second = holding(wanted, taken + 2 * ms, twice - once);
    second.renews = true; // else a lease is handed off only while it is new
    op third = kept(wanted, taken + 4 * ms);
    third.renews = true;
    what.clients[0].local_handoff_ms = 100'000;
    what.clients[0].workers = {{first}, {second}, {third}};
    op other = holding(wanted, over + what.between(0, 30 * ms));
    ops_of(what, 1) = {other, other};
    cut_off(what, 1, a, 20 * ms, 500 * ms);

    const nanos told = twice + what.between(2 * ms, 25 * ms);
    what.faults.push_back({partition, once, told - once, 0, c, 2});
    for (const int away : {b, c}) {
        if (what.percent(80)) {
            what.faults.push_back({partition, twice, over + 80 * ms - twice, 0, away, 1});
        }
    }
}

// A lease of a short ttl is handed off to a waiter that wants a longer one, and only then `c`
// reports its grant. Only `a` receives the extension: the others are free when the short ttl is
// over.
void late_grants(draft& what) {
    const scene wanted = begin(what, {.clients = 3, .ttl_ms = what.between(100, 200)});
    const auto [a, b, c] = three_masters(what);
    const nanos ttl = wanted.ttl_ms * ms;
    const nanos taken = what.between(40, 60) * ms;
    const nanos given = taken + what.between(5 * ms, 15 * ms);
    const nanos told = given + what.between(2 * ms, 15 * ms);
    const nanos extended = what.between(told + 3 * ms, taken + ttl - 10 * ms);
    op first = holding(wanted, taken, given - taken);
    op next = kept(wanted, taken + 2 * ms);
    next.ttl_ms = next.extend_ttl_ms = wanted.ttl_ms * what.between(110, 150) / 100;
    next.extend_after = {extended - given};
    next.renews = true; // else a lease is handed off only while it is new
    client_plan& holder = what.clients[0];
    holder.max_ttl_ms = next.ttl_ms;
    holder.local_handoff_ms = 100'000;
    holder.workers = {{first}, {next}};
    what.faults.push_back({partition, taken - ms, told - taken + ms, 0, c, 2});
    for (const int away : {b, c}) {
        if (what.percent(80)) {
            what.faults.push_back({partition, extended - 2 * ms, 2 * ttl, 0, away, 3});
        }
    }
    for (std::size_t other = 1; other < wanted.clients; ++other) {
        op one = simple(wanted);
        one.think = taken + ttl + what.between(-20 * ms, 40 * ms);
        one.hold = what.between(0, 50 * ms);
        ops_of(what, other) = {one, one};
    }
}

// All clients are paused while their masters begin to evict keys, and evict the lock of the first.
// The second one asks for that lock when it goes on: with its INFO, and before the reply to that.
void unnoticed_evictions(draft& what) {
    const scene wanted = begin(what, {.speaks = speech::guarded, .ttl_ms = 900});
    op first = kept(wanted, 30 * ms);
    first.fences = what.percent(50);
    ops_of(what, 0) = {first};
    op next = holding(wanted, 150 * ms);
    next.fences = what.percent(50);
    ops_of(what, 1) = {next};
    fault evicts{.kind = evict, .at = 80 * ms};
    evicts.amount = evictable_after(what) + what.between(0, 20 * ms);
    evicts.span = evicts.amount + 200 * ms;
    evicts.master = -1;
    what.faults.push_back(evicts);
    what.faults.push_back({pause, 70 * ms, 850 * ms, 0});
    what.faults.push_back({pause, 70 * ms, evicts.amount + 20 * ms, 1});
}

constexpr std::string_view all_hold = "A1 to A6";

constexpr std::array focused_table{
    profile{"long-leases", mixture::plain, all_hold, long_leases},
    profile{"late-grants", mixture::plain, all_hold, late_grants},
    profile{"leaps", mixture::guarded, "all but A2", leaps},
    profile{"late-raises", mixture::guarded, all_hold, late_raises},
    profile{"heal", mixture::guarded, all_hold, heal},
    profile{"uncertified", mixture::guarded, all_hold, uncertified},
    profile{"uncertified-reader", mixture::guarded, all_hold, uncertified_reader},
    profile{"strays", mixture::guarded, all_hold, strays},
    profile{"interrupted-attaches", mixture::guarded, all_hold, interrupted_attaches},
    profile{"lowered-limits", mixture::guarded, all_hold, lowered_limits},
    profile{"first-counters", mixture::guarded, all_hold, first_counters},
    profile{"unnoticed-evictions", mixture::guarded, all_hold, unnoticed_evictions},
};

} // namespace

std::span<const profile> focused_profiles() {
    return focused_table;
}

const profile* find_any_profile(std::string_view name) {
    const auto found = std::ranges::find(focused_table, name, &profile::name);
    return found == focused_table.end() ? find_profile(name) : &*found;
}

} // namespace simulation
