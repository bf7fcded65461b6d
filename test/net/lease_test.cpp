// A held lock: renewal, extension, loss.
#include "quorum.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace redlock;
using namespace redlock::test;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

acquire_options renewed(std::chrono::milliseconds ttl) {
    acquire_options options = once(ttl);
    options.renew = renewal::automatic;
    return options;
}

bool is_extension(const received_command& command) {
    return (command.name() == "EVALSHA" || command.name() == "EVAL") && command.args.size() == 6;
}

} // namespace

TEST_CASE("a lease is renewed before a third of its ttl has passed, and so outlives it") {
    quorum q;
    q.start();
    const time_point began = clock::now();
    lock held = q.acquired("r", renewed(3s));
    const time_point first_end = held.deadline();
    q.run_until([&] { return q.manager->get_metrics().renewed >= 5; });
    // Never early: each takes a quarter at least, less a tick of a hundredth. Never late, or it
    // would have been lost.
    CHECK(clock::now() - began >= 5 * (3000ms / 4 - 3000ms / 100));
    CHECK(clock::now() > first_end);
    CHECK(held.held());
    CHECK(held.deadline() > first_end);
    CHECK(held.remaining() > 0s);
    CHECK(q.manager->get_metrics().lost == 0);
    CHECK(q.release(held).value() == release_result::released);
    const auto after = q.manager->get_metrics().renewed;
    q.poll();
    CHECK(q.manager->get_metrics().renewed == after);
}

