// A lock that a blocking manager acquires; and what redis-py's lock does, as
// docs/howto/migrating.md shows it.
#include "blocking_site.hpp"
#include "guarded_quorum.hpp"

#include <future>

// In a namespace of its own: short names, in what may be compiled as one with other files.
namespace redlock::test::blocking_lock_use {

namespace {

using blocking_use::error_of;

struct two_clients : blocking_use::site {
    explicit two_clients(const std::function<void(config&)>& change = [](config&) {})
        : site(3, change) {}

    void remove_everywhere() {
        for (const master_process& master : masters) {
            master.command({"DEL", lock_key("r")});
        }
    }
    lock_status query() {
        return mine.call(
            [&](auto token) { return mine.async().async_query("r", std::move(token)); });
    }

    std::unique_ptr<blocking::manager> first = client();
    std::unique_ptr<blocking::manager> second = client();
    blocking::manager& mine = *first;
    blocking::manager& theirs = *second;
};

const std::string chosen(40, 'c');

} // namespace

TEST_CASE("a lock is acquired, seen by all, refused to others with the votes, and released") {
    two_clients site;
    CHECK(site.query().state == lock_state::free);
    blocking::lock one = site.mine.acquire("r", once());
    CHECK(one.held());
    CHECK(site.query().state == lock_state::held);
    CHECK(site.query().owner_digest == one.async().owner_digest());
    for (const wait_for wait : {wait_for::none(), wait_for(30ms)}) { // blocking=False, a timeout
        acquire_options asked = once();
        asked.wait = wait;
        try {
            const blocking::lock other = site.theirs.acquire("r", asked);
            FAIL("two holders");
        } catch (const error_with_diagnostics& error) {
            CHECK(error.code() == condition::not_acquired);
            CHECK(count_votes(error.get_diagnostics(), vote::held) >= 2);
        }
    }
    CHECK(one.release() == release_result::released);
    CHECK(one.release() == release_result::released);
    CHECK(!one.lost().stop_requested());
    acquire_options patient = once();
    patient.wait = wait_for::forever();
    blocking::lock other = site.theirs.acquire("r", patient);
    CHECK(other.release() == release_result::released);
    CHECK(site.masters.total_keys("*{r}") == 0);
}

TEST_CASE("the end of its scope, and an assignment, release a lock before they return") {
    two_clients site;
    {
        const blocking::lock one = site.mine.acquire("r", once());
        CHECK(site.masters.total_keys("*{r}") == 3);
    }
    CHECK(site.masters.total_keys("*{r}") == 0);
    blocking::lock held = site.mine.acquire("r", once());
    held = site.mine.acquire("s", once());
    CHECK(site.masters.total_keys("*{r}") == 0);
    blocking::lock moved = std::move(held);
    CHECK(moved.held());
    CHECK(site.masters.total_keys("*{s}") == 3);
    // NOLINTNEXTLINE(bugprone-use-after-move,hicpp-invalid-access-moved): what it is about
    CHECK(!held.held());
    CHECK(!held.lost().stop_possible());
    CHECK_THROWS_AS(held.release(), std::logic_error);
    CHECK_THROWS_AS(blocking::lock().secret(), std::logic_error);
}

TEST_CASE("slots and several resources are acquired in the same way") {
    two_clients site(guarded);
    const blocking::lock two = site.mine.acquire(slots("p", 3, 2), once());
    CHECK(two.async().slots().size() == 2);
    CHECK(
        error_of([&] { site.theirs.acquire(slots("p", 3, 2), once()).release(); })
        == errc::contended);
    const blocking::lock both = site.mine.acquire({"a", "b"}, once());
    CHECK(error_of([&] { site.theirs.acquire("b", once()).release(); }) == errc::contended);
    acquire_options fenced = once();
    fenced.fencing = true;
    CHECK(site.mine.acquire("f", fenced).fencing_token() > 0);
    CHECK_THROWS_AS(two.fencing_token(), std::logic_error);
}

TEST_CASE("a lost lock tells the stop token, and extends and releases nothing") {
    two_clients site;
    blocking::lock one = site.mine.acquire("r", once_unrenewed(20s));
    const std::stop_token lost = one.lost();
    site.remove_everywhere(); // as if it had expired
    blocking::lock other = site.theirs.acquire("r", once());
    CHECK(error_of([&] { one.extend(1s); }) == condition::lost);
    CHECK(!one.held());
    CHECK(blocking_use::soon([&] { return lost.stop_requested(); }));
    CHECK(one.release() == release_result::stolen);
    CHECK(other.held());
    CHECK(other.release() == release_result::released);
}

TEST_CASE("an extension adds to what is left, or replaces it, and never shortens") {
    two_clients site;
    blocking::lock one = site.mine.acquire("r", once_unrenewed(5s));
    const auto left = [&] { return std::chrono::ceil<milliseconds>(one.async().remaining()); };
    CHECK(one.extend(left() + 5s) == extend_result::extended);
    CHECK(left() > 8s);
    CHECK(left() < 10s);
    CHECK(one.extend(20s) == extend_result::extended);
    CHECK(left() > 18s);
    CHECK(one.extend(5s) == extend_result::extended);
    CHECK(left() > 18s);
    CHECK(error_of([&] { one.extend(1h); }) == errc::invalid_argument);
    CHECK(error_of([&] { one.extend(milliseconds::max()); }) == errc::invalid_argument);
    CHECK(one.held());

    acquire_options options = once_unrenewed(10s);
    options.max_hold = 20s;
    blocking::lock limited = site.mine.acquire("s", options);
    CHECK(limited.extend(30s) == extend_result::capped);
    CHECK(limited.async().remaining() < 20s);

    acquire_options by_default;
    by_default.renew = renewal::off;
    blocking::lock again = site.mine.acquire("t", by_default);
    const auto before = again.async().deadline();
    CHECK(again.extend() == extend_result::extended);
    CHECK(again.async().deadline() > before);
}

TEST_CASE("a lock is passed on by its secret, which the caller may have chosen") {
    two_clients site;
    const auto as = [&](std::string secret) {
        return site.mine.call([&](auto token) {
            return site.mine.async().async_acquire_as("r", secret, waiting(1h), std::move(token));
        });
    };
    CHECK(error_of([&] { as("short").abandon(); }) == errc::invalid_argument);
    redlock::lock one = as(chosen);
    CHECK(one.secret() == chosen);
    CHECK(site.masters[0].command({"GET", lock_key("r")}) == chosen);
    CHECK(error_of([&] { as(std::string(40, 'd')).abandon(); }) == errc::contended);
    one.abandon();
    redlock::lock next = site.theirs.call([&](auto token) {
        return site.theirs.async().async_attach("r", chosen, once(), std::move(token));
    });
    CHECK(next.held());
    CHECK(site.query().owner_digest == next.owner_digest());
    {
        blocking::lock given = site.mine.acquire("s", once());
        given.async().abandon();
        CHECK_THROWS_AS(given.release(), std::logic_error);
    }
    CHECK(site.masters.total_keys("*{s}") == 3);
}

TEST_CASE("too few masters are an error, not an answer; a stop and a closed manager end a call") {
    two_clients site;
    blocking::lock held = site.mine.acquire("s", once());
    std::stop_source stopped;
    stopped.request_stop();
    CHECK(
        error_of([&] { site.mine.acquire("r", once(), stopped.get_token()).release(); })
        == asio::error::operation_aborted);
    site.first.reset();
    CHECK(!held.held());
    CHECK(held.lost().stop_requested());
    CHECK(error_of([&] { held.release(); }) == errc::closed);
    site.masters[0].kill();
    site.masters[1].kill();
    CHECK(error_of([&] { site.theirs.acquire("r", once()).release(); }) == condition::unavailable);
}

} // namespace redlock::test::blocking_lock_use
