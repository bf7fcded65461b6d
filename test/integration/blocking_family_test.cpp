// `blocking::manager::call` with the other primitives: what it returns, and that a wait which is
// stopped leaves nothing on the masters.
#include "blocking_site.hpp"
#include "guarded_quorum.hpp"

#include <redlock/election.hpp>
#include <redlock/multi_lock.hpp>
#include <redlock/shared_mutex.hpp>
#include <redlock/slot_pool.hpp>

#include <future>
#include <stop_token>
#include <thread>

namespace redlock::test::blocking_use {

namespace {

struct family : site {
    family() : site(3, guarded_and_brisk), one(client()), two(client()) {}

    /// Begins `wait` in a thread as the second process, and stops it when it waits.
    template <typename Wait>
    error_code stopped(Wait wait) {
        std::stop_source stop;
        std::promise<error_code> ended;
        const std::uint64_t before = two->async().get_metrics().attempts;
        std::jthread waiter([&] {
            ended.set_value(
                error_of([&] { static_cast<void>(two->call(wait, stop.get_token())); }));
        });
        CHECK(soon([&] {
            const metrics now = two->async().get_metrics();
            return now.attempts > before || now.subscriptions > 0;
        }));
        stop.request_stop();
        return ended.get_future().get();
    }

    release_result release(auto& held) {
        return one->call([&](auto token) { return held.async_release(std::move(token)); });
    }

    /// Whether nothing is left but counters and what the masters note of themselves, and no process
    /// holds, owes or awaits anything. The word that a writer leaves while it waits goes by itself.
    bool clean() {
        return soon([this] {
            std::size_t left = masters.total_keys("*") - masters.total_keys("*:fence")
                               - masters.total_keys(epoch_key);
            for (blocking::manager* const each : {one.get(), two.get()}) {
                const metrics now = each->async().get_metrics();
                left += now.waiting + now.held + now.pending_removals + now.subscriptions;
            }
            return left == 0;
        });
    }

    std::unique_ptr<blocking::manager> one;
    std::unique_ptr<blocking::manager> two;
};

} // namespace

TEST_CASE("blocking: slots are taken one by one and together, and a wait for them is stopped") {
    family here;
    slot_pool pool(here.one->async(), "p", 3);
    slot_pool theirs(here.two->async(), "p", 3);
    slot single =
        here.one->call([&](auto token) { return pool.async_acquire(once(), std::move(token)); });
    CHECK(single.held());
    slots both = here.one->call(
        [&](auto token) { return pool.async_acquire_many(2, once(), std::move(token)); });
    CHECK(both.numbers().size() == 2);
    CHECK(
        error_of([&] {
            static_cast<void>(here.two->call(
                [&](auto token) { return theirs.async_acquire(once(), std::move(token)); }));
        })
        == errc::contended);
    CHECK(here.stopped([&](auto token) {
        return theirs.async_acquire(patient(), std::move(token));
    }) == asio::error::operation_aborted);
    CHECK(here.stopped([&](auto token) {
        return theirs.async_acquire_many(2, patient(), std::move(token));
    }) == asio::error::operation_aborted);
    const pool_status status =
        here.two->call([&](auto token) { return theirs.async_status(std::move(token)); });
    CHECK(status.held() == 3);
    CHECK(here.release(both) == release_result::released);
    CHECK(here.release(single) == release_result::released);
    CHECK(here.clean());
}

TEST_CASE("blocking: one campaigns, is observed and resigns, and another's campaign is stopped") {
    family here;
    election mine(here.one->async(), "leader");
    election theirs(here.two->async(), "leader");
    leadership leads =
        here.one->call([&](auto token) { return mine.async_campaign(std::move(token)); });
    CHECK(leads.held());
    CHECK(leads.fencing_token());
    const leader_status seen =
        here.two->call([&](auto token) { return theirs.async_observe(std::move(token)); });
    CHECK(seen.leader == leads.id());
    CHECK(here.stopped([&](auto token) {
        return theirs.async_campaign(std::move(token));
    }) == asio::error::operation_aborted);
    CHECK(leads.held());
    CHECK(here.one->call([&](auto token) {
        return leads.async_resign(std::move(token));
    }) == release_result::released);
    CHECK(here.clean());
}

TEST_CASE("blocking: readers, writers and a downgrade, and waits for them that are stopped") {
    family here;
    const redlock::shared_mutex mine(here.one->async(), "r");
    const redlock::shared_mutex theirs(here.two->async(), "r");
    const auto reads = [&](auto token) {
        return theirs.async_lock_shared(patient(), std::move(token));
    };
    const auto writes = [&](auto token) { return theirs.async_lock(patient(), std::move(token)); };
    redlock::lock held =
        here.one->call([&](auto token) { return mine.async_lock(once(), std::move(token)); });
    CHECK(here.stopped(reads) == asio::error::operation_aborted);
    CHECK(here.stopped(writes) == asio::error::operation_aborted);
    here.one->call([&](auto token) { return mine.async_downgrade(held, std::move(token)); });
    redlock::lock beside = here.two->call(reads);
    CHECK(beside.held());
    CHECK(here.two->call([&](auto token) {
        return beside.async_release(std::move(token));
    }) == release_result::released);
    CHECK(here.stopped(writes) == asio::error::operation_aborted);
    CHECK(held.held());
    CHECK(here.release(held) == release_result::released);
    CHECK(here.clean());
}

TEST_CASE("blocking: several resources at once, and a wait for them that is stopped") {
    family here;
    redlock::lock both = here.one->call([&](auto token) {
        return async_acquire_all(here.one->async(), {"a", "b"}, once(), std::move(token));
    });
    CHECK(both.resource() == "a, b");
    CHECK(here.stopped([&](auto token) {
        return async_acquire_all(here.two->async(), {"b", "c"}, patient(), std::move(token));
    }) == asio::error::operation_aborted);
    CHECK(both.held());
    CHECK(here.release(both) == release_result::released);
    CHECK(here.clean());
}

} // namespace redlock::test::blocking_use
