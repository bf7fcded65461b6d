// Cancellation of an acquire in each of its phases: it completes once, and nothing is left of it.

#include "waiters.hpp"

namespace cancel_test { namespace {

using namespace unit;
using redlock::wait_for;

// Nothing is left: no key of ours, no timer, no operation, no claim.
void check_clean(virtual_quorum& it, std::uint64_t name) {
    CHECK(!it.answered(name).won);
    CHECK(!it.answered(name).why);
    CHECK(it.engine.count().cancelled == 1);
    for (virtual_master& server : it.masters) {
        for (const std::string& token : it.tokens) {
            CHECK(server.value_of("p:{r}", it.now()) != token);
        }
    }
    CHECK(it.idle());
}

TEST_CASE("an acquire may be cancelled at any moment, and leaves no keys") {
    // Commands and replies are under way, arrive, are late, are answered in pieces, in turn.
    for (const bool contended : {false, true}) {
        for (int step = 0; step <= 60; ++step) {
            CAPTURE(contended, step);
            started_quorum it(5);
            for (std::size_t i = 0; i < 5; ++i) {
                it.paths[i].there = milliseconds(2 * i + 1);
                it.paths[i].back = milliseconds(3 * i + 1);
                if (contended && i != 2) {
                    it.masters[i].put(it.key(), "somebody");
                }
            }
            const std::uint64_t name = it.acquire(patient(), step * 500us);
            if (it.answer_to(name) != nullptr) {
                CHECK(it.answered(name).won);
                CHECK(step > 20);
                break;
            }
            it.cancel(name);
            it.cancel(name); // once is enough
            const redlock::time_point cancelled = it.now();
            it.run_for(100ms);
            check_clean(it, name);
            CHECK(it.answered(name).at == cancelled);
        }
    }
}

TEST_CASE("a failed acquire completes at the end of the closing at the latest") {
    started_quorum it(3);
    it.paths[2].takes_bytes = false;
    const std::uint64_t name = it.acquire(patient(), 100us);
    it.cancel(name, 10ms);
    it.close();
    CHECK(it.answer_to(name) == nullptr);
    it.engine.cancel({}, it.now() + 1h); // an event that comes before the timers that are due
    CHECK(it.closings == 1);
    CHECK(it.answer_to(name) != nullptr);
}

TEST_CASE("cancelling what is over changes nothing") {
    started_quorum it(3);
    const std::uint64_t name = it.acquire(patient(), 10ms);
    REQUIRE(it.answered(name).won);
    it.cancel(name, 10ms);
    CHECK(it.engine.count().held == 1);
    CHECK(it.engine.count().cancelled == 0);
}

}} // namespace cancel_test
