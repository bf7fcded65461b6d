// What single handles promise beyond the table of handles_test.cpp: the standard guards, one lock
// in several threads of a process, readers and writers, slots.
#include "two_processes.hpp"

#include <redlock/blocking_shared.hpp>

#include <boost/asio/post.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <mutex>
#include <set>
#include <shared_mutex>
#include <thread>

namespace redlock::test::in_memory { namespace {

using Catch::Matchers::ContainsSubstring;

static_assert(noexcept(std::declval<blocking::mutex&>().unlock()));
static_assert(noexcept(std::declval<blocking::shared_mutex&>().unlock()));
static_assert(noexcept(std::declval<blocking::shared_mutex&>().unlock_shared()));
static_assert(!std::is_move_constructible_v<blocking::shared_mutex>);
static_assert(std::is_nothrow_destructible_v<blocking::manager>);

// In another thread of the process, which has ended then.
void elsewhere(const std::function<void()>& f) {
    std::jthread{f}.join();
}

std::size_t held_votes(const diagnostics& why) {
    return static_cast<std::size_t>(std::ranges::count(why.votes, vote::held, &master_vote::vote));
}

TEST_CASE("blocking mutex: the standard guards lock it, and another process is refused") {
    two_processes site;
    acquire_options brief = once();
    brief.wait = 50ms;
    blocking::mutex mine(site.mine, "r", brief);
    blocking::mutex theirs(site.theirs, "r", once());
    {
        std::unique_lock guard(mine, std::defer_lock);
        CHECK(guard.try_lock_for(1s));
        CHECK(mine.held());
        CHECK(!theirs.try_lock());
        const time_point before = site.quorum.now();
        CHECK(!theirs.try_lock_for(2s));
        CHECK(!theirs.try_lock_for(-1s));
        CHECK(site.quorum.now() - before >= 2s);
        CHECK(site.quorum.now() - before < 3s);
        guard.unlock();
        CHECK(guard.try_lock_until(std::chrono::system_clock::now() + 1s));
    }
    CHECK(mine.last_release() == release_result::released);
    const std::scoped_lock guard(theirs);
    site.after(1min, [&] { theirs.unlock(); });
    mine.lock(); // however long the options let an acquire wait
    CHECK(mine.held());
    mine.unlock();
    CHECK(mine.try_lock_for(std::chrono::hours::max()));
    CHECK_THROWS_AS(mine.fencing_token(), std::logic_error);
}

TEST_CASE("blocking mutex: a thread that locks it twice gets an error, and keeps its lock") {
    two_processes site;
    blocking::mutex m(site.mine, "r", waiting());
    m.lock();
    const std::uint64_t attempts = site.mine.async().get_metrics().attempts;
    CHECK(error_of([&] { m.lock(); }) == std::errc::resource_deadlock_would_occur);
    CHECK_THROWS_WITH(
        m.lock(), ContainsSubstring("'r': would deadlock: this thread has this mutex already ["));
    CHECK(!m.try_lock());
    CHECK(!m.try_lock_for(60s));
    CHECK(m.held());
    elsewhere([&] { CHECK_FALSE(m.try_lock_for(1ms)); });
    std::stop_source stop;
    std::jthread waits(
        [&] { CHECK(error_of([&] { m.lock(stop.get_token()); }) == operation_aborted); });
    stop.request_stop();
    waits.join();
    CHECK(site.mine.async().get_metrics().attempts == attempts);
    elsewhere([&] { m.unlock(); });
    CHECK(m.last_release() == release_result::released);
    elsewhere([&] { m.lock(); }); // and ends: its number may be that of the next thread
    elsewhere([&] { CHECK_FALSE(m.try_lock()); });
    m.unlock();
    CHECK(m.try_lock());
    m.unlock();
    CHECK(site.no_key_left());
}

TEST_CASE("blocking mutex: in a handler a call is refused, and an unlock does not wait") {
    two_processes site;
    blocking::mutex m(site.mine, "r", waiting());
    blocking::shared_mutex s(site.mine, "s", waiting());
    m.lock();
    s.lock_shared();
    std::vector<error_code> refused;
    boost::asio::post(site.quorum.context(), [&] {
        m.unlock();
        s.unlock_shared();
        refused = {
            error_of([&] { m.lock(); }),
            error_of([&] { site.mine.ready(1s); }),
            error_of([&] { s.lock_shared(); }),
            error_of([&] { static_cast<void>(s.try_lock()); })};
    });
    site.quorum.advance(0s);
    CHECK(refused == std::vector<error_code>(4, errc::would_deadlock));
    CHECK(!m.held());
    CHECK(!m.last_release());
    CHECK(!s.last_release());
    CHECK(site.no_key_left());
    lock empty;
    CHECK_THROWS_AS(
        site.mine.call([&](auto token) { return empty.async_extend(1s, std::move(token)); }),
        std::logic_error);
}

TEST_CASE("blocking manager: in its observer a call is refused, on whichever thread that runs") {
    struct asking final : observer {
        void started(const operation&) override {
            if (by != nullptr) {
                got.push_back(error_of([&] { static_cast<void>(by->acquire("s", once())); }));
            }
        }
        blocking::manager* by = nullptr;
        std::vector<error_code> got;
    };
    const auto asks = std::make_shared<asking>();
    config settings;
    settings.observer = asks;
    two_processes site(settings);
    asks->by = &site.mine;
    site.mine.async().async_acquire("r", once(), [](error_code, const redlock::lock&) {});
    CHECK(asks->got == std::vector<error_code>(1, errc::would_deadlock));
    asks->by = nullptr;
}

TEST_CASE("blocking mutex: a single attempt waits until the masters are connected, if they are") {
    testing::virtual_quorum quorum;
    blocking::manager fresh = quorum.make_blocking_manager();
    CHECK(blocking::mutex(fresh, "r", once()).try_lock());
    for (std::size_t i = 0; i < quorum.size(); ++i) {
        quorum.master(i).kill();
    }
    blocking::manager late = quorum.make_blocking_manager();
    blocking::mutex mine(late, "r", once());
    CHECK_THROWS_WITH(mine.try_lock(), ContainsSubstring("no quorum: 0 of 3 masters could vote"));
}
TEST_CASE("blocking mutex: too few masters are an error, not a lock that somebody has") {
    two_processes site;
    site.quorum.master(0).kill();
    site.quorum.master(1).kill();
    site.quorum.advance(1s);
    CHECK(!site.mine.ready(20ms));
    blocking::mutex m(site.mine, "r", once());
    CHECK(error_of([&] { m.lock(); }) == errc::no_quorum);
    CHECK(error_of([&] { static_cast<void>(m.try_lock()); }) == errc::no_quorum);
    CHECK_THROWS_WITH(m.lock(), ContainsSubstring(" unreachable"));
    CHECK_THROWS_WITH(site.mine.acquire("r", once()), ContainsSubstring(" unreachable"));
}

TEST_CASE("the constructors of mutexes validate what they are given") {
    two_processes site;
    acquire_options no_ttl;
    no_ttl.ttl = 0ms;
    const std::string name = "redlock: resource has 0 bytes; allowed: 1 to 1024";
    const auto ttl = ContainsSubstring("redlock: ttl is 0 ms; allowed");
    CHECK_THROWS_WITH(blocking::mutex(site.mine, "", once()), name);
    CHECK_THROWS_WITH(blocking::shared_mutex(site.mine, "", once()), name);
    CHECK_THROWS_WITH(blocking::mutex(site.mine, "r", no_ttl), ttl);
    CHECK_THROWS_WITH(blocking::shared_mutex(site.mine, "r", no_ttl), ttl);
    const auto mode = ContainsSubstring("redlock: mode is 'shared'; allowed: 'exclusive'");
    CHECK_THROWS_WITH(blocking::mutex(site.mine, "r", {.mode = lock_mode::shared}), mode);
}

TEST_CASE("blocking mutex: what is locked through a manager that goes first is lost") {
    two_processes site;
    std::unique_ptr<blocking::manager> goes(
        new blocking::manager(site.quorum.make_blocking_manager())); // in place: it cannot be moved
    REQUIRE(goes->ready(10s));
    blocking::mutex m(*goes, "r", waiting());
    blocking::lock other = goes->acquire("s", once());
    {
        const std::scoped_lock guard(m);
        const std::stop_token lost = m.lost();
        goes.reset();
        site.quorum.advance(0s);
        CHECK(!m.held());
        CHECK(!other.held());
        CHECK(lost.stop_requested());
        CHECK(other.lost().stop_requested());
        CHECK(site.count_keys() >= 4); // its holder may still act
        CHECK(error_of([&] { m.lock(); }) == errc::would_deadlock);
    }
    CHECK(!m.last_release()); // not by a master
    CHECK(error_of([&] { m.lock(); }) == errc::closed);
    CHECK(error_of([&] { static_cast<void>(m.try_lock_for(60s)); }) == errc::closed);
    CHECK(error_of([&] { other.release(); }) == errc::closed);
}

TEST_CASE("blocking lock: an assignment releases it, and an empty one takes no orders") {
    two_processes site;
    blocking::lock held = site.mine.acquire("r", once());
    held = site.mine.acquire("s", once());
    CHECK(site.quorum.advance_until([&] { return site.quorum.keys_of("r") == 0; }, 1s));
    blocking::lock moved = std::move(held);
    CHECK(moved.held());
    // NOLINTNEXTLINE(bugprone-use-after-move,hicpp-invalid-access-moved): what it is about
    CHECK(!held.held());
    CHECK(!held.lost().stop_possible());
    CHECK_THROWS_AS(held.release(), std::logic_error);
    CHECK_THROWS_AS(blocking::lock().secret(), std::logic_error);
    CHECK(moved.release() == release_result::released);
    CHECK(moved.release() == release_result::released);
    CHECK(!moved.lost().stop_requested());
    held = site.mine.acquire("r", once());
    error_code watched;
    held.async().async_wait_lost([&](error_code error, loss_reason) { watched = error; });
    held.async().abandon();
    CHECK_THROWS_AS(held.release(), std::logic_error);
    held = {};
    CHECK(site.quorum.keys_of("r") == 3);
    try {
        const blocking::lock refused = site.theirs.acquire("r", once());
        FAIL("two holders");
    } catch (const error_with_diagnostics& error) {
        CHECK(error.code() == condition::not_acquired);
        CHECK(held_votes(error.get_diagnostics()) >= 2);
    }
    CHECK(watched == errc::released);
    CHECK(site.mine.async().get_metrics().held == 0);
    site.quorum.advance(11s); // nothing is extended any more
    CHECK(site.count_keys() == 0);
}

TEST_CASE("blocking lock: an extension lasts from now on, never shortens, and tells its limit") {
    two_processes site;
    acquire_options options = once();
    options.renew = false;
    blocking::lock one = site.mine.acquire("r", options);
    const auto left = [&] { return one.async().remaining(); };
    CHECK(one.extend(20s) == extend_result::extended);
    CHECK(left() > 18s);
    CHECK(one.extend(5s) == extend_result::extended);
    CHECK(left() > 18s);
    const time_point shorter = one.async().deadline(); // from here as in docs/howto/migrating.md
    one.extend(std::chrono::ceil<std::chrono::milliseconds>(shorter - site.quorum.now()) + 5s);
    CHECK(one.async().deadline() >= shorter + 4700ms);
    CHECK(error_of([&] { one.extend(1h); }) == errc::invalid_argument);
    CHECK(
        error_of([&] { one.extend(std::chrono::milliseconds::max()); }) == errc::invalid_argument);
    CHECK(one.held());
    const time_point before = one.async().deadline();
    site.quorum.advance(17s);
    CHECK(one.extend() == extend_result::extended); // by the default ttl
    CHECK(one.async().deadline() > before);
    options.max_hold = 20s;
    blocking::lock limited = site.mine.acquire("s", options);
    const time_point taken = site.quorum.now();
    CHECK(limited.extend(15s) == extend_result::extended);
    CHECK(limited.extend(30s) == extend_result::capped);
    CHECK(limited.async().deadline() <= taken + 20s);
    CHECK(limited.extend(1s) == extend_result::extended); // it lasts for longer than that
    site.remove_keys();
    const blocking::lock other = site.theirs.acquire("r", once());
    CHECK(error_of([&] { one.extend(1s); }) == condition::lost);
    CHECK(!one.held());
    CHECK(one.release() == release_result::stolen);
    CHECK(other.held());
}

TEST_CASE("blocking shared mutex: the standard guards read together and write alone") {
    two_processes site;
    blocking::shared_mutex mine(site.mine, "r", once());
    blocking::shared_mutex theirs(site.theirs, "r", once());
    {
        std::shared_lock first(mine);
        std::shared_lock second(mine, std::defer_lock);
        CHECK(second.try_lock_until(std::chrono::system_clock::now() + 20s));
        second.unlock();
        CHECK(second.try_lock_for(1s));
        const std::shared_lock third(theirs);
        CHECK(mine.held());
        CHECK(!mine.try_lock());
        CHECK(!theirs.try_lock_for(10ms));
        first.unlock();
        CHECK(mine.held());
        CHECK(mine.last_release() == release_result::released);
    }
    CHECK(!mine.held());
    {
        std::unique_lock writer(mine, std::defer_lock);
        REQUIRE(writer.try_lock_until(std::chrono::system_clock::now() + 20s));
        CHECK(!mine.try_lock_shared());
        CHECK(!theirs.try_lock_shared_for(10ms));
        CHECK(!theirs.try_lock_shared());
        mine.unlock_shared(); // nobody reads
        CHECK(mine.held());
    }
    mine.unlock();
    mine.unlock_shared();
    {
        blocking::shared_mutex gone(site.mine, "r", once());
        gone.lock_shared();
        gone.lock_shared();
    }
    const std::scoped_lock again(theirs);
    CHECK(!mine.try_lock());
}

TEST_CASE("blocking shared mutex: readers rely on the lease that lasts longest") {
    two_processes site;
    acquire_options options = waiting();
    options.renew = false;
    blocking::shared_mutex mine(site.mine, "r", options);
    blocking::shared_mutex theirs(site.theirs, "r", options);
    mine.lock_shared();
    const std::stop_token lost = mine.lost();
    site.quorum.advance(5s);
    const time_point second = site.quorum.now();
    mine.lock_shared();
    CHECK(mine.lost() == lost);
    mine.unlock_shared();            // gives the lease back that would end first
    CHECK(theirs.try_lock_for(60s)); // waits for the end of the other one
    CHECK(site.quorum.now() >= second + 9s);
    CHECK(lost.stop_requested());
    CHECK(!mine.held());
    // A reader that has lost the lock does not share the object with others before it has unlocked.
    CHECK(!mine.try_lock_shared());
    theirs.unlock();
    CHECK(!mine.try_lock_shared());
    CHECK(!mine.try_lock());
    mine.unlock_shared();
    CHECK(mine.last_release().has_value());
    CHECK(mine.try_lock_shared());
    CHECK(!mine.lost().stop_requested());
    mine.unlock_shared();
    CHECK(!mine.lost().stop_requested()); // it was released
}

TEST_CASE("blocking shared mutex: the plain protocol has no readers") {
    config settings;
    settings.protocol = protocol::plain;
    testing::virtual_quorum quorum(1, settings);
    blocking::manager plain = quorum.make_blocking_manager();
    CHECK_THROWS_AS(blocking::shared_mutex(plain, "r", once()), std::invalid_argument);
}

TEST_CASE(
    "a downgrade lets readers in and no writer, and needs an exclusive lock of one resource") {
    two_processes site;
    const auto downgrade = [&](blocking::lock& held) {
        return error_of([&] {
            site.mine.call(
                [&](auto token) { return held.async().async_downgrade(std::move(token)); });
        });
    };
    blocking::lock several = site.mine.acquire({"r", "s"}, once());
    CHECK(downgrade(several) == errc::invalid_argument);
    CHECK(several.held());
    CHECK(several.release() == release_result::released);
    blocking::lock held = site.mine.acquire("r", once());
    const std::string secret(held.secret());
    CHECK(downgrade(held) == error_code());
    CHECK(held.secret() == secret);
    CHECK(downgrade(held) == errc::invalid_argument); // it reads already
    const blocking::lock beside = site.theirs.acquire("r", reading());
    CHECK(error_of_acquire(site.theirs, "r") == errc::contended);
    site.quorum.advance(1min);
    CHECK(held.held());
    CHECK(held.release() == release_result::released);
    CHECK(downgrade(held) == errc::released);
    CHECK(beside.held());
}

TEST_CASE("a reader that wants to write as well is refused, and goes on reading") {
    two_processes site;
    blocking::lock reader = site.mine.acquire("r", reading());
    for (const wait_for wait : {wait_for::none(), wait_for(2s)}) {
        acquire_options writes = once();
        writes.wait = wait;
        CHECK(error_of_acquire(site.mine, "r", writes) == errc::contended);
    }
    CHECK(reader.extend(20s) == extend_result::extended);
    CHECK(reader.release() == release_result::released);
    CHECK(site.no_key_left());
}

TEST_CASE("a writer that gives up leaves the intent of another that waits") {
    two_processes site;
    blocking::lock reader = site.mine.acquire("r", reading());
    const auto intents = [&] {
        std::size_t found = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            found += site.quorum.master(i).command({"EXISTS", "redlock:{r}:intent"}) == "1" ? 1 : 0;
        }
        return found;
    };
    std::optional<lock> written;
    site.mine.async().async_acquire(
        "r", waiting(), [&](error_code, lock got) { written = std::move(got); });
    std::stop_source stop;
    site.after(5s, [&] { stop.request_stop(); });
    CHECK(
        error_of([&] { static_cast<void>(site.theirs.acquire("r", waiting(), stop.get_token())); })
        == operation_aborted);
    site.quorum.advance(1s);
    CHECK(intents() == 3);
    CHECK(error_of_acquire(site.theirs, "r", reading()) == errc::contended);
    CHECK(reader.release() == release_result::released);
    REQUIRE(site.quorum.advance_until([&] { return written.has_value(); }, 1s));
    CHECK(written->held());
    written.reset();
    CHECK(site.no_key_left());
}

TEST_CASE("processes that name different sizes of a pool share the numbers that both have") {
    two_processes site;
    std::vector<blocking::lock> held;
    std::set<std::size_t> numbers;
    held.push_back(site.mine.acquire(slots("r", 2), once()));
    for (int i = 0; i < 3; ++i) {
        held.push_back(site.theirs.acquire(slots("r", 4), once()));
    }
    for (const blocking::lock& one : held) {
        numbers.insert(one.async().slot());
    }
    CHECK(numbers.size() == 4);
    CHECK(held[0].async().slot() < 2);
    for (const std::size_t size : {2U, 4U}) {
        CHECK(error_of_acquire(site.mine, slots("r", size)) == errc::contended);
    }
}

}} // namespace redlock::test::in_memory
