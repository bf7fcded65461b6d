// What a number of masters and a ttl come to.
#include "config/sizing.hpp"
#include "virtual_quorum.hpp"

#include <catch2/catch_approx.hpp>

#include <bit>
#include <cmath>

namespace sizing_test { namespace {

using Catch::Approx;
using namespace redlock;
using namespace redlock::detail;
using unit::answer;
using unit::virtual_quorum;

// By looking at each of the 2^N states that N masters can be in.
double downtime_by_enumeration(std::size_t masters, double each_down) {
    double sum = 0;
    for (unsigned down = 0; down < 1U << masters; ++down) {
        const auto dead = static_cast<std::size_t>(std::popcount(down));
        if (masters - dead < votes_needed(masters)) {
            sum += std::pow(each_down, dead) * std::pow(1 - each_down, masters - dead);
        }
    }
    return sum;
}

TEST_CASE("the time without a majority is that of all the states that have none") {
    for (std::size_t masters = 1; masters <= 12; ++masters) {
        for (const double each : {0.0, 1e-6, 0.01, 0.3, 1.0}) {
            INFO(masters << " masters, each down " << each);
            CHECK(
                quorum_downtime(masters, each)
                == Approx(downtime_by_enumeration(masters, each)).epsilon(1e-9));
        }
    }
    // One of three may be away, so two must be, which three pairs can.
    CHECK(quorum_downtime(3, 1e-6) == Approx(3e-12).epsilon(1e-5));
    CHECK(quorum_downtime(32, 1e-3) == Approx(5.92e-40).epsilon(0.01));
}

TEST_CASE("the times of a lease are those by which the engine goes") {
    config known;
    acquire_options options;
    options.stop_margin = 500ms;
    const lease_times found = times_of(known, options);
    CHECK(found.drift == 102ms);
    CHECK(found.validity == 9'898ms);
    CHECK(found.held == 9'398ms);
    CHECK(found.crash_longest == 10s);
    CHECK(found.quarantine == 32'602ms); // 30 s, 2 % of it, 2 ms, twice 1 s
    known.protocol = redlock::protocol::plain;
    CHECK(times_of(known, options).quarantine == 30'602ms);
}

TEST_CASE("a lock of the virtual quorum is renewed and ends when the times say") {
    unit::started_quorum it(3);
    acquire_options options;
    options.ttl = 9s;
    config known;
    const lease_times found = times_of(known, options);
    const time_point began = it.now();
    const answer got = it.take(options);
    CHECK(got.deadline == began + found.validity);
    it.run_for(found.renewal_earliest - 100ms);
    CHECK(it.engine.count().renewed == 0);
    it.run_for(found.renewal_latest - found.renewal_earliest + 200ms);
    CHECK(it.engine.count().renewed == 1);
}

}} // namespace sizing_test
