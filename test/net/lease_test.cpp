// A held lock and masters that misbehave on cue. The rest of renewal, extension and loss: the
// suites unit and integration.
#include "quorum.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace redlock;
using namespace redlock::test;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("without renewal a lease ends with its ttl, by a timer") {
    started_quorum q;
    lock held = q.acquired("r", once(300ms));
    loss_outcome& loss = q.wait(q.begin_wait_lost(held));
    CHECK(!loss.error());
    CHECK(loss.value() == loss_reason::expired);
    CHECK_FALSE(held.held());
    CHECK(held.valid());
    CHECK(clock::now() >= held.deadline());
    CHECK(held.remaining() == 0s);
    CHECK(q.manager->get_metrics().lost == 1);
    CHECK(q.manager->get_metrics().held == 0);
    // A loss that was reported to one waiter is reported to the next as well.
    CHECK(q.wait(q.begin_wait_lost(held)).value() == loss_reason::expired);
    CHECK(q.extend(held, 300ms).error() == errc::lost);
    q.run_until([&] { return q.keys() == 0; });
}

TEST_CASE("a validity that slow answers use up is not an outage") {
    started_quorum q;
    q.when("SET", fake_action::delay(200ms));
    CHECK(!q.acquire("first").error()); // the manager learns how slow they are
    acquire_options options = once(20s);
    options.min_validity = 20s - 203ms; // the drift takes 202 ms
    acquisition& late = q.acquire("r", options);
    CHECK(late.error() == errc::validity_exhausted);
    CHECK(late.error() == condition::not_acquired);
    CHECK_THAT(late.why().message, ContainsSubstring("validity"));
    CHECK_THAT(late.why().message, !ContainsSubstring("could vote"));
    q.run_until([&] { return q.keys() == 3; }); // those of the first
}

TEST_CASE("an acquire with options that make no sense is refused with the range") {
    started_quorum q;
    acquire_options options = once();
    std::string resource = "r";
    SECTION("ttl of zero") {
        options.ttl = 0ms;
    }
    SECTION("ttl beyond max_ttl") {
        options.ttl = 31s;
    }
    SECTION("ttl that overflows") {
        options.ttl = std::chrono::milliseconds::max();
    }
    SECTION("negative wait") {
        options.wait = -1ms;
    }
    SECTION("min_validity beyond the ttl") {
        options.min_validity = 20s;
    }
    SECTION("negative stop_margin") {
        options.stop_margin = -1ms;
    }
    SECTION("negative max_hold") {
        options.max_hold = -1ms;
    }
    SECTION("no name") {
        resource.clear();
    }
    SECTION("a name that is too long") {
        resource.assign(resource_name_max + 1, 'x');
    }
    acquisition& refused = q.acquire(resource, options);
    CHECK(refused.error() == errc::invalid_argument);
    CHECK(!refused.why().message.empty());
    CHECK(q.count("SET") == 0);
}

TEST_CASE("the longest wait and the longest name work") {
    started_quorum q;
    acquire_options options = patiently(30s);
    options.max_hold = std::chrono::milliseconds::max();
    std::string name(resource_name_max, '\0');
    name.back() = '\n';
    lock held = q.acquired(name, options);
    CHECK(held.resource() == name);
    q.run_until([&] { return q.keys() == 3; });
    CHECK(q.masters[0].get_key("redlock:{" + name + "}") == held.token());
    CHECK(q.release(held).value() == release_result::released);
}

TEST_CASE("a query of masters that do not answer is undecided") {
    started_quorum q(3, [](config& c) { c.master_timeout = 100ms; });
    q.masters[0].accept_but_say_nothing(true);
    q.masters[1].when("GET", fake_action::close_before_reply(), 1);
    query_outcome& asked = q.query("r");
    CHECK(!asked.error());
    CHECK(asked.value().state == lock_state::undecided);
    CHECK(asked.value().masters[0].vote == vote::timed_out);
    CHECK(asked.value().masters[1].vote == vote::unreachable);
    CHECK(asked.value().masters[2].vote == vote::absent);
}

TEST_CASE("a release after the loss shows the votes on the removal, not those on the acquire") {
    started_quorum q;
    lock held = q.acquired("r", once(200ms));
    for (fake_master& master : q.masters) {
        std::string key;
        q.run_until([&] {
            for (const auto& [name, value] : master.keys()) {
                key = value == held.token() ? name : key;
            }
            return !key.empty();
        });
        master.set_key(key, "somebody");
    }
    q.wait(q.begin_wait_lost(held));
    q.run_until([&] { return q.manager->get_metrics().released_late == 1; });
    release_outcome& released = q.release(held);
    CHECK(released.value() == release_result::stolen);
    REQUIRE(released.why().votes.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        const vote said = released.vote_of(i).vote;
        CHECK((said == vote::owned_by_other || said == vote::pending)); // two decide
    }
}
