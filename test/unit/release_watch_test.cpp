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
    std::optional<error_code> ended;

    // Waits for a minute.
    void wait(std::uint64_t before, std::uint64_t id = 0) {
        ended.reset();
        const auto told = [this](error_code error) {
            CHECK(!ended);
            ended = error;
        };
        watch.wait("k", before, start + 1min, id, completion<error_code>(told, mine));
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
    mine.watch.listen("k");
    mine.watch.listen("other");
    CHECK(mine.watch.next_due() == time_point::max());
    mine.wait(0);
    CHECK(mine.watch.next_due() == start + 1min);
    SECTION("the notification") {
        mine.watch.release_notified("other");
        CHECK(!mine.result());
        mine.watch.release_notified("k");
        CHECK(mine.result() == error_code());
        CHECK(mine.watch.notifications_of("k") == 1);
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
    mine.watch.listen("k");
    const std::uint64_t before = mine.watch.notifications_of("k");
    mine.watch.release_notified("k");
    mine.wait(before);
    CHECK(mine.result() == error_code());
    mine.wait(before + 1);
    CHECK(!mine.result());
}

}} // namespace release_watch_test
