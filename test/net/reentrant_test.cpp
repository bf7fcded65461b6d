// An owner enters a reentrant mutex again: what it costs, what it counts, and what a loss does.
#include "two_processes.hpp"

#include <redlock/reentrant_mutex.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

namespace redlock::test::in_memory { namespace {

struct entry {
    bool done = false;
    error_code error;
    reentrant_hold hold;
    boost::asio::cancellation_signal cancel;
};

struct reentrant_site : two_processes {
    explicit reentrant_site(acquire_options options = once(), std::uint32_t depth_max = 9)
        : mutex(mine.async(), "r", options, depth_max) {}

    std::shared_ptr<entry> begin(const reentrant_owner& owner) {
        auto begun = std::make_shared<entry>();
        mutex.async_acquire(
            owner,
            boost::asio::bind_cancellation_slot(
                begun->cancel.slot(), [begun](error_code error, reentrant_hold hold) {
                    begun->error = error;
                    begun->hold = std::move(hold);
                    begun->done = true;
                }));
        return begun;
    }
    reentrant_hold enter(const reentrant_owner& owner) {
        return mine.call([&](auto token) { return mutex.async_acquire(owner, std::move(token)); });
    }
    error_code refusal(const reentrant_owner& owner) {
        return error_of([&] { static_cast<void>(enter(owner)); });
    }
    std::optional<release_result> leave(reentrant_hold& hold) {
        return mine.call([&](auto token) { return hold.async_release(std::move(token)); });
    }

    reentrant_mutex mutex;
    const reentrant_owner me;
    const reentrant_owner you;
};

TEST_CASE("reentrant mutex: an owner enters again without the masters, under the same token") {
    acquire_options options = once();
    options.fencing = true;
    reentrant_site site(options);
    reentrant_hold first = site.enter(site.me);
    for (std::size_t i = 0; i < 3; ++i) {
        site.quorum.master(i).hang();
    }
    const time_point before = site.quorum.now();
    std::vector<reentrant_hold> more;
    for (std::uint32_t depth = 2; depth < 10; ++depth) {
        more.push_back(site.enter(site.me));
        CHECK(more.back().depth() == depth);
        CHECK(more.back().fencing_token() == first.fencing_token());
        CHECK(more.back().deadline() == first.deadline());
    }
    CHECK(site.refusal(site.me) == errc::recursion_limit);
    CHECK(!site.leave(first)); // in any order
    for (std::size_t i = 1; i < more.size(); ++i) {
        CHECK(!site.leave(more[i]));
    }
    CHECK(more[0].held());
    CHECK(site.quorum.now() == before);
    for (std::size_t i = 0; i < 3; ++i) {
        site.quorum.master(i).resume();
    }
    CHECK(site.leave(more[0]) == release_result::released);
    CHECK(site.enter(site.me).depth() == 1);
    CHECK_THROWS_AS(reentrant_mutex(site.mine.async(), "r", once(), 0), std::invalid_argument);
}

TEST_CASE("reentrant mutex: another owner waits until the last entry is left") {
    reentrant_site site(waiting());
    reentrant_hold first = site.enter(site.me);
    reentrant_hold second = site.enter(site.me);
    const auto yours = site.begin(site.you);
    CHECK(!site.leave(first));
    site.quorum.advance(1min);
    CHECK(!yours->done);
    second = {};
    REQUIRE(site.quorum.advance_until([&] { return yours->done; }, 1s));
    CHECK(yours->hold.depth() == 1);
    yours->hold = {};
    CHECK(site.no_key_left());
}

TEST_CASE("reentrant mutex: two mutexes on one resource exclude each other, whatever the owner") {
    reentrant_site site;
    reentrant_mutex other(site.mine.async(), "r", once());
    const reentrant_hold first = site.enter(site.me);
    CHECK(
        error_of([&] {
            static_cast<void>(site.mine.call(
                [&](auto token) { return other.async_acquire(site.me, std::move(token)); }));
        })
        == errc::contended);
}

TEST_CASE("reentrant mutex: after a loss nobody enters again before all entries are left") {
    acquire_options options = once();
    options.renew = renewal::off;
    reentrant_site site(options);
    reentrant_hold first = site.enter(site.me);
    reentrant_hold second = site.enter(site.me);
    bool lost = false;
    first.async_wait_lost([&](error_code error, loss_reason) { lost = !error; });
    REQUIRE(site.quorum.advance_until([&] { return lost; }));
    CHECK(!second.held());
    const std::uint64_t attempts = site.mine.async().get_metrics().attempts;
    CHECK(site.refusal(site.me) == errc::lost);
    CHECK(!site.leave(first));
    CHECK(site.refusal(site.me) == errc::lost);
    CHECK(site.mine.async().get_metrics().attempts == attempts);
    CHECK(site.leave(second).has_value());
    CHECK(site.enter(site.me).depth() == 1);
}

TEST_CASE("reentrant mutex: a late leave does not touch the lock of the owner that came since") {
    reentrant_site site;
    reentrant_hold mine = site.enter(site.me);
    site.remove_keys(); // as if it had expired in a pause
    reentrant_hold yours = site.enter(site.you);
    CHECK(site.leave(mine) == release_result::stolen);
    CHECK(yours.held());
    CHECK(site.enter(site.you).depth() == 2);
    CHECK(site.refusal(site.me) == errc::contended);
    CHECK(site.leave(yours) == release_result::released);
}

TEST_CASE("reentrant mutex: a cancelled first entry does not end those that wait with it") {
    reentrant_site site(waiting());
    blocking::lock theirs = site.theirs.acquire("r", once());
    std::vector<std::shared_ptr<entry>> all;
    for (int i = 0; i < 4; ++i) {
        all.push_back(site.begin(site.me));
    }
    site.quorum.advance(1s);
    for (const std::size_t i : {1U, 0U}) {
        all[i]->cancel.emit(boost::asio::cancellation_type::terminal);
        site.quorum.advance(0s);
        CHECK(all[i]->error == operation_aborted);
    }
    CHECK(!all[2]->done);
    CHECK(theirs.release() == release_result::released);
    REQUIRE(site.quorum.advance_until([&] { return all[2]->done && all[3]->done; }, 1s));
    CHECK(all[2]->hold.depth() == 1);
    CHECK(all[3]->hold.depth() == 2);
    CHECK(!site.leave(all[2]->hold));
    CHECK(site.leave(all[3]->hold) == release_result::released);
    CHECK(site.no_key_left());
}

TEST_CASE("reentrant mutex: an outage ends the wait of each entry") {
    reentrant_site site;
    site.quorum.master(0).kill();
    site.quorum.master(1).kill();
    site.quorum.advance(1s);
    const auto first = site.begin(site.me);
    const auto second = site.begin(site.me);
    REQUIRE(site.quorum.advance_until([&] { return first->done && second->done; }));
    CHECK(first->error == errc::no_quorum);
    CHECK(second->error == errc::no_quorum);
}

TEST_CASE("reentrant mutex: an entry may outlive the mutex") {
    reentrant_site site;
    reentrant_hold hold = site.enter(site.me);
    site.mutex = reentrant_mutex(site.mine.async(), "other");
    CHECK(hold.held());
    CHECK(site.leave(hold) == release_result::released);
    CHECK(!hold.held());
    CHECK_THROWS_AS(hold.depth(), std::logic_error);
}

}} // namespace redlock::test::in_memory
