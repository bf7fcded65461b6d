// Elections on real masters: one leads, the next one follows.
#include "quorum_fixture.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace redlock::test {
namespace {

struct campaign_state {
    bool done = false;
    error_code error;
    lock term;
    asio::cancellation_signal cancel;
};

struct sighting {
    bool done = false;
    error_code error;
    leader_status status;
    asio::cancellation_signal cancel;
};

struct election_site : quorum_fixture {
    explicit election_site(election_options options = {}, protocol how = protocol::guarded)
        : quorum_fixture(3, [how](config& settings) { settings.protocol = how; }),
          rival(io, changed([how](config& settings) { settings.protocol = how; })),
          mine(me.manager(), "main", options),
          theirs(rival.manager(), "main", options) {
        rival.until_admitted(3);
    }

    std::shared_ptr<campaign_state> run(election& of) {
        auto begun = std::make_shared<campaign_state>();
        of.async_campaign(asio::bind_cancellation_slot(
            begun->cancel.slot(), [begun](error_code error, lock term) {
                begun->done = true;
                begun->error = error;
                begun->term = std::move(term);
            }));
        return begun;
    }

    std::shared_ptr<sighting> wait_change(election& of, std::string seen) {
        auto begun = std::make_shared<sighting>();
        of.async_wait_change(
            std::move(seen),
            asio::bind_cancellation_slot(
                begun->cancel.slot(), [begun](error_code error, leader_status status) {
                    begun->done = true;
                    begun->error = error;
                    begun->status = std::move(status);
                }));
        return begun;
    }

    leader_status observe(election& of) {
        std::optional<leader_status> seen;
        of.async_observe([&](error_code error, leader_status status) {
            CHECK(!error);
            seen = std::move(status);
        });
        run_until(io, [&] { return seen.has_value(); });
        return *seen;
    }

    void finish(const std::shared_ptr<campaign_state>& begun) {
        run_until(io, [&] { return begun->done; });
        INFO(begun->error.message());
        REQUIRE(!begun->error);
    }

    void resign(lock& term) {
        std::optional<release_result> result;
        term.async_release([&](error_code, release_result how) { result = how; });
        CHECK(!term.held());
        run_until(io, [&] { return result.has_value(); });
        CHECK(*result == release_result::released);
    }

    client rival;
    election mine;
    election theirs;
};

election_options short_terms() {
    election_options options;
    options.ttl = 1s;
    options.stop_margin = 200ms;
    return options;
}

} // namespace

TEST_CASE("of two candidates one leads, and the other follows when it resigns") {
    election_site here;
    const auto first = here.run(here.mine);
    const auto second = here.run(here.theirs);
    run_until(here.io, [&] { return first->done || second->done; });
    const bool mine_first = first->done;
    campaign_state& leader = mine_first ? *first : *second;
    campaign_state& next = mine_first ? *second : *first;
    REQUIRE(leader.term.held());
    here.pass(300ms);
    CHECK(!next.done);
    const auto token = leader.term.fencing_token();
    const std::string id = leader.term.owner_digest();
    const leader_status seen = here.observe(here.theirs);
    CHECK(seen.state == lock_state::held);
    CHECK(seen.leader == id);
    CHECK(seen.time_left.value() > 1s);
    here.resign(leader.term);
    here.finish(mine_first ? second : first);
    CHECK(next.term.held());
    CHECK(next.term.fencing_token() > token);
    CHECK(next.term.owner_digest() != id);
}

TEST_CASE("a campaign that is cancelled leaves nothing on the masters") {
    election_site here;
    const auto first = here.run(here.mine);
    here.finish(first);
    const auto second = here.run(here.theirs);
    run_until(here.io, [&] { return here.rival.count().attempts > 0; });
    second->cancel.emit(asio::cancellation_type::terminal);
    run_until(here.io, [&] { return second->done; });
    CHECK(second->error == asio::error::operation_aborted);
    CHECK(!second->term.valid());
    here.resign(first->term);
    CHECK(here.eventually([&] { return here.masters.total_keys("redlock:{main}") == 0; }));
}

TEST_CASE("a limited campaign tells that somebody leads") {
    election_options options;
    options.wait = wait_for::none();
    election_site here(options);
    const auto first = here.run(here.mine);
    here.finish(first);
    const auto second = here.run(here.theirs);
    run_until(here.io, [&] { return second->done; });
    CHECK(second->error == errc::contended);
}

TEST_CASE("with the plain protocol a leader has no fencing token") {
    election_site here({}, protocol::plain);
    const auto first = here.run(here.mine);
    here.finish(first);
    CHECK_FALSE(first->term.has_fencing_token());
    CHECK(here.observe(here.mine).leader == first->term.owner_digest());
}

TEST_CASE("an observer is notified of a resignation, of the next leader, and of a crash") {
    election_options options = short_terms();
    options.poll = std::chrono::minutes(10); // the news comes from the masters
    options.ttl = 3s;
    election_site here(options);
    CHECK(here.observe(here.theirs).state == lock_state::free);
    const auto elected = here.wait_change(here.theirs, "");
    here.pass(100ms);
    CHECK(!elected->done); // nobody leads yet
    elected->cancel.emit(asio::cancellation_type::total);
    run_until(here.io, [&] { return elected->done; });
    CHECK(elected->error == asio::error::operation_aborted);

    const auto first = here.run(here.mine);
    here.finish(first);
    const auto seen = here.wait_change(here.theirs, "");
    run_until(here.io, [&] { return seen->done; });
    CHECK(seen->status.leader == first->term.owner_digest());

    const auto over = here.wait_change(here.theirs, seen->status.leader);
    run_until(here.io, [&] { return here.rival.count().notification_connections == 3; });
    here.pass(50ms);
    CHECK(!over->done);
    here.resign(first->term);
    run_until(here.io, [&] { return over->done; });
    CHECK(over->status.state == lock_state::free);

    const auto second = here.run(here.mine);
    here.finish(second);
    const auto crashed = here.wait_change(here.theirs, second->term.owner_digest());
    second->term.abandon();
    run_until(here.io, [&] { return crashed->done; });
    CHECK(crashed->status.leader.empty());
    CHECK(here.eventually([&] { return here.rival.count().subscriptions == 0; }));
}

TEST_CASE("an observer that nobody tells asks again") {
    election_options options;
    options.poll = 20ms;
    election_site here(options);
    const auto seen = here.wait_change(here.theirs, "");
    here.pass(50ms);
    const auto first = here.run(here.mine); // of which nothing is published
    here.finish(first);
    run_until(here.io, [&] { return seen->done; });
    CHECK(seen->status.leader == first->term.owner_digest());
}

TEST_CASE("an observation ends when its manager is closed") {
    election_site here;
    const auto seen = here.wait_change(here.theirs, "");
    here.pass(20ms);
    here.rival.close();
    run_until(here.io, [&] { return seen->done; });
    CHECK(seen->error == errc::closed);
}

TEST_CASE("a leader that has led to the end has resigned") {
    election_site here;
    std::optional<std::uint64_t> token;
    bool done = false;
    std::exception_ptr error;
    const locked_work work = [&](lock& term) -> asio::awaitable<void> {
        token = term.fencing_token();
        co_return;
    };
    here.mine.async_lead(work, [&](std::exception_ptr thrown) {
        error = std::move(thrown);
        done = true;
    });
    run_until(here.io, [&] { return done; });
    CHECK(!error);
    CHECK(token.has_value());
    CHECK(here.observe(here.theirs).state == lock_state::free);
}

} // namespace redlock::test
