// Several quorums of real masters behind one manager.
#include "client.hpp"
#include "support/master_process.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

using namespace redlock;
using namespace redlock::test;

namespace {

struct outcome {
    bool done = false;
    error_code error;
    asio::cancellation_signal cancel;
};
using outcome_ptr = std::shared_ptr<outcome>;

// Ends an operation that completes with an error code only.
auto into(const outcome_ptr& result) {
    return asio::bind_cancellation_slot(result->cancel.slot(), [result](error_code error) {
        result->error = error;
        result->done = true;
    });
}

// Two quorums of three, and the manager of both.
struct site {
    explicit site(std::vector<std::string> hand_over = {})
        : manager(io.get_executor(), configured(std::move(hand_over))) {
        manager.async_run(into(run));
        const auto ready = std::make_shared<outcome>();
        manager.async_ready(into(ready));
        wait(ready);
        CHECK(!ready->error);
        // Ready is a majority; the tests count on every master.
        run_until(io, [&] { return admitted() == 6; });
    }
    ~site() {
        try {
            close();
        } catch (const std::exception&) { // the test has failed before and says so
        }
    }
    site(const site&) = delete;
    site& operator=(const site&) = delete;

    sharded_config configured(std::vector<std::string> hand_over) const {
        sharded_config out;
        out.quorums = {{"east", config_for(east.urls())}, {"west", config_for(west.urls())}};
        out.hand_over = std::move(hand_over);
        return out;
    }

    std::size_t admitted() const {
        std::size_t sum = 0;
        for (const quorum_health& one : manager.get_health().quorums) {
            sum += one.health.admitted;
        }
        return sum;
    }

    void wait(const outcome_ptr& begun) {
        run_until(io, [&] { return begun->done; });
    }

    void close() {
        const auto closed = std::make_shared<outcome>();
        manager.async_close(into(closed));
        run_until(io, [&] { return closed->done && run->done; });
        CHECK(!closed->error);
    }

    acquisition_ptr begin(std::string resource, acquire_options options = once()) {
        const auto result = std::make_shared<acquisition>();
        manager.async_acquire(
            std::move(resource),
            options,
            result->why,
            asio::bind_cancellation_slot(
                result->cancel.slot(), [result](error_code error, redlock::lock lock) {
                    result->error = error;
                    result->lock = std::move(lock);
                    result->done = true;
                }));
        return result;
    }

    acquisition_ptr acquire(std::string resource, acquire_options options = once()) {
        auto result = begin(std::move(resource), options);
        run_until(io, [&] { return result->done; });
        return result;
    }

    bool keys_vanish() {
        const auto end = std::chrono::steady_clock::now() + 20s;
        while (east.total_keys("*{*}") + west.total_keys("*{*}") > 0) {
            if (std::chrono::steady_clock::now() >= end) {
                return false;
            }
            io.restart();
            io.run_for(10ms);
        }
        return true;
    }

    asio::io_context io;
    quorum_of_masters east{3};
    quorum_of_masters west{3};
    outcome_ptr run = std::make_shared<outcome>();
    sharded_manager manager;
};

// Of the two quorums' names; the unit tests hold the rule.
constexpr const char* eastern = "a";
constexpr const char* western = "jobs/nightly";

error_code code_of(const std::exception_ptr& error) {
    if (!error) {
        return {};
    }
    try {
        std::rethrow_exception(error);
    } catch (const boost::system::system_error& system) {
        return system.code();
    }
}

asio::awaitable<void> note_held(lock& mine, bool& held) {
    held = mine.held();
    co_return;
}

} // namespace

TEST_CASE("a lock is kept by the masters of its home, and by no others") {
    site here;
    REQUIRE(here.manager.quorum_of(eastern) == "east");
    REQUIRE(here.manager.quorum_of(western) == "west");
    const acquisition_ptr first = here.acquire(eastern);
    INFO(first->explained());
    REQUIRE(!first->error);
    CHECK(first->why.votes.size() == 3);
    CHECK(first->why.votes[0].endpoint == to_string(endpoint(here.east.urls()[0])));
    run_until(here.io, [&] { return here.east.total_keys("*{a}") == 3; });
    CHECK(here.west.total_keys("*{*}") == 0);

    const acquisition_ptr second = here.acquire(western);
    REQUIRE(!second->error);
    run_until(here.io, [&] { return here.west.total_keys("*{*}") == 3; });
    CHECK(here.east.total_keys("*{*}") == 3);
    CHECK(here.acquire(western)->error == errc::contended);

    std::optional<lock_status> seen;
    here.manager.async_query(western, [&](error_code error, lock_status status) {
        CHECK(!error);
        seen = std::move(status);
    });
    run_until(here.io, [&] { return seen.has_value(); });
    CHECK(seen->state == lock_state::held);

    const std::vector<quorum_metrics> counts = here.manager.get_metrics();
    CHECK(counts[0].quorum == "east");
    CHECK(counts[0].metrics.acquired == 1);
    CHECK(counts[1].metrics.acquired == 1);
    CHECK(counts[1].metrics.contended == 1);
}

