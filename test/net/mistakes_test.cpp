// Mistakes of users that show when a program runs, each with the sentence that it gives. What the
// compiler finds is in test/abi/mistakes.py; refused values are in the suite `unit`.
#include "support/test.hpp"

#include <redlock/blocking_shared.hpp>
#include <redlock/redlock.hpp>

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <thread>

// In a namespace of its own: short names, in what may be compiled as one with other files.
namespace redlock::test::mistakes { namespace {

using Catch::Matchers::ContainsSubstring;

std::string said_by(const std::function<void()>& mistake) {
    try {
        mistake();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "nothing";
}

// Of masters where nobody listens.
config nobody() {
    config settings;
    settings.masters = {"redis://127.0.0.1:1"};
    return settings;
}

TEST_CASE("a manager that nobody runs says what to call") {
    boost::asio::io_context io;
    lock_manager manager(io, nobody());
    auto got = manager.async_acquire("r", with_diagnostics(boost::asio::use_future));
    io.run();
    CHECK_THAT(said_by([&] { got.get().abandon(); }), ContainsSubstring("call async_run first"));
}

TEST_CASE("the constructors of mutexes validate what they are given") {
    blocking::manager locks(nobody());
    const auto check = [&](auto make) {
        CHECK(
            said_by([&] { make("", acquire_options()); })
            == "redlock: resource has 0 bytes; allowed: 1 to 1024");
        acquire_options options;
        options.ttl = 0ms;
        CHECK_THAT(
            said_by([&] { make("r", options); }),
            ContainsSubstring("redlock: ttl is 0 ms; allowed"));
        CHECK(said_by([&] { make("r", acquire_options()); }) == "nothing");
    };
    check([&](const char* name, const acquire_options& options) {
        const blocking::mutex made(locks, name, options);
    });
    check([&](const char* name, const acquire_options& options) {
        const blocking::shared_mutex made(locks, name, options);
    });
}

TEST_CASE("a missing lock and a missing master throw a sentence with the reason") {
    lock none;
    CHECK_THAT(said_by([&] { none.secret(); }), ContainsSubstring("check valid() first"));
    CHECK_THAT(
        said_by([&] { none.async_release(boost::asio::detached); }),
        ContainsSubstring("check valid() first"));
    blocking::manager locks(nobody());
    while (locks.async().get_health().masters.at(0).text.find("refused") == std::string::npos) {
        std::this_thread::yield();
    }
    acquire_options once;
    once.wait = wait_for::none();
    CHECK_THAT(
        said_by([&] { locks.acquire("r", once).release(); }),
        ContainsSubstring("127.0.0.1:1 unreachable"));
}

}} // namespace redlock::test::mistakes
