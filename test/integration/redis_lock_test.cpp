// A lock with the functions of redis-py's, and its two ways of having none.
#include "blocking_site.hpp"
#include "guarded_quorum.hpp"

#include <redlock/redis_lock.hpp>

#include <future>

// In a namespace of its own: short names, in what may be compiled as one with other files.
namespace redlock::test::redis_lock_use {

namespace {

using blocking_use::error_of;

struct two_clients : blocking_use::site {
    two_clients() : site(3) {}

    void remove_everywhere() {
        for (const master_process& master : masters) {
            master.command({"DEL", lock_key("r")});
        }
    }

    std::unique_ptr<blocking::manager> first = client();
    std::unique_ptr<blocking::manager> second = client();
    blocking::manager& mine = *first;
    blocking::manager& theirs = *second;
};

const std::string chosen(40, 'c');

} // namespace

TEST_CASE("acquire, locked, owned, release: as redis-py has them") {
    two_clients site;
    blocking::redis_lock one(site.mine, "r", once());
    blocking::redis_lock other(site.theirs, "r", once());
    CHECK(!one.locked());
    CHECK(!one.owned());
    CHECK(one.acquire());
    CHECK(one.locked());
    CHECK(one.owned());
    CHECK(other.locked());
    CHECK(!other.owned());
    CHECK(!other.acquire());
    CHECK(!other.acquire(30ms));
    CHECK(count_votes(other.last_attempt(), vote::held) >= 2);
    CHECK(one.release() == release_result::released);
    CHECK(other.acquire(wait_for::forever()));
    CHECK(other.release() == release_result::released);
    CHECK(site.masters.total_keys("*{r}") == 0);
}

TEST_CASE("not locked and no longer owned are two errors") {
    two_clients site;
    blocking::redis_lock one(site.mine, "r", once_unrenewed(20s));
    CHECK(error_of([&] { one.extend(1s); }) == errc::not_locked);
    CHECK(error_of([&] { one.reacquire(); }) == errc::not_locked);
    CHECK(error_of([&] { one.release(); }) == errc::not_locked);
    CHECK(error_of([&] { static_cast<void>(one.hand_off()); }) == errc::not_locked);
    REQUIRE(one.acquire());
    CHECK(error_of([&] { static_cast<void>(one.acquire()); }) == errc::would_deadlock);
    site.remove_everywhere(); // as if it had expired
    blocking::redis_lock other(site.theirs, "r", once());
    REQUIRE(other.acquire());
    CHECK(!one.owned());
    CHECK(error_of([&] { one.extend(1s); }) == errc::lost); // expired, then extended
    CHECK(!one.held());
    CHECK(one.lost().stop_requested());
    CHECK(error_of([&] { one.reacquire(); }) == errc::lost);
    CHECK(error_of([&] { static_cast<void>(one.hand_off()); }) == errc::lost);
    CHECK(!one.acquire()); // the lost one is given up, and the other has it
    CHECK(error_of([&] { one.release(); }) == errc::not_locked);
    CHECK(other.held());
    CHECK(other.owned());
    CHECK(other.release() == release_result::released);
}

TEST_CASE("an extension adds to what is left, or replaces it, and never shortens") {
    two_clients site;
    blocking::redis_lock one(site.mine, "r", once_unrenewed(5s));
    REQUIRE(one.acquire());
    CHECK(one.extend(5s) == extend_result::extended);
    CHECK(one.get().remaining() > 8s);
    CHECK(one.get().remaining() < 10s);
    CHECK(one.extend_to(20s) == extend_result::extended);
    CHECK(one.get().remaining() > 18s);
    CHECK(one.reacquire() == extend_result::extended);
    CHECK(one.get().remaining() > 18s);
    CHECK(error_of([&] { one.extend(1h); }) == errc::invalid_argument);
    CHECK(error_of([&] { one.extend(milliseconds::max()); }) == errc::invalid_argument);
    CHECK(one.held());
}

TEST_CASE("an extension that max_hold does not allow in full says so") {
    two_clients site;
    acquire_options options = once_unrenewed(10s);
    options.max_hold = 20s;
    blocking::redis_lock one(site.mine, "r", options);
    REQUIRE(one.acquire());
    CHECK(one.extend(15s) == extend_result::capped);
    CHECK(one.extend_to(30s) == extend_result::capped);
    CHECK(one.get().remaining() < 20s);
}

TEST_CASE("a caller that only sees a lock can wait for its loss") {
    two_clients site;
    blocking::redis_lock one(site.mine, "r", once());
    REQUIRE(one.acquire());
    const redlock::lock& seen = one.get();
    CHECK(seen.get_executor() == site.mine.async().get_executor());
    std::promise<loss_reason> told;
    seen.async_wait_lost([&](error_code error, loss_reason reason) {
        told.set_value(error ? loss_reason::none : reason);
    });
    site.remove_everywhere();
    CHECK(error_of([&] { one.reacquire(); }) == errc::lost);
    CHECK(told.get_future().get() == loss_reason::expired);
    CHECK_THROWS_AS(redlock::lock().get_executor(), std::logic_error);
}

TEST_CASE("a lock with the default ttl is reacquired for that") {
    two_clients site;
    acquire_options options;
    options.renew = renewal::off;
    blocking::redis_lock one(site.mine, "r", options);
    REQUIRE(one.acquire());
    const auto before = one.get().deadline();
    one.reacquire();
    CHECK(one.get().deadline() > before);
}

TEST_CASE("a lock is handed on by its token, and the one who gave it has none") {
    two_clients site;
    blocking::redis_lock one(site.mine, "r", once());
    blocking::redis_lock other(site.theirs, "r", once());
    REQUIRE(one.acquire());
    const std::string token = one.hand_off();
    CHECK(!one.held());
    CHECK(error_of([&] { one.release(); }) == errc::not_locked);
    CHECK(one.locked());
    other.attach(token);
    CHECK(other.held());
    CHECK(other.owned());
    CHECK(other.release() == release_result::released);
    CHECK(error_of([&] { other.attach(token); }) == errc::lost);
}

TEST_CASE(
    "a token of the caller's choice is what the masters keep, for one attempt, whatever the wait") {
    two_clients site;
    blocking::redis_lock one(site.mine, "r", once());
    CHECK(error_of([&] { static_cast<void>(one.acquire_as("short")); }) == errc::invalid_argument);
    REQUIRE(one.acquire_as(chosen));
    CHECK(one.get().token() == chosen);
    CHECK(site.masters[0].command({"GET", lock_key("r")}) == chosen);
    blocking::redis_lock other(site.theirs, "r", once());
    CHECK(!other.acquire_as(std::string(40, 'd')));
    const error_code refused = error_of([&] {
        static_cast<void>(site.mine.call([&](auto token) {
            return site.mine.async().async_acquire_as(
                "r", std::string(40, 'e'), waiting(1h), std::move(token));
        }));
    });
    CHECK(refused == errc::contended);
    CHECK(one.release() == release_result::released);
}

TEST_CASE("too few masters to know the owner is an error, not an answer") {
    two_clients site;
    blocking::redis_lock one(site.mine, "r", once());
    site.masters[0].kill();
    site.masters[1].kill();
    CHECK(error_of([&] { one.locked(); }) == errc::no_quorum);
    CHECK(error_of([&] { static_cast<void>(one.acquire()); }) == errc::no_quorum);
}

} // namespace redlock::test::redis_lock_use