TEST_CASE("without renewal a lease ends with its ttl, by a timer") {
    quorum q;
    q.start();
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

TEST_CASE("the holder is signalled to stop before the lease ends") {
    quorum q;
    q.start();
    acquire_options options = once(20s);
    options.stop_margin = 19s;
    lock held = q.acquired("r", options);
    loss_outcome& loss = q.wait(q.begin_wait_lost(held));
    CHECK(loss.value() == loss_reason::expired);
    CHECK_FALSE(held.held());
    CHECK(clock::now() >= held.deadline() - 19s);
    CHECK(clock::now() < held.deadline()); // 19 s early, but for a very slow machine
    q.run_until([&] { return q.keys() == 0; });
}

TEST_CASE("a renewal whose answers are lost is repeated: unknown is not lost") {
    quorum q;
    q.start();
    lock held = q.acquired("r", renewed(3s));
    loss_outcome& loss = q.begin_wait_lost(held);
    for (fake_master& master : q.masters) {
        master.when(is_extension, fake_action::execute_then_close(), 1);
    }
    q.run_until([&] { return loss.done() || q.manager->get_metrics().renewals_failed >= 1; });
    CHECK_FALSE(loss.done());
    CHECK(held.held());
    q.run_until([&] { return loss.done() || q.manager->get_metrics().renewed >= 2; });
    CHECK_FALSE(loss.done());
    CHECK(held.held());
    CHECK(q.release(held).value() == release_result::released);
    CHECK(loss.error() == errc::released);
}

TEST_CASE("a renewal that some masters miss goes on with the others") {
    quorum q;
    q.start();
    lock held = q.acquired("r", renewed(1500ms));
    q.run_until([&] { return q.keys() == 3; });
    q.masters[0].refuse_connections(true);
    q.masters[0].drop_connections();
    q.run_until([&] { return q.manager->get_metrics().renewed >= 2 || !held.held(); });
    CHECK(held.held());
    CHECK(q.release(held).value() == release_result::released);
}

TEST_CASE("a lock whose keys are gone from a majority is lost") {
    quorum q;
    q.start();
    lock held = q.acquired("r", renewed(2s));
    loss_outcome& loss = q.begin_wait_lost(held);
    q.run_until([&] { return q.keys() == 3; });
    q.masters[0].flush_keys();
    q.masters[1].flush_keys();
    q.wait(loss);
    CHECK(!loss.error());
    CHECK(loss.value() == loss_reason::expired);
    CHECK_FALSE(held.held());
    REQUIRE(loss.why().votes.size() == 3);
    CHECK(loss.vote_of(0).vote == vote::absent);
    CHECK(loss.vote_of(1).vote == vote::absent);
    CHECK_THAT(loss.why().message, ContainsSubstring("lost"));
    q.run_until([&] { return q.keys() == 0; }); // also from the one that still had it
}

TEST_CASE("a lock whose keys are gone from a minority is held") {
    quorum q;
    q.start();
    lock held = q.acquired("r", renewed(1500ms));
    q.run_until([&] { return q.keys() == 3; });
    q.masters[0].flush_keys();
    q.run_until([&] { return q.manager->get_metrics().renewed >= 2 || !held.held(); });
    CHECK(held.held());
    CHECK(q.release(held).value() == release_result::released);
}

TEST_CASE("a lock that somebody else has by now is lost to him") {
    quorum q;
    q.start();
    lock held = q.acquired("r", renewed(2s));
    loss_outcome& loss = q.begin_wait_lost(held);
    q.run_until([&] { return q.keys() == 3; });
    for (fake_master& master : q.masters) {
        master.set_key("redlock:{r}", "somebody's");
    }
    q.wait(loss);
    CHECK(loss.value() == loss_reason::owned_by_other);
    CHECK(q.release(held).value() == release_result::stolen);
    CHECK(q.keys() == 3);
}

TEST_CASE("a lock that cannot be renewed is lost at its deadline") {
    quorum q(3, [](config& c) { c.master_timeout = 100ms; });
    q.start();
    lock held = q.acquired("r", renewed(4s)); // a renewal begins, however slow the machine
    loss_outcome& loss = q.begin_wait_lost(held);
    q.run_until([&] { return q.keys() == 3; });
    const time_point deadline = held.deadline();
    q.masters[0].accept_but_say_nothing(true);
    q.masters[1].accept_but_say_nothing(true);
    q.wait(loss);
    CHECK(loss.value() == loss_reason::majority_unreachable);
    CHECK(clock::now() >= deadline);
    CHECK(q.manager->get_metrics().renewals_failed >= 1);
    CHECK(loss.vote_of(0).vote == vote::timed_out);
    release_outcome& released = q.release(held);
    CHECK(released.value() == release_result::uncertain);
}

TEST_CASE("a lock is held no longer than max_hold, however often it is renewed") {
    quorum q;
    q.start();
    acquire_options options = renewed(900ms);
    options.max_hold = 1500ms;
    const time_point began = clock::now();
    lock held = q.acquired("r", options);
    loss_outcome& loss = q.wait(q.begin_wait_lost(held));
    CHECK(loss.value() == loss_reason::max_hold_reached);
    CHECK(clock::now() - began >= 1500ms);
    CHECK(q.manager->get_metrics().renewed >= 1);
    CHECK_FALSE(held.held());
    q.run_until([&] { return q.keys() == 0; });
}

TEST_CASE("an extension moves the deadline, and never back") {
    quorum q;
    q.start();
    lock held = q.acquired("r", once(10s));
    q.run_until([&] { return q.keys() == 3; });
    const time_point first = held.deadline();
    nothing& longer = q.extend(held, 25s);
    CHECK(!longer.error());
    const time_point second = held.deadline();
    CHECK(second - first > 5s);
    CHECK(held.remaining() > 10s);
    CHECK(longer.why().message.empty());
    q.run_until([&] { return q.masters[0].pttl("redlock:{r}") > 10'000; });
    CHECK(!q.extend(held, 1s).error());
    CHECK(held.deadline() >= second);
    CHECK(q.manager->get_metrics().renewed == 2);
}

TEST_CASE("an extension without a majority leaves the deadline where it is") {
    quorum q;
    q.start();
    lock held = q.acquired("r", once(20s));
    q.run_until([&] { return q.keys() == 3; });
    const time_point before = held.deadline();
    for (const std::size_t master : {0U, 1U}) {
        q.masters[master].when(is_extension, fake_action::reply("-OOM no\r\n"));
    }
    nothing& failed = q.extend(held, 25s);
    CHECK(failed.error() == errc::no_quorum);
    CHECK(held.deadline() == before);
    CHECK(held.held());
    CHECK(failed.vote_of(0).vote == vote::error);
    CHECK_THAT(failed.vote_of(0).text, ContainsSubstring("OOM"));
}

TEST_CASE("an extension that nobody answers says so") {
    quorum q(3, [](config& c) { c.master_timeout = 100ms; });
    q.start();
    lock held = q.acquired("r", once(20s));
    for (const std::size_t master : {0U, 1U, 2U}) {
        q.run_until([&] { return q.manager->get_metrics().masters[master].granted == 1; });
    }
    for (fake_master& master : q.masters) {
        master.accept_but_say_nothing(true);
    }
    nothing& failed = q.extend(held, 25s);
    CHECK(failed.error() == errc::no_quorum);
    for (const std::size_t master : {0U, 1U, 2U}) {
        CHECK(failed.vote_of(master).vote == vote::timed_out);
    }
    CHECK(held.held());
}

TEST_CASE("an extension of a lock that a majority has forgotten says that it is lost") {
    quorum q;
    q.start();
    lock held = q.acquired("r");
    loss_outcome& loss = q.begin_wait_lost(held);
    q.run_until([&] { return q.keys() == 3; });
    const auto value = GENERATE(std::string(), std::string("somebody's"));
    for (const std::size_t master : {0U, 1U}) {
        q.masters[master].flush_keys();
        if (!value.empty()) {
            q.masters[master].set_key("redlock:{r}", value);
        }
    }
    nothing& failed = q.extend(held, 25s);
    CHECK(failed.error() == errc::lost);
    CHECK_FALSE(held.held());
    CHECK(
        q.wait(loss).value()
        == (value.empty() ? loss_reason::expired : loss_reason::owned_by_other));
}

TEST_CASE("extensions that are asked for at once are answered in turn") {
    quorum q;
    q.start();
    lock held = q.acquired("r", once(10s));
    std::vector<nothing*> asked;
    for (const auto ttl : {11s, 12s, 13s, 14s}) {
        asked.push_back(&q.begin_extend(held, ttl));
    }
    for (nothing* one : asked) {
        CHECK(!q.wait(*one).error());
        CHECK(one->calls() == 1);
    }
    CHECK(q.manager->get_metrics().renewed == 4);
}

TEST_CASE("an extension by a ttl that makes no sense is refused with the range") {
    quorum q;
    q.start();
    lock held = q.acquired("r");
    const auto ttl = GENERATE(0ms, -1ms, 1ms, 31'000ms, std::chrono::milliseconds::max());
    nothing& refused = q.extend(held, ttl);
    CHECK(refused.error() == errc::invalid_argument);
    CHECK(!refused.why().message.empty());
    CHECK(held.held());
}

TEST_CASE("an acquire with options that make no sense is refused with the range") {
    quorum q;
    q.start();
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
    quorum q;
    q.start();
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

TEST_CASE("a query reports the owner of a lock, and from when on there is none") {
    quorum q;
    q.start();
    CHECK(q.query("r").value().state == lock_state::free);
    lock held = q.acquired("r");
    q.run_until([&] { return q.keys() == 3; });
    lock_status status = std::move(q.query("r").value());
    CHECK(status.state == lock_state::held);
    CHECK(!status.owner.empty());
    CHECK(status.owner.find(held.token()) == std::string::npos);
    REQUIRE(status.time_left);
    CHECK(*status.time_left <= 20s);
    CHECK(*status.time_left > 5s);
    q.masters[0].set_key("redlock:{r}", "somebody's", 10s);
    q.masters[1].erase_key("redlock:{r}");
    status = std::move(q.query("r").value());
    CHECK(status.state == lock_state::undecided);
    CHECK(status.masters[0].vote == vote::held);
    CHECK(status.masters[1].vote == vote::absent);
    CHECK(q.wait(q.begin_query("")).error() == errc::invalid_argument);
}

TEST_CASE("a query of masters that do not answer is undecided") {
    quorum q(3, [](config& c) { c.master_timeout = 100ms; });
    q.start();
    q.masters[0].accept_but_say_nothing(true);
    q.masters[1].when("GET", fake_action::close_before_reply(), 1);
    query_outcome& asked = q.query("r");
    CHECK(!asked.error());
    CHECK(asked.value().state == lock_state::undecided);
    CHECK(asked.value().masters[0].vote == vote::timed_out);
    CHECK(asked.value().masters[1].vote == vote::unreachable);
    CHECK(asked.value().masters[2].vote == vote::absent);
}

TEST_CASE("a lock that is lost can be released, and the result tells what was found") {
    quorum q;
    q.start();
    lock held = q.acquired("r", once(200ms));
    q.wait(q.begin_wait_lost(held));
    release_outcome& released = q.release(held);
    CHECK(!released.error());
    // The removal at the loss may have come before or after the key's own end, at each master.
    CHECK(released.value() != release_result::stolen);
    CHECK(q.release(held).value() == released.value());
}

TEST_CASE("a release after the loss shows the votes on the removal, not those on the acquire") {
    quorum q;
    q.start();
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
