// Three clients that each reach another majority: AB, BC and AC.
#include "guarded_quorum.hpp"

#include <boost/asio/steady_timer.hpp>

namespace redlock::test::majorities { namespace {

acquisition_ptr try_as(lock_mode mode, client& one, acquire_options options = once()) {
    options.mode = mode;
    return one.acquire("r", options);
}

TEST_CASE("readers on AB, BC and AC share, and no writer finds a majority") {
    const std::string readers_key = lock_key("r") + ":readers";
    quorum_of_masters masters(3);
    config settings = config_for(masters.urls());
    settings.protocol = protocol::guarded;
    settings.master_timeout = 300ms;
    asio::io_context io;
    std::vector<std::unique_ptr<client>> clients;
    std::vector<lock> readers;
    // Each has a majority of its own: the third master of each hangs while it asks.
    for (std::size_t away = 0; away < 3; ++away) {
        clients.push_back(std::make_unique<client>(io, settings, 3));
        masters[away].hang();
        // What it asked of the third is taken back by the connection's end: it never arrives.
        readers.push_back(granted(try_as(lock_mode::shared, *clients.back(), once_unrenewed(20s))));
        for (const auto& one : clients) {
            run_until(io, [&] { return one->health().admitted == 2; });
        }
        masters[away].kill();
        masters[away].restart();
        for (const auto& one : clients) {
            one->until_admitted(3);
        }
        // It restarted without its memory, which each of these has no vote to spare for.
        for (std::size_t i = 0; i < readers.size(); ++i) {
            if (i != away) {
                masters[away].command({"SET", lock_key("r"), "readers", "PX", "600000"});
                masters[away].command(
                    {"ZADD", readers_key, "9999999999999", std::string(readers[i].secret())});
                CHECK(clients[i]->extend(readers[i], 20s) == error_code());
            }
        }
    }
    for (const lock& one : readers) {
        CHECK(one.held());
    }
    client writer(io, settings, 3);
    CHECK(try_as(lock_mode::exclusive, writer)->error == errc::contended);
    CHECK(clients[0]->release(readers[0]) == release_result::released);
    CHECK(clients[1]->release(readers[1]) == release_result::released);
    CHECK(try_as(lock_mode::exclusive, writer)->error == errc::contended);
    CHECK(clients[2]->release(readers[2]) == release_result::released);
    const acquisition_ptr got = try_as(lock_mode::exclusive, writer, waiting(20s));
    INFO(got->explained());
    CHECK(got->lock.held());
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

    constexpr std::size_t size = 2;
    for (std::size_t i = 0; i < 3; ++i) {
        config settings = all;
        settings.masters[i].port = nobody.number();
        clients.push_back(std::make_unique<client>(io, settings));
        clients.back()->until_admitted(2);
    }
    std::vector<lock> held;
    for (const auto& asks : clients) {
        for (std::size_t i = 0; i < size; ++i) {
            const acquisition_ptr one = begun([&](auto handler) {
                asks->manager().async_acquire(
                    redlock::slots("crew", size), waiting(300ms), std::move(handler));
            });
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
    std::function<void(lock_manager&)> work = [&](lock_manager& asks) {
        asks.async_acquire(
            redlock::slots("crew", size), waiting(60s), [&](error_code error, lock mine) {
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
                        work(asks);
                    });
                });
            });
    };
    for (const auto& asks : clients) {
        for (int i = 0; i < 3; ++i) {
            ++workers;
            work(asks->manager());
        }
    }
    run_until(
        io, [&] { return workers == 0; }, 60s);
    CHECK(most == size);
    run_until(io, [&] { return masters.total_keys("*slot*") == 0; });
}

}} // namespace redlock::test::majorities
