// Calls that wait for the next notification on a key, or for a moment.

#include "manager/release_watch.hpp"
#include "support/test.hpp"

#include <redlock/errc.hpp>

#include <boost/asio/io_context.hpp>

namespace release_watch_test { namespace {

using namespace redlock;
using namespace redlock::detail;

const time_point start{1h};

struct watched {
    boost::asio::io_context io;
    home mine{io.get_executor()};
    release_watch watch{mine};
    watched_lock& lock = watch.add("k");
    std::optional<error_code> ended;

    // Waits for a minute.
    void wait() {
        ended.reset();
        const auto told = [this](error_code error) {
            CHECK(!ended);
            ended = error;
        };
        watch.wait(lock, start + 1min, 0, completion<error_code>(told, mine));
        CHECK(!ended); // never inside the call
    }
    std::optional<error_code> result() {
        io.restart();
        io.poll();
        return ended;
    }
};

TEST_CASE(
    "release watch: a call that waits ends with the next notification on its key, or in time") {
    watched mine;
    mine.watch.add("other");
    CHECK(mine.watch.next_due() == time_point::max());
    mine.wait();
    CHECK(mine.watch.next_due() == start + 1min);
    SECTION("the notification") {
        mine.watch.release_notified("other");
        CHECK(!mine.result());
        CHECK(mine.watch.next_due() == start + 1min);
        mine.watch.release_notified("k");
        CHECK(mine.result() == error_code());
        CHECK(mine.watch.next_due() == time_point::max());
    }
    SECTION("the moment") {
        mine.watch.time_passed(start + 1min - 1ns);
        CHECK(!mine.result());
        mine.watch.time_passed(start + 1min);
        CHECK(mine.result() == error_code());
        CHECK(mine.watch.next_due() == time_point::max());
    }
    SECTION("the end of all") {
        mine.watch.end(errc::closed);
        CHECK(mine.result() == error_code(errc::closed));
        mine.watch.time_passed(start + 1h);
        CHECK(mine.result() == error_code(errc::closed));
    }
}

TEST_CASE("release watch: a notification between the look and the wait is not missed") {
    watched mine;
    mine.watch.release_notified("k");
    mine.wait();
    CHECK(mine.result() == error_code());
    mine.lock.notified = false;
    mine.wait();
    CHECK(!mine.result());
}

}} // namespace release_watch_test
