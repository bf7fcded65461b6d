// Elections in virtual time: what a leader that stands still does, and how long nobody leads.

#include "support/error_of.hpp"
#include "support/test.hpp"

#include <redlock/election.hpp>
#include <redlock/fenced.hpp>
#include <redlock/testing.hpp>
#include <redlock/with_lock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace election_test { namespace {

using namespace redlock;
using testing::virtual_quorum;

TEST_CASE("election: work is cancelled before the lease ends, then the next one leads") {
    const bool stands_still = GENERATE(false, true); // else it loses its masters
    virtual_quorum quorum;
    election_options options;
    options.ttl = 10s;
    options.stop_margin = 2s;
    election mine(quorum.manager(), "main", options);
    election theirs(quorum.add_manager(), "main", options);
    std::vector<std::string> story;
    const lock* leader = nullptr;
    time_point deadline;
    const locked_work work = [&](lock& term) -> boost::asio::awaitable<void> {
        story.emplace_back("leads");
        leader = &term;
        try {
            co_await quorum.async_sleep(1h, boost::asio::use_awaitable);
        } catch (const boost::system::system_error&) {
            deadline = term.deadline();
            story.emplace_back(quorum.now() < deadline ? "stops in time" : "stops late");
            throw;
        }
    };
    mine.async_lead(work, [&](const std::exception_ptr&) { story.emplace_back("over"); });
    quorum.advance(1min);
    std::optional<lock> next;
    theirs.async_campaign([&](error_code, lock won) {
        story.emplace_back("next");
        next = std::move(won);
    });
    quorum.advance(1min);
    if (stands_still) {
        quorum.freeze(leader->deadline() - 1s - quorum.now());
        CHECK(!leader->held());
    } else {
        quorum.master(0).hang();
        quorum.master(1).hang();
        REQUIRE(quorum.advance_until([&] { return story.back() == "over"; }));
        quorum.master(0).resume();
    }
    REQUIRE(quorum.advance_until([&] { return story.back() == "next"; }));
    CHECK(story == std::vector<std::string>{"leads", "stops in time", "over", "next"});
    CHECK(next->held());
}

TEST_CASE("election: a leader for always leads again after a loss, until it is cancelled") {
    virtual_quorum quorum;
    election mine(quorum.manager(), "main");
    unsigned terms = 0;
    std::optional<std::exception_ptr> end;
    boost::asio::cancellation_signal stop;
    mine.async_lead_always(
        [&](lock&) -> boost::asio::awaitable<void> {
            ++terms;
            co_await quorum.async_sleep(1h, boost::asio::use_awaitable);
        },
        boost::asio::bind_cancellation_slot(
            stop.slot(), [&](std::exception_ptr thrown) { end = thrown; }));
    for (unsigned expected = 1; expected <= 3; ++expected) {
        REQUIRE(quorum.advance_until([&] { return terms == expected; }));
        quorum.master(0).hang();
        quorum.master(1).hang();
        quorum.advance(20s);
        CHECK(terms == expected);
        quorum.master(0).resume();
        quorum.master(1).resume();
    }
    REQUIRE(quorum.advance_until([&] { return terms == 4; }));
    CHECK(!end);
    stop.emit(boost::asio::cancellation_type::terminal);
    REQUIRE(quorum.advance_until([&] { return end.has_value(); }));
    CHECK_THROWS_AS(std::rethrow_exception(*end), boost::system::system_error);
    quorum.advance(1s);
    CHECK(quorum.keys_of("main") == 0);
}

TEST_CASE("election: a leader for always ends when its work resigns, or meets a stale token") {
    virtual_quorum quorum;
    election mine(quorum.manager(), "main");
    const int how = GENERATE(0, 1, 2, 3, 4);
    unsigned terms = 0;
    std::optional<std::exception_ptr> end;
    mine.async_lead_always(
        [&](lock& term) -> boost::asio::awaitable<void> {
            ++terms;
            if (how == 0) {
                co_await term.async_release(boost::asio::use_awaitable);
            } else if (how == 1) {
                const lock taken = std::move(term);
            } else if (how == 2) {
                throw stale_token_error(1, 2);
            } else if (how == 3) {
                try { // returns after the loss
                    co_await quorum.async_sleep(1h, boost::asio::use_awaitable);
                } catch (const boost::system::system_error&) {
                }
            }
        },
        [&](std::exception_ptr thrown) { end = thrown; });
    if (how == 3) {
        REQUIRE(quorum.advance_until([&] { return terms == 1; }));
        quorum.freeze(1min);
        REQUIRE(quorum.advance_until([&] { return terms == 2; }));
        CHECK(!end);
        return;
    }
    REQUIRE(quorum.advance_until([&] { return end.has_value(); }));
    quorum.advance(10s);
    CHECK(terms == 1);
    CHECK(static_cast<bool>(*end) == (how == 2));
}

TEST_CASE("election: a name or an option that cannot be is refused when it is made") {
    virtual_quorum quorum;
    election_options options;
    options.stop_margin = 1h;
    CHECK_THROWS_AS(election(quorum.manager(), "", {}), std::invalid_argument);
    CHECK_THROWS_AS(election(quorum.manager(), "main", options), std::invalid_argument);
}

TEST_CASE("election: after a crash the next leads within the ttl and a bounded delay") {
    config settings;
    virtual_quorum quorum(5, settings);
    election mine(quorum.manager(), "main");
    election theirs(quorum.add_manager(), "main");
    for (const auto waited : {0s, 3s, 7s, 60s}) {
        std::optional<lock> first;
        std::optional<lock> second;
        mine.async_campaign([&](error_code, lock won) { first = std::move(won); });
        REQUIRE(quorum.advance_until([&] { return first.has_value(); }));
        theirs.async_campaign([&](error_code, lock won) { second = std::move(won); });
        quorum.advance(waited);
        const time_point crash = quorum.now();
        first->abandon();
        REQUIRE(quorum.advance_until([&] { return second.has_value(); }));
        CHECK(quorum.now() - crash <= 10s + settings.retry_delay_max + 5ms);
        second.reset();
        quorum.advance(1s);
    }
}

TEST_CASE("election: work that takes its term away ends the scope as one that was lost") {
    virtual_quorum quorum;
    election mine(quorum.manager(), "main");
    lock kept;
    std::optional<std::exception_ptr> over;
    const locked_work work = [&](lock& term) -> boost::asio::awaitable<void> {
        kept = std::move(term);
        co_return;
    };
    mine.async_lead(work, [&](std::exception_ptr thrown) { over = thrown; });
    quorum.advance(1s);
    REQUIRE(over);
    CHECK(test::error_of(*over) == errc::lost);
    CHECK(kept.held());
    quorum.advance(1min);
    CHECK(kept.held());
}

}} // namespace election_test
