// Very many locks: what one turn does for them, and how many removals one master is sent at once.
#include "virtual_quorum.hpp"

namespace pacing_test { namespace {

using namespace unit;

constexpr std::size_t many = 500; // locks
constexpr std::size_t turn_max = 8;
constexpr std::size_t removals_max = 32;

redlock::core::settings paced() {
    redlock::core::settings rules = settings_for(3);
    rules.turn_max = turn_max;
    rules.removals_max = removals_max;
    return rules;
}

// All held, of a quorum of three.
struct crowd {
    explicit crowd(acquire_options wanted) {
        it.start();
        wanted.ttl = 20s;
        std::vector<std::uint64_t> wishes;
        for (std::size_t i = 0; i < many; ++i) {
            wishes.push_back(it.acquire(wanted, "r" + std::to_string(i)));
        }
        it.run_for(50ms);
        for (const std::uint64_t wish : wishes) {
            locks.push_back(it.answered(wish));
        }
        REQUIRE(std::ranges::all_of(locks, &answer::won));
    }

    void release_all() {
        for (const answer& one : locks) {
            it.release(one);
        }
    }

    /// That master is away, and its removals are owed.
    void release_without(std::size_t master) {
        it.cut_off(master);
        release_all();
        it.run_for(500ms);
    }

    std::size_t keys(std::size_t master) {
        return static_cast<std::size_t>(
            std::ranges::count_if(it.masters[master].data.entries(), [&](auto& one) {
                return it.masters[master].expires(one.key) > it.now();
            }));
    }

    // From here on the only commands are removals.
    void begin() {
        for (std::size_t i = 0; i < before.size(); ++i) {
            before[i] = it.engine.count().masters[i].commands - answered(i);
        }
    }
    std::uint64_t answered(std::size_t master) {
        return it.engine.count().masters[master].release_votes.total();
    }
    std::size_t removals_in_flight(std::size_t master) {
        return it.engine.count().masters[master].commands - answered(master) - before[master];
    }

    // Runs for that long, and gives the largest value of `f` at the end of any step.
    template <typename F>
    std::size_t largest(nanoseconds span, F f) {
        std::size_t found = 0;
        const redlock::time_point until = it.now() + span;
        it.run_while_not(
            [&] {
                found = std::max<std::size_t>(found, f());
                return it.now() >= until;
            },
            span);
        return found;
    }

    std::array<std::uint64_t, 3> before{};
    virtual_quorum it{paced()};
    std::vector<answer> locks;
};

// A tenth of a millisecond for each command, one after the other.
void slow_down(virtual_quorum& it, std::size_t master) {
    it.masters[master].when = [&it, master, busy = it.now()](const arguments&) mutable {
        busy = std::max(busy, it.now()) + 100us;
        it.paths[master].back = busy - it.now();
        return mishap::none;
    };
}

TEST_CASE("locks that are due for renewal together are renewed in turns") {
    crowd all(renewed());
    std::size_t begun = 0;
    const std::size_t in_a_turn = all.largest(7s, [&] {
        const std::size_t before = std::exchange(begun, all.it.renewals);
        return begun - before;
    });
    CHECK(in_a_turn == turn_max); // without a bound some ten or twenty
    CHECK(all.it.engine.count().renewed == many);
    all.it.run_for(60s);
    for (const answer& one : all.locks) {
        CHECK(!all.it.lost_at(one));
    }
}

TEST_CASE("what a turn leaves is due at once, and losses come at their moment, however many") {
    crowd all(once());
    for (virtual_quorum::path& way : all.it.paths) {
        way.takes_bytes = false;
    }
    all.it.run_for(20s);
    for (const answer& one : all.locks) {
        CHECK(all.it.lost_at(one) == one.held_until);
    }
    // One call by hand, far too late.
    crowd late(renewed());
    while (late.it.renewals == 0) { // first it looks at timers that were moved or cancelled
        late.it.engine.time_passed(late.it.now() + 10s);
        REQUIRE(late.it.engine.next_due() <= late.it.now() + 10s);
    }
    CHECK(late.it.renewals <= turn_max);
}

TEST_CASE("a master that is back is paid its debts at a pace, and keeps its vote") {
    crowd all(once());
    all.release_without(0);
    CHECK(all.it.engine.count().pending_removals == many);
    slow_down(all.it, 0); // all at once would take it 50 ms
    all.it.paths[0].reachable = true;
    REQUIRE(all.it.run_while_not([&] { return all.it.engine.count().masters[0].connects == 2; }));
    all.begin();
    REQUIRE(all.it.run_while_not([&] { return all.removals_in_flight(0) > 0; }));
    // It votes during that time, after no more than the removals that are in flight.
    const answer other = all.it.acquire_now(once(), "another");
    CHECK(other.won);
    CHECK(all.it.engine.count().pending_removals > many / 2);
    all.it.run_while_not(
        [&] { return all.it.masters[0].value_of("p:{another}", all.it.now()).has_value(); });
    CHECK(all.it.engine.count().pending_removals > many / 2);
    CHECK(all.largest(1s, [&] { return all.removals_in_flight(0); }) <= removals_max + 1);
    CHECK(all.it.engine.count().pending_removals == 0);
    CHECK(all.it.engine.count().removals_repeated == many);
    CHECK(all.keys(0) == 1); // the other one
    CHECK(all.it.logged("silent") == 0);
}

TEST_CASE("debts that one turn sends are counted") {
    crowd all(once());
    all.release_without(0);
    all.it.paths[0].reachable = true;
    std::uint64_t sent = 0;
    const std::size_t in_a_turn = all.largest(5s, [&] {
        const std::uint64_t before = std::exchange(sent, all.it.engine.count().masters[0].commands);
        return before == 0 ? 0 : sent - before;
    });
    CHECK(in_a_turn == turn_max);
    CHECK(all.it.engine.count().removals_repeated == many);
}

TEST_CASE("releases beyond what a master is sent at once wait for room, and all are released") {
    crowd all(once());
    all.begin();
    all.release_all();
    all.it.run_for(1ns);
    CHECK(all.removals_in_flight(1) == removals_max);
    CHECK(all.largest(1s, [&] { return all.removals_in_flight(1); }) == removals_max);
    for (const answer& one : all.locks) {
        CHECK(all.it.removed_as(one) == release_result::released);
    }
    CHECK(all.keys(0) + all.keys(1) + all.keys(2) == 0);
    CHECK(all.it.engine.count().removals_repeated == 0);
    CHECK(all.it.idle());
}

}} // namespace pacing_test
