// A pool of slots on real masters: never more holders than slots, no key left, and few commands.
#include "slot_pool_site.hpp"

#include <boost/asio/steady_timer.hpp>

namespace redlock::test { namespace {

// Fills the slots from outside, but for each `free_each`th.
void fill(const quorum_of_masters& masters, std::size_t size, std::size_t free_each) {
    for (std::size_t i = 0; i < masters.size(); ++i) {
        masters[i].command(
            {"EVAL",
             "for i = 0, ARGV[1] - 1 do if i % ARGV[2] ~= 0 then "
             "redis.call('SET', KEYS[1] .. i, 'somebody', 'PX', 3600000) end end",
             "1",
             "redlock:{crew}:slot:",
             std::to_string(size),
             std::to_string(free_each)});
    }
}

TEST_CASE("each of the slots is taken once, in both protocols") {
    for (const auto& change : {pool_site::patient, pool_site::patient_and_plain}) {
        pool_site site(change);
        named_pool pool{site.me.manager(), "crew", 5};
        std::vector<lock> held;
        std::set<std::size_t> numbers;
        for (int i = 0; i < 5; ++i) {
            held.push_back(site.take(pool));
            CHECK(held.back().held());
            CHECK(held.back().slot() < 5);
            CHECK(held.back().resource() == "crew:slot:" + std::to_string(held.back().slot()));
            numbers.insert(held.back().slot());
        }
        CHECK(numbers.size() == 5);
        const acquisition_ptr none = site.acquire(pool);
        CHECK(none->error == errc::contended);
        CHECK(!none->lock.valid());
        CHECK(count_votes(none->why, vote::held) >= 2);
        const std::size_t number = held[2].slot();
        CHECK(site.release(held[2]) == release_result::released);
        CHECK(!held[2].held());
        lock again = site.take(pool);
        CHECK(again.slot() == number);
        again = lock(); // releases it
        held.clear();
        CHECK(site.no_slot_left());
        CHECK(site.settled());
    }
}

TEST_CASE("a slot and a query of a pool that cannot be are refused with a sentence") {
    asio::io_context io;
    config nobody;
    nobody.masters = {std::string("redis://127.0.0.1:1")};
    lock_manager manager(io.get_executor(), nobody);
    const auto refusal = [&](std::string name, std::size_t size) {
        const acquisition_ptr taken = begin(named_pool{manager, name, size});
        error_code asked;
        manager.async_query(redlock::slots(name, size), [&](error_code error, const lock_status&) {
            asked = error;
        });
        io.restart();
        io.run();
        CHECK(taken->error == asked);
        return asked == errc::invalid_argument ? taken->why.message : asked.message();
    };
    CHECK(refusal("crew", 0) == "size is 0; allowed: 1 to 65536");
    CHECK(refusal("crew", 65'537) == "size is 65537; allowed: 1 to 65536");
    CHECK(refusal("", 3) == "resource has 0 bytes; allowed: 1 to 1024");
    CHECK(refusal("crew", 65'536) == make_error_code(errc::not_running).message());
}

// A counter on each master would let all three in: A and B, B and C, A and C count two each.
TEST_CASE("three clients on the majorities AB, BC and AC never hold more slots than there are") {
    quorum_of_masters masters(3);
    const free_port nobody;
    asio::io_context io;
    config all = config_for(masters.urls());
    guarded(all);
    for (std::size_t i = 0; i < 3; ++i) {
        all.masters[i].name = "m" + std::to_string(i); // one list, although the addresses differ
    }
    client founder(io, all, 3);
    std::vector<std::unique_ptr<client>> clients;
    std::vector<named_pool> pools;
    constexpr std::size_t size = 2;
    for (std::size_t i = 0; i < 3; ++i) {
        config settings = all;
        settings.masters[i].port = nobody.number();
        clients.push_back(std::make_unique<client>(io, settings));
        clients.back()->until_admitted(2);
        pools.push_back({clients.back()->manager(), "crew", size});
    }
    std::vector<lock> held;
    for (named_pool& pool : pools) {
        for (std::size_t i = 0; i < size; ++i) {
            const acquisition_ptr one = begin(pool, waiting(300ms));
            run_until(io, [&] { return one->done; });
            if (!one->error) {
                held.push_back(std::move(one->lock));
            }
        }
    }
    REQUIRE(held.size() == size);
    CHECK(held[0].slot() != held[1].slot());
    held.clear();

    // All of them together, again and again. One thread: between two looks nothing changes.
    std::size_t inside = 0;
    std::size_t most = 0;
    std::size_t rounds = 0;
    std::size_t workers = 0;
    std::set<std::size_t> numbers;
    std::function<void(named_pool&)> work = [&](named_pool& pool) {
        pool.manager.async_acquire(
            redlock::slots(pool.name, pool.size), waiting(60s), [&](error_code error, lock mine) {
                REQUIRE(!error);
                if (rounds >= 300) {
                    --workers;
                    return;
                }
                most = std::max(most, ++inside);
                CHECK(inside <= size);
                CHECK(numbers.insert(mine.slot()).second);
                const auto kept = std::make_shared<lock>(std::move(mine));
                const auto timer = std::make_shared<asio::steady_timer>(io, 2ms);
                timer->async_wait([&, kept, timer](error_code) {
                    --inside;
                    numbers.erase(kept->slot());
                    kept->async_release([&, kept](error_code, release_result) {
                        ++rounds;
                        work(pool);
                    });
                });
            });
    };
    for (named_pool& pool : pools) {
        for (int i = 0; i < 3; ++i) {
            ++workers;
            work(pool);
        }
    }
    run_until(
        io, [&] { return workers == 0; }, 60s);
    CHECK(most == size);
    run_until(io, [&] { return masters.total_keys("*slot*") == 0; });
}

TEST_CASE("a slot of a thousand of which ten are free is found in two round trips") {
    for (const bool plain : {false, true}) {
        pool_site site(plain ? pool_site::patient_and_plain : pool_site::patient);
        fill(site.masters, 1000, 100);
        named_pool pool{site.me.manager(), "crew", 1000};
        std::vector<lock> held;
        for (int i = 0; i < 10; ++i) {
            const std::uint64_t before = pool_site::questions(site.masters[0]);
            const acquisition_ptr one = site.acquire(pool);
            REQUIRE(*one);
            CHECK(one->lock.slot() % 100 == 0);
            CHECK(one->why.attempts == 1);
            // The scan is two commands that leave together; then the vote, which may be late.
            CHECK(pool_site::questions(site.masters[0]) - before <= 2 + 1 + 1);
            held.push_back(std::move(one->lock));
        }
        const std::uint64_t before = pool_site::questions(site.masters[0]);
        CHECK(site.acquire(pool)->error == errc::contended);
        CHECK(pool_site::questions(site.masters[0]) - before <= 2 + 1);
        const lock_status found = site.status(pool);
        CHECK(found.state == lock_state::held);
        CHECK(found.count(lock_state::held) == 1000);
        CHECK(found.slots[held[0].slot()].owner_digest != found.slots[1].owner_digest);
    }
}

TEST_CASE("the largest pool works as the smallest") {
    pool_site site([](config& settings) {
        guarded(settings);
        settings.master_timeout = 10s; // a status of this size takes a sanitizer that long
    });
    named_pool large{site.me.manager(), "large", slot_pool_size_max};
    lock one = site.take(large, waiting(60s)); // a look at all slots takes a slow machine seconds
    CHECK(one.held());
    const lock_status found = site.status(large);
    CHECK(found.slots.size() == slot_pool_size_max);
    CHECK(found.count(lock_state::held) == 1);
    CHECK(found.slots[one.slot()].state == lock_state::held);
}

TEST_CASE("a late release does nothing to the present owner of the slot") {
    pool_site site;
    named_pool pool{site.me.manager(), "crew", 1};
    lock late = site.take(pool, once_unrenewed(10s));
    site.everywhere({"DEL", "redlock:{crew}:slot:0"}); // its process slept, and the lease has ended
    lock next = site.take(pool);
    CHECK(next.slot() == late.slot());
    CHECK(site.release(late) == release_result::stolen);
    CHECK(site.release(late) == release_result::stolen); // nor does one that is repeated
    late = lock();
    CHECK(next.held());
    CHECK(site.acquire(pool)->error == errc::contended);
    CHECK(site.eventually([&] { return site.masters.total_keys("redlock:{crew}:slot:0") == 3; }));
}

TEST_CASE("a pool of one slot is a lock, with fencing tokens that increase") {
    pool_site site;
    client other(site.io, site.changed(guarded), 3);
    named_pool mine{site.me.manager(), "crew", 1};
    named_pool theirs{other.manager(), "crew", 1};
    std::uint64_t latest = 0;
    for (int i = 0; i < 6; ++i) {
        lock one = site.take(i % 2 == 0 ? mine : theirs, with_token(waiting(60s)));
        CHECK(one.slot() == 0);
        CHECK(one.fencing_token() > latest);
        latest = one.fencing_token();
        CHECK(site.acquire(i % 2 == 0 ? theirs : mine, with_token())->error == errc::contended);
        error_code extended = errc::lost;
        one.async_extend(20s, [&](error_code error, extend_result) { extended = error; });
        CHECK(site.release(one) == release_result::released);
        CHECK((!extended || extended == errc::released));
    }
}

TEST_CASE("processes that say different sizes share the numbers that both know") {
    pool_site site;
    client other(site.io, site.changed(guarded), 3);
    named_pool small{site.me.manager(), "crew", 2};
    named_pool large{other.manager(), "crew", 4};
    std::vector<lock> held;
    std::set<std::size_t> numbers;
    for (named_pool* const pool : {&small, &large, &large, &large}) {
        const acquisition_ptr one = site.acquire(*pool, waiting(5s));
        REQUIRE(*one);
        CHECK(one->lock.slot() < pool->size);
        numbers.insert(one->lock.slot());
        held.push_back(std::move(one->lock));
    }
    CHECK(numbers.size() == 4);
    CHECK(site.acquire(large)->error == errc::contended);
    CHECK(site.acquire(small)->error == errc::contended);
}

}} // namespace redlock::test