TEST_CASE("an outage of one quorum leaves the resources of the other alone") {
    site here;
    for (master_process& master : here.east) {
        master.kill();
    }
    run_until(here.io, [&] { return !here.manager.get_health().quorums[0].health.ready; });
    const sharded_health now = here.manager.get_health();
    CHECK_FALSE(now.ready);
    CHECK(now.ready_quorums == 1);
    CHECK(to_string(now).starts_with("1 of 2 quorums ready: east: not ready"));

    CHECK(here.acquire(eastern)->error == errc::no_quorum);
    acquisition_ptr other = here.acquire(western);
    INFO(other->explained());
    REQUIRE(!other->error);
    CHECK(other->lock.held());
    CHECK_FALSE(here.run->done);

    for (master_process& master : here.east) {
        master.restart();
    }
    const auto ready = std::make_shared<outcome>();
    here.manager.async_ready(into(ready));
    here.wait(ready);
    CHECK(!ready->error);
    CHECK(!here.acquire(eastern)->error);
}

TEST_CASE("waiting for all quorums ends by cancellation while one is down") {
    site here;
    for (master_process& master : here.west) {
        master.kill();
    }
    run_until(here.io, [&] { return !here.manager.get_health().quorums[1].health.ready; });
    const auto ready = std::make_shared<outcome>();
    here.manager.async_ready(into(ready));
    asio::post(here.io, [&] { ready->cancel.emit(asio::cancellation_type::terminal); });
    here.wait(ready);
    CHECK(ready->error == asio::error::operation_aborted);
    CHECK_FALSE(here.run->done);
}

TEST_CASE("cancelling an acquire leaves nothing on the masters of its home") {
    site here;
    const acquisition_ptr held = here.acquire(western);
    REQUIRE(!held->error);
    acquisition_ptr waits = here.begin(western, waiting(30s));
    run_until(here.io, [&] { return here.manager.get_metrics()[1].metrics.attempts >= 2; });
    waits->cancel.emit(asio::cancellation_type::terminal);
    run_until(here.io, [&] { return waits->done; });
    CHECK(waits->error == asio::error::operation_aborted);
    held->lock = {};
    CHECK(here.keys_vanish());
}

TEST_CASE("closing gives back the locks of all quorums and ends the run") {
    site here;
    const acquisition_ptr first = here.acquire(eastern, once(30s));
    const acquisition_ptr second = here.acquire(western, once(30s));
    REQUIRE(!first->error);
    REQUIRE(!second->error);
    const acquisition_ptr waits = here.begin(western, waiting(30s));
    here.close();
    run_until(here.io, [&] { return waits->done; });
    CHECK(waits->error == errc::closed);
    CHECK_FALSE(first->lock.held());
    CHECK_FALSE(second->lock.held());
    CHECK(here.east.total_keys("*{*}") + here.west.total_keys("*{*}") == 0);
    CHECK(!here.run->error);
    CHECK(here.acquire(eastern)->error == errc::closed);
    here.close(); // again
    const auto again = std::make_shared<outcome>();
    here.manager.async_run(into(again));
    here.wait(again);
    CHECK(again->error == errc::closed);
}

TEST_CASE("cancelling the run closes all quorums") {
    site here;
    const acquisition_ptr first = here.acquire(eastern, once(30s));
    const acquisition_ptr second = here.acquire(western, once(30s));
    REQUIRE(!first->error);
    REQUIRE(!second->error);
    here.run->cancel.emit(asio::cancellation_type::terminal);
    here.wait(here.run);
    CHECK(here.run->error == asio::error::operation_aborted);
    CHECK_FALSE(first->lock.held());
    CHECK_FALSE(second->lock.held());
    CHECK(here.keys_vanish());
}

TEST_CASE("a second run is refused and does not disturb the first") {
    site here;
    const auto second = std::make_shared<outcome>();
    here.manager.async_run(into(second));
    here.wait(second);
    CHECK(second->error == errc::invalid_argument);
    CHECK_FALSE(here.run->done);
    CHECK(!here.acquire(eastern)->error);
}

TEST_CASE("a lock of several quorums is the scope of a coroutine, and moving resources are not") {
    site here({"east", "west", "north"});
    REQUIRE(here.manager.moving("b"));
    struct case_of {
        const char* resource;
        error_code error;
        bool held;
    };
    for (const auto& [resource, error, held] :
         {case_of{eastern, {}, true},
          case_of{western, {}, true},
          case_of{"b", errc::moving, false}}) {
        bool was_held = false;
        std::optional<std::exception_ptr> ended;
        async_with_lock(
            here.manager,
            resource,
            once(),
            [&was_held](lock& mine) { return note_held(mine, was_held); },
            [&](std::exception_ptr thrown) { ended = std::move(thrown); });
        run_until(here.io, [&] { return ended.has_value(); });
        CHECK(code_of(*ended) == error);
        CHECK(was_held == held);
    }
    CHECK(here.keys_vanish());
}
