// Several resources under one lock, on real masters. Each client here is a manager of its own,
// which is what a process is to the masters.
#include "two_managers.hpp"

#include <redlock/lock_manager.hpp>

#include <atomic>

namespace redlock::test { namespace {

using names = std::vector<std::string>;

acquisition_ptr begin_all(client& one, names resources, acquire_options options = once()) {
    return begun([&](auto handler) {
        one.manager().async_acquire(std::move(resources), options, std::move(handler));
    });
}

acquisition_ptr acquire_all(client& one, names resources, acquire_options options = once()) {
    return one.finish(begin_all(one, std::move(resources), options));
}

lock take_all(client& one, names resources, acquire_options options = once()) {
    return granted(acquire_all(one, std::move(resources), options));
}

std::string value_on(const master_process& master, const std::string& key) {
    return master.command({"GET", key});
}

TEST_CASE("multi-lock: all resources have one token and one counter, and go together") {
    two_processes site;
    lock both = take_all(site.me, {"b", "a", "b"}, with_token());
    CHECK(both.resource() == "a, b");
    CHECK(both.held());
    CHECK(site.eventually([&] { return site.masters.total_keys("redlock:{?}") == 6; }));
    for (const master_process& master : site.masters) {
        CHECK(value_on(master, lock_key("a")) == both.secret());
        CHECK(value_on(master, lock_key("b")) == both.secret());
    }
    CHECK(site.other.acquire("a")->error == errc::contended);
    CHECK(site.other.acquire("b")->error == errc::contended);
    CHECK(acquire_all(site.other, {"b", "c"})->error == errc::contended);
    CHECK(site.removed("c"));
    CHECK(site.me.extend(both, 20s) == error_code());
    CHECK(site.masters[0].command({"PTTL", lock_key("a")}).size() == 5); // of 10 s to 20 s
    CHECK(site.me.release(both) == release_result::released);
    CHECK(site.eventually([&] { return site.masters.total_keys("redlock:{?}") == 0; }));
    CHECK(site.other.take("a").held());
}

TEST_CASE("multi-lock: one resource that is taken is enough, and its lease is reported") {
    two_processes site;
    lock taken = site.other.take("b", once(30s));
    const acquisition_ptr refused = acquire_all(site.me, {"a", "b", "c"});
    CHECK(*refused == errc::contended);
    for (const master_vote& one : refused->why.votes) {
        if (one.vote == vote::held) {
            REQUIRE(one.time_left.has_value());
            CHECK(*one.time_left > 10s);
        }
    }
    CHECK(site.eventually([&] { return site.masters.total_keys("redlock:{[ac]}") == 0; }));
    CHECK(site.other.release(taken) == release_result::released);
    lock all = take_all(site.me, {"a", "b", "c"});
    CHECK(all.held());
}

TEST_CASE("multi-lock: as many resources as are allowed, and not one more") {
    quorum_fixture site(1, guarded);
    names many;
    for (std::size_t i = 0; i <= resources_max; ++i) {
        many.push_back(std::to_string(i));
    }
    const acquisition_ptr refused = acquire_all(site.me, many);
    CHECK(*refused == errc::invalid_argument);
    CHECK(contains(refused->why.message, "allowed: 1 to 128"));
    CHECK(site.me.count().attempts == 0);
    many.pop_back();
    lock full = take_all(site.me, many);
    CHECK(site.masters.total_keys("redlock:{*}") == resources_max);
    CHECK(site.me.release(full) == release_result::released);
    CHECK(site.masters.total_keys("redlock:{*}") == 0);

    quorum_fixture plain(1, [](config& c) { c.protocol = protocol::plain; });
    CHECK(*acquire_all(plain.me, {"a", "b"}) == errc::invalid_argument);
    CHECK(take_all(plain.me, {"a", "a"}).resource() == "a"); // that is one
}

TEST_CASE("multi-lock: for each resource the fencing token grows") {
    two_processes site;
    const auto single = [&](const std::string& resource) {
        lock one = site.other.take(resource, with_token());
        const std::uint64_t token = token_of(one);
        CHECK(site.other.release(one) == release_result::released);
        return token;
    };
    const auto multi = [&] {
        lock both = take_all(site.me, {"a", "b"}, with_token());
        const std::uint64_t token = token_of(both);
        CHECK(site.me.release(both) == release_result::released);
        return token;
    };
    const std::uint64_t first = single("a");
    std::uint64_t latest = 0;
    for (int i = 0; i < 5; ++i) {
        latest = single("b");
    }
    CHECK(latest > first); // its counter began later, from the clock
    const std::uint64_t both = multi();
    CHECK(both > latest);
    CHECK(single("a") > both);
    latest = single("b");
    CHECK(latest > both);
    // A counter that has expired says nothing of the tokens that came of it: the other resource's,
    // which is older, must not stand for it.
    for (int i = 0; i < 3; ++i) {
        site.everywhere({"SET", fence_key_of("a"), std::to_string(first)});
        site.everywhere({"DEL", fence_key_of("b")});
        const std::uint64_t next = multi();
        CHECK(next > latest);
        latest = single("b");
        CHECK(latest > next);
    }
}

TEST_CASE("multi-lock: counters that differ are levelled, of all resources") {
    quorum_fixture site(3, guarded);
    lock before = take_all(site.me, {"a", "b"}, with_token());
    CHECK(site.me.release(before) == release_result::released);
    CHECK(site.eventually([&] { return site.masters.total_keys("redlock:{?}") == 0; }));
    for (std::size_t i = 0; i < 3; ++i) {
        site.masters[i].command({"INCRBY", fence_key_of("b"), std::to_string((i + 1) * 1'000)});
    }
    const std::uint64_t raised = site.me.count().raised;
    lock mine = take_all(site.me, {"a", "b"}, with_token());
    CHECK(site.me.count().raised == raised + 1);
    std::size_t level = 0;
    for (const master_process& master : site.masters) {
        level +=
            counter_on(master, "a") == token_of(mine) && counter_on(master, "b") == token_of(mine)
                ? 1U
                : 0U;
    }
    CHECK(level >= 2);
}

TEST_CASE("multi-lock: one resource that was lost on a majority loses the lock, and only its own "
          "is freed") {
    two_processes site;
    lock mine = take_all(site.me, {"a", "b"});
    CHECK(site.eventually([&] { return site.masters.total_keys("redlock:{?}") == 6; }));
    const auto lost = site.me.watch(mine);
    for (std::size_t i = 0; i < 2; ++i) {
        site.masters[i].command({"SET", lock_key("b"), "somebody", "PX", "60000"});
    }
    CHECK(site.me.extend(mine, 10s) == errc::lost);
    run_until(site.io, [&] { return lost->signalled; });
    CHECK(lost->reason == loss_reason::owned_by_other);
    CHECK(!mine.held());
    CHECK(site.eventually([&] {
        return site.masters.total_keys(lock_key("a")) == 0
               && site.masters.total_keys(lock_key("b")) == 2;
    }));
    CHECK(value_on(site.masters[0], lock_key("b")) == "somebody");
}

TEST_CASE("multi-lock: a late release frees nothing of the next owner") {
    quorum_fixture site(3, guarded);
    asio::io_context stopped; // between its calls this process does not run, as if it were paused
    client paused(stopped, site.changed(guarded), 3);
    lock late = take_all(paused, {"a", "b"}, once_unrenewed(300ms));
    lock next = site.me.take("b", waiting(30s));
    CHECK(!late.held());
    CHECK(paused.release(late) != release_result::released);
    CHECK(paused.release(late) != release_result::released); // nor when it is said again
    CHECK(next.held());
    CHECK(site.me.extend(next, 10s) == error_code());
    CHECK(site.me.release(next) == release_result::released);
    CHECK(site.eventually([&] { return site.masters.total_keys("redlock:{?}") == 0; }));
}

TEST_CASE("multi-lock: a master that forgot is healed as a whole") {
    quorum_fixture site(3, guarded);
    lock mine = site.with_all_votes([&] { return take_all(site.me, {"a", "b"}, with_token()); });
    site.masters[2].command({"DEL", lock_key("b")});
    CHECK(site.me.extend(mine, 10s) == error_code());
    CHECK(site.eventually([&] { return site.masters.total_keys("redlock:{?}") == 6; }));
    CHECK(value_on(site.masters[2], lock_key("b")) == mine.secret());
    CHECK(site.me.release(mine) == release_result::released);
}

TEST_CASE(
    "multi-lock: a holder and a waiter that are killed keep nobody out for longer than a lease") {
    two_processes site;
    lock gone = take_all(site.me, {"a", "b"}, once_unrenewed(500ms));
    const acquisition_ptr waiter = begin_all(site.me, {"b", "c"}, waiting(60s, 500ms));
    const acquisition_ptr next = begin_all(site.other, {"c", "b", "a"}, waiting(60s));
    gone.abandon(); // what a killed process leaves
    site.me.cancel(waiter);
    CHECK(waiter->error == asio::error::operation_aborted);
    CHECK(site.other.gets(next));
}

TEST_CASE("multi-lock: the release of any of its resources wakes a waiter for all") {
    two_processes site(3, woken_or_never);
    lock a = site.other.take("a", once(30s));
    lock b = site.other.take("b", once(30s));
    const acquisition_ptr waiter = begin_all(site.me, {"a", "b"}, waiting(1h));
    run_until(site.io, [&] { return site.me.count().notification_connections == 3; });
    CHECK(site.other.release(b) == release_result::released);
    site.pass(100ms);
    CHECK(!waiter->done);
    CHECK(site.other.release(a) == release_result::released);
    REQUIRE(site.me.gets(waiter));
    // And the other way round: a waiter for one of them is notified of the release of all.
    const acquisition_ptr single = site.other.begin("b", waiting(1h));
    run_until(site.io, [&] { return site.other.count().notification_connections == 3; });
    site.pass(100ms);
    CHECK(site.me.release(waiter->lock) == release_result::released);
    CHECK(site.other.gets(single));
    CHECK(site.other.release(single->lock) == release_result::released);
    CHECK(site.settled());
    CHECK(site.me.count().subscriptions == 0);
}

TEST_CASE("multi-lock: two that listen to one resource do not deafen each other") {
    two_processes site(3, woken_or_never);
    lock a = site.other.take("a", once(30s));
    const acquisition_ptr both = begin_all(site.me, {"a", "b"}, waiting(1h));
    const acquisition_ptr one = site.me.begin("a", waiting(1h));
    run_until(site.io, [&] { return site.me.count().subscriptions == 2; });
    site.pass(100ms);
    site.me.cancel(both);
    CHECK(site.me.count().subscriptions == 1);
    CHECK(site.other.release(a) == release_result::released);
    CHECK(site.me.gets(one));
}

TEST_CASE("multi-lock: the same resources pass from one waiter of a process to the next") {
    quorum_fixture site(3, [](config& settings) {
        guarded(settings);
        settings.local_handoff_time = 1h;
    });
    const acquire_options wants = with_token(waiting(60s));
    lock mine = take_all(site.me, {"a", "b"}, wants);
    std::uint64_t latest = token_of(mine);
    std::vector<acquisition_ptr> line;
    for (int i = 0; i < 10; ++i) {
        line.push_back(begin_all(site.me, i % 2 == 0 ? names{"a", "b"} : names{"b", "a"}, wants));
    }
    CHECK(site.me.release(mine) == release_result::released);
    for (const acquisition_ptr& one : line) {
        site.me.finish(one);
        REQUIRE(*one);
        CHECK(token_of(one->lock) > latest);
        latest = token_of(one->lock);
        CHECK(site.me.release(one->lock) == release_result::released);
    }
    CHECK(site.me.count().local_handoffs >= 9);
    CHECK(site.eventually([&] { return site.masters.total_keys("redlock:{?}") == 0; }));
}

TEST_CASE("multi-lock: owners in opposite orders never stop each other for good") {
    quorum_of_masters masters(3);
    config settings = config_for(masters.urls());
    settings.protocol = protocol::guarded;
    constexpr int rounds = 15;
    constexpr std::size_t threads = 4; // of each owner
    managers_on_threads managers(settings);
    std::array<std::atomic<int>, 3> inside{}; // of each resource
    std::atomic<int> overlaps = 0;
    std::atomic<int> failures = 0;
    const auto work = [&](lock_manager& owner, std::size_t first, std::size_t second) {
        for (int i = 0; i < rounds; ++i) {
            try {
                const names wanted{std::to_string(first), std::to_string(second)};
                lock held = owner.async_acquire(wanted, waiting(120s), asio::use_future).get();
                overlaps += inside[first]++ + inside[second]++;
                std::this_thread::yield();
                --inside[first];
                --inside[second];
                held.async_release(asio::use_future).get();
            } catch (const boost::system::system_error&) {
                ++failures;
            }
        }
    };
    std::vector<std::thread> owners;
    for (std::size_t i = 0; i < threads; ++i) {
        owners.emplace_back([&, i] { work(managers.one, i % 3, (i + 1) % 3); });
        owners.emplace_back([&, i] { work(managers.two, (i + 1) % 3, i % 3); });
    }
    for (std::thread& owner : owners) {
        owner.join();
    }
    CHECK(failures == 0);
    CHECK(overlaps == 0);
    managers.close();
    CHECK(masters.total_keys("redlock:{?}") == 0);
}

TEST_CASE("multi-lock: where keys are hashed, the refusal says which hash apart") {
    master_options cluster;
    cluster.extra = {"--cluster-enabled", "yes"};
    quorum_of_masters masters(1, cluster);
    masters[0].command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"});
    config settings = config_for(masters.urls());
    settings.protocol = protocol::guarded;
    asio::io_context io;
    client apart(io, settings, 1);
    const acquisition_ptr refused = acquire_all(apart, {"a", "b"});
    CHECK(*refused == errc::no_quorum);
    CHECK(contains(refused->why.votes.at(0).text, "{a} and redlock:{b} hash apart"));
    settings.key_prefix = "{locks}";
    client together(io, settings, 1);
    CHECK(take_all(together, {"a", "b"}).held());
}

}} // namespace redlock::test
