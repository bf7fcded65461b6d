// Mistakes of users that show when a program runs, each with the sentence that it gives. What the
// compiler finds is in test/abi/mistakes.py.
#include "blocking_site.hpp"

#include <redlock/blocking_shared.hpp>
#include <redlock/reentrant_mutex.hpp>

#include <boost/asio/detached.hpp>
#include <boost/asio/use_future.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace redlock::test { namespace {

using Catch::Matchers::ContainsSubstring;

std::string said_by(const std::function<void()>& mistake) {
    try {
        mistake();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "nothing";
}

config local() {
    config settings;
    settings.masters = {"redis://127.0.0.1:1"};
    return settings;
}

// A manager with a thread, of masters where nobody listens.
std::string said_by_manager(const std::function<void(blocking::manager&)>& mistake) {
    blocking::manager locks(local());
    return said_by([&] { mistake(locks); });
}

// What an acquire says, without a wait.
std::string said_by_acquire(const target& names, acquire_options options = once()) {
    return said_by_manager([&](blocking::manager& locks) {
        locks
            .call([&](auto token) {
                return locks.async().async_acquire(names, options, std::move(token));
            })
            .abandon();
    });
}

TEST_CASE("a mistake in the list of masters is refused with a sentence") {
    const auto said = [](std::vector<std::string> urls) {
        return said_by([&] {
            config settings;
            settings.masters.assign(urls.begin(), urls.end());
            const blocking::manager locks(settings);
        });
    };
    CHECK(said({}) == "redlock: masters has 0 entries; allowed: 1 to 32");
    CHECK_THAT(
        said({"http://10.0.0.1"}), ContainsSubstring("scheme 'http' is not redis, rediss or unix"));
    CHECK_THAT(
        said({"redis://10.0.0.1:70000"}),
        ContainsSubstring("port '70000' is not a number from 1 to 65535"));
    CHECK_THAT(
        said({"redis://10.0.0.1,redis://10.0.0.2"}),
        ContainsSubstring("two URLs in one; list each master by itself"));
    CHECK_THAT(
        said({"redis://a", "redis://b", "redis://a:6379"}),
        ContainsSubstring(
            "masters[2] is 'a:6379'; masters[0] is the same server; list each server once"));
}

TEST_CASE("a manager that nobody runs says what to call") {
    asio::io_context io;
    lock_manager manager(io, local());
    auto got = manager.async_acquire("r", once(), with_diagnostics(asio::use_future));
    io.run();
    CHECK_THAT(said_by([&] { got.get().abandon(); }), ContainsSubstring("call async_run first"));
}

TEST_CASE("a wrong argument of an acquire is refused with the value and what is allowed") {
    CHECK_THAT(said_by_acquire(""), ContainsSubstring("resource has 0 bytes; allowed: 1 to 1024"));
    CHECK_THAT(
        said_by_acquire(std::vector<std::string>()),
        ContainsSubstring("resources has 0 names; allowed: 1 to 128"));
    acquire_options ordered = once();
    ordered.order = fairness::fifo;
    CHECK_THAT(
        said_by_acquire({"a", "b"}, ordered),
        ContainsSubstring("'a, b': order is 'fifo'; allowed: 'none', with several resources"));
    CHECK_THAT(
        said_by_acquire("r", once(std::chrono::hours(25))),
        ContainsSubstring("ttl is 90000000 ms; allowed: "));
    acquire_options options = once();
    options.wait = -1s;
    CHECK_THAT(said_by_acquire("r", options), ContainsSubstring("wait is -1000 ms"));
    options = once();
    options.mode = lock_mode::shared;
    CHECK_THAT(
        said_by_manager([&](blocking::manager& locks) {
            const reentrant_mutex readers(locks.async(), "r", options);
        }),
        ContainsSubstring("mode is 'shared'; allowed: 'exclusive', with reentrant_mutex"));
    options = once();
    options.max_hold = -1ms;
    CHECK_THAT(said_by_acquire("r", options), ContainsSubstring("max_hold is -1 ms"));
    CHECK_THAT(
        said_by_manager([](blocking::manager& locks) {
            locks
                .call([&](auto token) {
                    return locks.async().async_attach("r", "token", once(), std::move(token));
                })
                .abandon();
        }),
        ContainsSubstring("secret has 5 characters; allowed: 40"));
    CHECK_THAT(
        said_by_manager([](blocking::manager& locks) {
            locks
                .call([&](auto token) {
                    return locks.async().async_acquire(
                        redlock::slots("p", 0), once(), std::move(token));
                })
                .abandon();
        }),
        ContainsSubstring("size is 0; allowed: 1 to 65536"));
}

TEST_CASE("the constructors of mutexes validate what they are given") {
    const auto wrong_name = [](auto make) {
        CHECK(
            said_by_manager([&](blocking::manager& locks) { make(locks, "", once()); })
            == "redlock: resource has 0 bytes; allowed: 1 to 1024");
        acquire_options options = once();
        options.ttl = 0ms;
        CHECK_THAT(
            said_by_manager([&](blocking::manager& locks) { make(locks, "r", options); }),
            ContainsSubstring("redlock: ttl is 0 ms; allowed: "));
        CHECK(
            said_by_manager([&](blocking::manager& locks) { make(locks, "r", once()); })
            == "nothing");
    };
    wrong_name([](blocking::manager& locks, const char* name, acquire_options options) {
        const blocking::mutex made(locks, name, options);
    });
    wrong_name([](blocking::manager& locks, const char* name, acquire_options options) {
        const blocking::shared_mutex made(locks, name, options);
    });
    wrong_name([](blocking::manager& locks, const char* name, acquire_options options) {
        const reentrant_mutex made(locks.async(), name, options);
    });
}

TEST_CASE("masters where nobody listens, or with another password, are named with the reason") {
    const auto said = [](const config& settings, const std::string& reason) {
        blocking::manager locks(settings);
        CHECK(blocking_use::soon([&] {
            return locks.async().get_health().masters.at(0).text.find(reason) != std::string::npos;
        }));
        return said_by([&] {
            locks
                .call([&](auto token) {
                    return locks.async().async_acquire("r", once(), std::move(token));
                })
                .abandon();
        });
    };
    CHECK_THAT(said(local(), "refused"), ContainsSubstring("127.0.0.1:1 unreachable"));
    master_options options;
    options.requirepass = "secret";
    const quorum_of_masters masters(1, options);
    config settings = config_for(masters.urls());
    settings.password = "guess";
    CHECK_THAT(
        said(settings, "WRONGPASS"), ContainsSubstring("WRONGPASS") && !ContainsSubstring("guess"));
}

TEST_CASE("a lock that is not there, and a number that it does not have, throw a sentence") {
    lock none;
    CHECK_THAT(said_by([&] { none.secret(); }), ContainsSubstring("check valid() first"));
    CHECK_THAT(
        said_by([&] { none.async_release(asio::detached); }),
        ContainsSubstring("check valid() first"));
    blocking_use::site site(1);
    const auto locks = site.client();
    const lock mine = locks->call(
        [&](auto token) { return locks->async().async_acquire("r", once(), std::move(token)); });
    CHECK_THAT(said_by([&] { mine.slot(); }), ContainsSubstring("redlock::slots"));
    // A blocking call in a handler would wait for itself.
    const std::string said = locks->call([&](auto token) {
        return asio::async_initiate<decltype(token), void(std::string)>(
            [&](auto done) { std::move(done)(said_by([&] { locks->ready(1s); })); }, token);
    });
    CHECK_THAT(said, ContainsSubstring("would deadlock"));
}

}} // namespace redlock::test
