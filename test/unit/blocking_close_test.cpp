// Blocking calls that ask no masters: after the end of their manager, or of their time.

#include "support/error_of.hpp"
#include "support/test.hpp"

#include <redlock/blocking.hpp>

#include <catch2/matchers/catch_matchers_string.hpp>

namespace blocking_close_test { namespace {

using namespace redlock;
using Catch::Matchers::ContainsSubstring;
using test::error_of;

// No master is there.
config of_nobody() {
    config settings;
    settings.masters = {"redis://127.0.0.1:1"};
    settings.connect_timeout = std::chrono::milliseconds(100);
    return settings;
}

TEST_CASE("a manager that its asynchronous side has closed answers each call, and waits for none") {
    blocking::manager manager(of_nobody());
    blocking::mutex mutex(manager, "r");
    const auto close = [&] {
        manager.call([&](auto token) { return manager.async().async_close(std::move(token)); });
    };
    close();
    for (int i = 0; i < 20; ++i) { // the thread would end between two of them
        CHECK(!error_of(close));
        CHECK(error_of([&] { mutex.lock(); }) == errc::closed);
        CHECK(error_of([&] { manager.ready(std::chrono::seconds(1)); }) == errc::closed);
    }
}

TEST_CASE("a query with an invalid argument names the value") {
    blocking::manager manager(of_nobody());
    diagnostics why;
    const auto query = [&](const target& what) {
        return manager.call([&](auto token) {
            return manager.async().async_query(what, with_diagnostics(why, std::move(token)));
        });
    };
    CHECK_THROWS_WITH(query(slots("p", 0)), ContainsSubstring("invalid argument"));
    CHECK_THAT(why.message, ContainsSubstring("size is 0; allowed: 1 to"));
    CHECK(why.resource == "p");
    const std::string long_name(2'000, 'n');
    try {
        const auto mine = manager.acquire(long_name);
        FAIL("a name of 2,000 bytes");
    } catch (const error_with_diagnostics& error) {
        const std::string what = error.what();
        CHECK_THAT(what, ContainsSubstring("resource has 2000 bytes"));
        CHECK(what.size() < 200);
        CHECK(error.get_diagnostics().resource == long_name);
    }
    CHECK_THROWS_AS(query({"a", "b"}), boost::system::system_error);
    CHECK_THAT(why.message, ContainsSubstring("2 names; allowed: 1"));
    CHECK(query("r").state == lock_state::undecided);
    CHECK(why.votes.size() == 1);
    CHECK(why.resource == "r");
}

TEST_CASE("a moment that passed however long ago is not waited for") {
    blocking::manager manager(of_nobody());
    blocking::mutex mutex(manager, "r");
    for (const auto end : {
             std::chrono::steady_clock::time_point::min(),
             std::chrono::steady_clock::time_point(),
         }) {
        CHECK_THROWS(static_cast<void>(mutex.try_lock_until(end)));
    }
    CHECK(detail::wait_within(std::chrono::seconds::min()) == wait_for::none());
    CHECK(detail::wait_within(-std::chrono::seconds(9'223'372'036'854'776)) == wait_for::none());
}

}} // namespace blocking_close_test
