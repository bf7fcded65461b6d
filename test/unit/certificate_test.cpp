// Native acquires of the guarded protocol: SETs, and the certificate that follows them.

#include "waiters.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace certificate_test { namespace {

using namespace unit;
namespace core = redlock::core;

const std::string record_key = "p::epoch";

core::settings quarantining() {
    core::settings rules = guarded_settings_for(3);
    rules.quarantine = true;
    return rules;
}

struct certified_quorum : virtual_quorum {
    explicit certified_quorum(core::settings rules = quarantining())
        : virtual_quorum(std::move(rules)) {
        put_records();
        start();
        each([](virtual_master& one) { one.seen.clear(); });
    }

    void at_certificate(std::size_t master, std::function<mishap()> what) {
        masters[master].when = [what, once = false](const arguments& words) mutable {
            const bool is = words[0] == "GET" && words[1] == record_key;
            return is && !std::exchange(once, true) ? what() : mishap::none;
        };
    }
    redlock::master_state state(std::size_t master) {
        return engine.examine(now()).masters[master].state;
    }
};

TEST_CASE("a lock whose token is passed on is not handed off by one that was set by a SET") {
    core::settings rules = quarantining();
    rules.local_handoff_time = 10s;
    certified_quorum q(rules);
    const bool transferable = GENERATE(false, true);
    acquire_options first = once();
    first.transferable = transferable;
    const core::handle<core::claim> held = q.take(first).lease;
    acquire_options next = waiting(20s);
    next.transferable = true;
    const std::uint64_t waits = q.acquire(next, 50ms);
    q.engine.release(held, q.now());
    CHECK(q.awaited(waits).won);
    CHECK(q.engine.count().local_handoffs == (transferable ? 1 : 0));
}

TEST_CASE("a refused certificate is an error of the server, and no quarantine") {
    certified_quorum q;
    q.masters[0].forbidden.insert("GET");
    const answer got = q.take(once(), 10ms);
    const redlock::master_vote vote = q.engine.describe(got.ballots, q.now())[0];
    CHECK(vote.vote == redlock::vote::error);
    CHECK(vote.text.starts_with("NOPERM"));
    CHECK(q.state(0) != redlock::master_state::quarantined);
    q.release(got, 10ms);
    CHECK(!q.has_key()); // it is removed all the same
}

TEST_CASE("a loss between a SET and its certificate is noticed") {
    certified_quorum q;
    q.at_certificate(0, [&] {
        q.masters[0].forget();
        return mishap::none;
    });
    q.at_certificate(1, [&] { // and somebody else has recorded it since
        q.masters[1].forget();
        q.masters[1].put(record_key, "4 " + q.masters[1].run_id + " - 0 0 ff");
        return mishap::none;
    });
    const answer got = q.acquire_now(once());
    CHECK(got.why == errc::no_quorum);
    CHECK(got.votes[0] == vote::quarantined);
    CHECK(got.votes[1] == vote::quarantined);
}

TEST_CASE("a SET whose certificate never came is unknown, and is removed when the master is back") {
    certified_quorum q;
    const mishap when = GENERATE(mishap::break_before, mishap::break_after);
    q.at_certificate(0, [&] { return when; });
    const answer got = q.take(once(), 1ms);
    CHECK(q.engine.describe(got.ballots, q.now())[0].vote == vote::unreachable);
    CHECK(q.masters[0].value_of(q.key(), q.now()) == got.token);
    q.release(got, 1s);
    CHECK(!q.has_key());
}

TEST_CASE("an extension counts a key without a certificate only where nothing can be forgotten") {
    certified_quorum q;
    const bool lost = GENERATE(false, true); // the reply with the certificate
    const bool counts = GENERATE(true, false);
    if (lost) {
        q.at_certificate(0, [&] { return mishap::break_after; });
    } else if (!counts) {
        q.masters[0].forget();
    }
    const answer got = q.take(once(), 1s);
    if (lost != counts) {
        q.masters[0].drop(record_key); // as after a restart that the keys survived
    }
    q.paths[1].hung = true;
    q.extend(got, 10s, 150ms);
    CHECK(q.extensions_of(got) == errors{(counts ? std::nullopt : std::optional(errc::no_quorum))});
}

TEST_CASE("a key is not healed in a quarantine that a step of the master's clock seems to end") {
    certified_quorum q;
    const bool stepped = GENERATE(true, false);
    const answer got = q.take(once());
    if (stepped) {
        q.masters[2].forget();
        q.disconnect(2, 1s);
        REQUIRE(q.state(2) == redlock::master_state::quarantined);
        q.masters[2].ahead = 10min;
    } else {
        q.masters[2].drop(q.key());
    }
    q.extend(got, 10s); // too late by the clock that was known; its reply has that of now
    q.run_for(5ms);
    q.extend(got, 10s, 20ms);
    REQUIRE(q.extensions_of(got).size() == 2);
    CHECK(!q.extensions_of(got)[1]);
    CHECK(q.masters[2].value_of(q.key(), q.now()).has_value() == !stepped);
}

TEST_CASE("under load the clock of a master is asked for now and then, if no reply shows it") {
    const bool shown = GENERATE(false, true);
    core::settings rules = quarantining();
    rules.health_check_interval = 1s;
    certified_quorum q(rules);
    for (int i = 0; i < 1'000; ++i) {
        const bool second = i % 2 != 0; // before the reply to the first
        q.acquire(
            second && shown ? fenced() : once(), "r" + std::to_string(i), second ? 9ms : 500us);
    }
    CHECK(q.masters[0].count("TIME") >= (shown ? 0 : 4));
    CHECK(q.masters[0].count("TIME") <= (shown ? 0 : 5));
}

}} // namespace certificate_test
