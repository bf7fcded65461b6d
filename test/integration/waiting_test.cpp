// Wait queues on real masters: which waiter is next, what it costs the masters, what is handed off.
#include "guarded_quorum.hpp"

namespace redlock::test { namespace {

// Nothing is sent but what the locks need.
void handing_off(config& settings) {
    settings.health_check_interval = 1h;
    settings.local_handoff_time = 1h;
}

void handing_off_guarded(config& settings) {
    guarded(settings);
    handing_off(settings);
}

// Scripts are one command; what they call is not counted here.
std::uint64_t commands_of(const master_process& master) {
    return calls_of(master, "set") + calls_of(master, "eval") + calls_of(master, "evalsha");
}

TEST_CASE("a handle that was released cannot end the lease of the next owner") {
    quorum_fixture site(3, handing_off);
    lock mine = site.take_everywhere("r");
    const acquisition_ptr next = site.me.begin("r", waiting(60s));
    CHECK(site.me.release(mine) == release_result::released);
    REQUIRE(site.me.gets(next));
    CHECK(!mine.held());
    mine = lock(); // nor does its destruction
    client other(site.io, site.changed(handing_off), 3);
    CHECK(other.acquire("r")->error == errc::contended);
    CHECK(next->lock.held());
}

TEST_CASE("64 waiters in 4 processes send the masters nothing while the lock is held") {
    quorum_fixture site(3, handing_off_guarded);
    lock mine = site.take_everywhere("r", once(30s));
    std::vector<std::unique_ptr<client>> others;
    std::vector<acquisition_ptr> waiters;
    for (int i = 0; i < 4; ++i) {
        others.push_back(std::make_unique<client>(site.io, site.changed(handing_off_guarded)));
        others.back()->until_admitted(3);
        for (int j = 0; j < 16; ++j) {
            waiters.push_back(others.back()->begin("r", waiting(60s)));
        }
    }
    const auto listens = [](const auto& one) { return one->count().notification_connections == 3; };
    REQUIRE(site.eventually([&] { return std::all_of(others.begin(), others.end(), listens); }));
    // The last hint of a subscription may have brought one more attempt.
    const auto attempts = [&] {
        std::uint64_t sum = 0;
        for (const auto& one : others) {
            sum += one->count().attempts;
        }
        return sum;
    };
    std::uint64_t before = 0;
    REQUIRE(site.eventually([&] { return std::exchange(before, attempts()) == attempts(); }));
    site.pass(500ms);
    CHECK(attempts() == before);
    // The heads only: at first, when they subscribed, and at retries of a slow machine.
    CHECK(before < waiters.size() / 2);

    std::size_t served = 0;
    CHECK(site.me.release(mine) == release_result::released);
    while (served < waiters.size()) {
        const auto holds = [](const acquisition_ptr& one) { return one->lock.held(); };
        run_until(site.io, [&] { return std::any_of(waiters.begin(), waiters.end(), holds); });
        REQUIRE(std::count_if(waiters.begin(), waiters.end(), holds) == 1);
        const std::size_t who = static_cast<std::size_t>(
            std::find_if(waiters.begin(), waiters.end(), holds) - waiters.begin());
        CHECK(others[who / 16]->release(waiters[who]->lock) == release_result::released);
        ++served;
    }
    CHECK(site.removed("r"));
    for (const auto& one : others) {
        CHECK(one->count().waiting == 0);
        CHECK(one->count().subscriptions == 0);
    }
}

TEST_CASE("10,000 locks are held and renewed together, in few calls") {
    quorum_fixture site(3, [](config& settings) {
        handing_off_guarded(settings);
        settings.master_timeout = 5s;
        settings.max_ttl = 20s;
    });
    constexpr std::size_t many = 10'000;
    acquire_options renewed = waiting(60s, 20s);
    std::vector<lock> held;
    std::vector<acquisition_ptr> begun;
    for (std::size_t i = 0; i < many; ++i) {
        begun.push_back(site.me.begin("r" + std::to_string(i), renewed));
        if (begun.size() == 500) {
            for (const acquisition_ptr& one : begun) {
                REQUIRE(site.me.gets(one));
                held.push_back(std::move(one->lock));
            }
            begun.clear();
        }
    }
    // Of renewals alone: some locks had been renewed before the last one was acquired.
    const std::uint64_t first = site.me.count().renewed;
    const std::uint64_t commands = commands_of(site.masters[0]);
    run_until(
        site.io, [&] { return site.me.count().renewed >= first + many; }, 60s);
    CHECK((commands_of(site.masters[0]) - commands) * 2 < many); // locks of one turn share a call
    CHECK(site.me.count().lost.total() == 0);
    CHECK(site.me.count().renewals_failed == 0);
    for (const lock& one : held) {
        REQUIRE(one.held());
    }
}

}} // namespace redlock::test
