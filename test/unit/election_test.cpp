// Elections in virtual time: what a leader that stands still does, and how long nobody leads.

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

lock lead(virtual_quorum& quorum, election& of) {
    std::optional<lock> term;
    of.async_campaign([&](error_code error, lock won) {
        REQUIRE(!error);
        term = std::move(won);
    });
    REQUIRE(quorum.advance_until([&] { return term.has_value(); }));
    return std::move(*term);
}

TEST_CASE("what was made from a manager works after the manager was moved") {
    virtual_quorum quorum;
    lock_manager& before = quorum.manager();
    election candidate(before, "main");
    acquire_options reads;
    reads.mode = lock_mode::shared;
    auto reader = before.async_acquire("readers", reads);
    bool worked = false;
    bool over = false;
    auto scope = async_with_lock(before, "scope", {}, [&](lock&) -> boost::asio::awaitable<void> {
        worked = true;
        co_return;
    });
    auto several = before.async_acquire({"a", "b"});
    lock_manager after = std::move(before);

    CHECK(lead(quorum, candidate).held());
    std::vector<lock> taken;
    const auto keep = [&](const std::exception_ptr& failed, lock won) {
        CHECK(!failed);
        taken.push_back(std::move(won));
    };
    std::move(reader)(keep);
    std::move(several)(keep);
    std::move(scope)([&](const std::exception_ptr& thrown) {
        CHECK(!thrown);
        over = true;
    });
    CHECK(quorum.advance_until([&] { return taken.size() == 2 && over; }));
    CHECK(worked);
    before = std::move(after);
}

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

TEST_CASE("election: a leader that stood still past its lease knows with its first look") {
    virtual_quorum quorum;
    election mine(quorum.manager(), "main");
    election theirs(quorum.add_manager(), "main");
    const lock first = lead(quorum, mine);
    const std::uint64_t token = first.fencing_token();
    quorum.freeze(8s);
    CHECK(first.held());
    quorum.freeze(3s);
    CHECK(!first.held());
    const lock second = lead(quorum, theirs);
    CHECK(second.fencing_token() > token);
}

TEST_CASE("election: after a crash the next leads within the ttl and a bounded delay") {
    config settings;
    virtual_quorum quorum(5, settings);
    election mine(quorum.manager(), "main");
    election theirs(quorum.add_manager(), "main");
    for (const auto waited : {0s, 3s, 7s, 60s}) {
        lock first = lead(quorum, mine);
        std::optional<lock> second;
        theirs.async_campaign([&](error_code, lock won) { second = std::move(won); });
        quorum.advance(waited);
        const time_point crash = quorum.now();
        first.abandon();
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
    REQUIRE(*over);
    try {
        std::rethrow_exception(*over);
    } catch (const boost::system::system_error& thrown) {
        CHECK(thrown.code() == errc::lost);
    }
    CHECK(kept.held());
    quorum.advance(1min);
    CHECK(kept.held());
}

}} // namespace election_test
