// What is counted, and when: histograms, votes by kind, losses by reason, how long a lock was held.
#include "core/base/histogram_access.hpp"
#include "virtual_quorum.hpp"

#include <redlock/metrics.hpp>

#include <numeric>

namespace metrics_test { namespace {

using namespace unit;
using redlock::histogram;
using redlock::metrics;
using redlock::detail::histogram_access;

std::size_t bucket_of(nanoseconds took) {
    histogram one;
    histogram_access::add(one, took);
    const auto counts = one.counts();
    REQUIRE(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}) == 1);
    return static_cast<std::size_t>(std::ranges::find(counts, 1U) - counts.begin());
}

TEST_CASE("a duration belongs to the first bucket whose bound it does not exceed") {
    const auto& bounds = histogram::bounds;
    CHECK(bounds.front() == 50us);
    CHECK(bounds.back() == 5min);
    for (std::size_t i = 0; i < bounds.size(); ++i) {
        CHECK(bucket_of(bounds[i] - 1ns) == i);
        CHECK(bucket_of(bounds[i]) == i);
        CHECK(bucket_of(bounds[i] + 1ns) == i + 1);
    }
    CHECK(bucket_of(0ns) == 0);
    CHECK(bucket_of(-1s) == 0);
    CHECK(bucket_of(nanoseconds::max()) == bounds.size());
}

TEST_CASE("count and sum are those of what was added; a copy is a value of its own") {
    histogram all;
    CHECK(all.count() == 0);
    CHECK(all.sum() == 0ns);
    histogram_access::add(all, 3ms);
    histogram_access::add(all, -3ms); // counts as nothing
    const histogram before = all;
    histogram_access::add(all, 400s);
    CHECK(all.count() == 3);
    CHECK(all.sum() == 400'003ms);
    CHECK(before.count() == 2);
}

TEST_CASE("a quantile is right to the bucket, and interpolated within") {
    histogram all;
    CHECK(all.quantile(0.5) == 0ns);
    for (int i = 0; i < 90; ++i) {
        histogram_access::add(all, 1500us); // (1 ms, 2 ms]
    }
    for (int i = 0; i < 10; ++i) {
        histogram_access::add(all, 30ms); // (20 ms, 50 ms]
    }
    CHECK(all.quantile(0) == 1ms);
    CHECK(all.quantile(0.45) == 1500us);
    CHECK(all.quantile(0.9) == 2ms);
    CHECK(all.quantile(0.95) == 35ms);
    CHECK(all.quantile(1) == 50ms);
    CHECK(all.quantile(7) == 50ms);
    CHECK(all.quantile(-7) == 1ms);
    histogram beyond;
    histogram_access::add(beyond, 1h);
    CHECK(beyond.quantile(0.5) == 5min);
}

TEST_CASE("an acquire and its release are counted by time and by vote") {
    started_quorum it(3);
    it.cut_off(2, 10ms);
    const redlock::master_metrics before = it.engine.count().masters[0];
    const answer got = it.take(once());
    const redlock::master_metrics after = it.engine.count().masters[0];
    CHECK(after.bytes_sent == before.bytes_sent + 98);        // of a SET with a token of 40
    CHECK(after.bytes_received == before.bytes_received + 5); // +OK
    const redlock::time_point since = it.now();
    it.run_for(3s);
    it.release(got);
    const nanoseconds held = it.now() - since;
    it.run_for(10ms);
    CHECK(it.release_took(got) == 1ms);

    const metrics counted = it.engine.count();
    CHECK(counted.acquired == 1);
    CHECK(counted.acquire_wait.count() == 1);
    CHECK(counted.acquire_wait.sum() == 1ms); // one round trip
    CHECK(counted.hold.count() == 1);
    CHECK(counted.hold.sum() == held);
    CHECK(counted.released[redlock::release_result::released] == 1);
    for (const std::size_t i : {0U, 1U}) {
        const auto& mine = counted.masters[i];
        CHECK(mine.acquire_votes[vote::granted] == 1);
        CHECK(mine.release_votes[vote::granted] == 1);
        CHECK(mine.acquire_votes.total() == 1);
        CHECK(mine.latency.count() == 1); // of the acquire, not of the release
        CHECK(mine.latency.quantile(1) == 1ms);
    }
    CHECK(counted.masters[2].acquire_votes[vote::unreachable] == 1);
    CHECK(counted.masters[2].latency.count() == 0);
}

TEST_CASE("votes against an acquire are counted by kind, and a failed one has no wait") {
    started_quorum it(3);
    const answer first = it.take(once(), 10ms);
    CHECK(it.acquire_now(once()).why == errc::contended);
    it.run_for(10ms);
    it.hang();
    CHECK(!it.acquire_now(once(), "another").won);
    const metrics counted = it.engine.count();
    std::uint64_t against = 0;
    for (const auto& mine : counted.masters) {
        CHECK(mine.acquire_votes[vote::granted] == 1);
        CHECK(mine.acquire_votes[vote::timed_out] == 1);
        against += mine.acquire_votes[vote::held];
    }
    CHECK(against == 3); // it is decided by two of them, but the third is not silent
    CHECK(counted.acquire_wait.count() == 1);
    it.resume(0, 10ms); // what timed out is counted once, also when its reply comes
    CHECK(it.engine.count().masters[0].acquire_votes.total() == 3);
    CHECK(it.engine.count().masters[0].latency.count() == 3);
}

}} // namespace metrics_test
