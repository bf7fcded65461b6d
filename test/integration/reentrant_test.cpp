// An owner enters again, on real masters: what it costs, what it counts, and what a loss does.
#include "guarded_quorum.hpp"

#include <redlock/blocking.hpp>
#include <redlock/reentrant_mutex.hpp>

// In a namespace of its own: short names, in what may be compiled as one with other files.
namespace redlock::test::reentry {

namespace {

struct entry {
    bool done = false;
    error_code error;
    reentrant_hold hold;
    diagnostics why;
    asio::cancellation_signal cancel;
};
using entry_ptr = std::shared_ptr<entry>;

entry_ptr begin(reentrant_mutex& mutex, const reentrant_owner& who) {
    const auto result = std::make_shared<entry>();
    mutex.async_acquire(
        who,
        with_diagnostics(
            result->why,
            asio::bind_cancellation_slot(
                result->cancel.slot(), [result](error_code error, reentrant_hold hold) {
                    result->error = error;
                    result->hold = std::move(hold);
                    result->done = true;
                })));
    return result;
}

entry_ptr finish(quorum_fixture& site, const entry_ptr& begun) {
    run_until(site.io, [&] { return begun->done; });
    return begun;
}

entry_ptr enter(quorum_fixture& site, reentrant_mutex& mutex, const reentrant_owner& who) {
    return finish(site, begin(mutex, who));
}

std::optional<release_result> leave(quorum_fixture& site, reentrant_hold& hold) {
    struct outcome {
        bool done = false;
        error_code error;
        std::optional<release_result> result;
    };
    const auto state = std::make_shared<outcome>();
    hold.async_release([state](error_code error, std::optional<release_result> result) {
        *state = {true, error, result};
    });
    CHECK(!hold.valid());
    run_until(site.io, [&] { return state->done; });
    CHECK(!state->error);
    return state->result;
}

// Commands that all masters have executed, but for the ones that ask for this.
std::uint64_t commands(quorum_fixture& site) {
    std::uint64_t sum = 0;
    for (const master_process& master : site.masters) {
        for (const char* const name : {"set", "eval", "evalsha", "get", "del", "pexpire"}) {
            sum += calls_of(master, name);
        }
    }
    return sum;
}

void unpushed(config& c) {
    guarded(c);
    c.release_notifications = false;
}

} // namespace

TEST_CASE("an owner enters again without asking the masters, and under the same fencing token") {
    quorum_fixture site(3, unpushed);
    acquire_options options = with_token();
    options.renew = renewal::off;
    reentrant_mutex mutex(site.me.manager(), "r", options);
    const reentrant_owner me;
    const entry_ptr first = enter(site, mutex, me);
    INFO(to_string(first->why));
    REQUIRE(!first->error);
    CHECK(first->hold.depth() == 1);
    site.pass(50ms); // the votes after the deciding one
    const std::uint64_t before = commands(site);
    std::vector<entry_ptr> more;
    for (std::uint32_t i = 2; i < 10; ++i) {
        more.push_back(enter(site, mutex, me));
        REQUIRE(!more.back()->error);
        CHECK(more.back()->hold.depth() == i);
        CHECK(more.back()->hold.fencing_token() == first->hold.fencing_token());
        CHECK(more.back()->hold.deadline() == first->hold.deadline());
    }
    CHECK(!leave(site, first->hold)); // in any order
    CHECK(more[0]->hold.held());
    for (std::size_t i = 1; i < more.size(); ++i) {
        CHECK(!leave(site, more[i]->hold));
    }
    CHECK(commands(site) == before);
    CHECK(leave(site, more[0]->hold) == release_result::released);
    const entry_ptr next = enter(site, mutex, me);
    REQUIRE(!next->error);
    CHECK(next->hold.depth() == 1);
    CHECK(next->hold.fencing_token() > 0);
}

TEST_CASE("another owner waits until the last entry is left, however it is left") {
    quorum_fixture site(3);
    reentrant_mutex mutex(site.me.manager(), "r", waiting(30s));
    const reentrant_owner me;
    const reentrant_owner you;
    const entry_ptr first = enter(site, mutex, me);
    const entry_ptr second = enter(site, mutex, me);
    const entry_ptr yours = begin(mutex, you);
    leave(site, first->hold);
    site.pass(50ms);
    CHECK(!yours->done);
    second->hold = {};
    finish(site, yours);
    CHECK(!yours->error);
    CHECK(yours->hold.depth() == 1);
    yours->hold = {};
    CHECK(site.no_key_left());
}

TEST_CASE("two mutexes on one resource exclude each other, whatever the owner") {
    quorum_fixture site(3);
    reentrant_mutex one(site.me.manager(), "r", once());
    reentrant_mutex other(site.me.manager(), "r", once());
    const reentrant_owner me;
    const entry_ptr first = enter(site, one, me);
    CHECK(!first->error);
    CHECK(enter(site, other, me)->error == errc::contended);
}

TEST_CASE("a depth that is bounded is an error beyond, and changes nothing") {
    quorum_fixture site(3);
    reentrant_mutex mutex(site.me.manager(), "r", once(), 2);
    CHECK_THROWS_AS(reentrant_mutex(site.me.manager(), "r", once(), 0), std::invalid_argument);
    const reentrant_owner me;
    const entry_ptr first = enter(site, mutex, me);
    const entry_ptr second = enter(site, mutex, me);
    CHECK(enter(site, mutex, me)->error == errc::recursion_limit);
    CHECK(second->hold.held());
    CHECK(!leave(site, second->hold));
    CHECK(!enter(site, mutex, me)->error);
    CHECK(leave(site, first->hold) == release_result::released);
}

TEST_CASE("to enter again after a loss is an error, until all entries are left") {
    quorum_fixture site(3);
    reentrant_mutex mutex(site.me.manager(), "r", once_unrenewed(300ms));
    const reentrant_owner me;
    const entry_ptr first = enter(site, mutex, me);
    const entry_ptr second = enter(site, mutex, me);
    bool lost = false;
    first->hold.async_wait_lost([&](error_code error, loss_reason) { lost = !error; });
    run_until(site.io, [&] { return lost; });
    CHECK(!second->hold.held());
    const std::uint64_t attempts = site.me.count().attempts;
    CHECK(enter(site, mutex, me)->error == errc::lost);
    CHECK(!leave(site, first->hold));
    CHECK(enter(site, mutex, me)->error == errc::lost);
    CHECK(site.me.count().attempts == attempts);
    CHECK(leave(site, second->hold).has_value());
    const entry_ptr anew = enter(site, mutex, me);
    CHECK(!anew->error);
    CHECK(anew->hold.depth() == 1);
}

TEST_CASE("a late leave does not touch the lock of the owner that came since") {
    quorum_fixture site(3);
    reentrant_mutex mutex(site.me.manager(), "r", once_unrenewed(20s));
    const reentrant_owner me;
    const reentrant_owner you;
    const entry_ptr mine = enter(site, mutex, me);
    site.everywhere({"DEL", "redlock:{r}"}); // as if it had expired in a pause
    const entry_ptr yours = enter(site, mutex, you);
    REQUIRE(!yours->error);
    CHECK(leave(site, mine->hold) == release_result::stolen);
    CHECK(yours->hold.held());
    CHECK(enter(site, mutex, you)->hold.depth() == 2);
    CHECK(enter(site, mutex, me)->error == errc::contended);
    CHECK(leave(site, yours->hold) == release_result::released);
}

TEST_CASE("an owner that enters twice at once is in twice, and a cancelled first does not end the "
          "second") {
    quorum_fixture site(3);
    asio::io_context elsewhere;
    client other(elsewhere, config_for(site.masters.urls()), 3);
    redlock::lock theirs = other.take("r");
    reentrant_mutex mutex(site.me.manager(), "r", waiting(30s));
    const reentrant_owner me;
    const entry_ptr first = begin(mutex, me);
    const entry_ptr second = begin(mutex, me);
    const entry_ptr third = begin(mutex, me);
    const entry_ptr fourth = begin(mutex, me);
    run_until(site.io, [&] { return site.me.count().attempts > 0; });
    second->cancel.emit(asio::cancellation_type::terminal);
    finish(site, second);
    CHECK(second->error == asio::error::operation_aborted);
    first->cancel.emit(asio::cancellation_type::terminal);
    finish(site, first);
    CHECK(first->error == asio::error::operation_aborted);
    CHECK(!third->done);
    CHECK(other.release(theirs) == release_result::released);
    finish(site, third);
    finish(site, fourth);
    CHECK(!third->error);
    CHECK(!fourth->error);
    CHECK(third->hold.depth() == 1);
    CHECK(fourth->hold.depth() == 2);
    CHECK(!leave(site, third->hold));
    CHECK(leave(site, fourth->hold) == release_result::released);
    CHECK(site.no_key_left());
}

TEST_CASE("all that wait for one owner hear of an outage") {
    quorum_fixture site(3);
    site.masters[0].kill();
    site.masters[1].kill();
    run_until(site.io, [&] { return site.me.health().admitted == 1; });
    reentrant_mutex mutex(site.me.manager(), "r", once());
    const reentrant_owner me;
    const entry_ptr first = begin(mutex, me);
    const entry_ptr second = begin(mutex, me);
    CHECK(finish(site, first)->error == errc::no_quorum);
    CHECK(finish(site, second)->error == errc::no_quorum);
    CHECK(count_votes(second->why, vote::unreachable) == 2);
}

TEST_CASE("entries may outlive their mutex, and the manager") {
    quorum_fixture site(3);
    auto mutex = std::make_unique<reentrant_mutex>(site.me.manager(), "r", once());
    const reentrant_owner me;
    const entry_ptr first = enter(site, *mutex, me);
    mutex.reset();
    CHECK(first->hold.held());
    site.me.close();
    CHECK(!first->hold.held());
    CHECK(leave(site, first->hold).has_value());
    CHECK(!first->hold.held());
    CHECK_THROWS_AS(first->hold.depth(), std::logic_error);
}

TEST_CASE("a reentrant mutex blocks by way of a call") {
    quorum_of_masters masters(3);
    blocking::manager manager(config_for(masters.urls()));
    reentrant_mutex mutex(manager.async(), "r");
    const reentrant_owner me;
    const auto enter = [&] {
        return manager.call([&](auto token) { return mutex.async_acquire(me, std::move(token)); });
    };
    reentrant_hold first = enter();
    reentrant_hold second = enter();
    CHECK(second.depth() == 2);
    CHECK(!manager.call([&](auto token) { return second.async_release(std::move(token)); }));
    CHECK(manager.call([&](auto token) {
        return first.async_release(std::move(token));
    }) == release_result::released);
}

} // namespace redlock::test::reentry
