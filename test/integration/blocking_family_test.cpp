// `blocking::manager::call` with the other primitives: what it returns, and that a wait which is
// stopped leaves nothing on the masters.
#include "blocking_site.hpp"
#include "guarded_quorum.hpp"

#include <redlock/election.hpp>

#include <future>
#include <stop_token>

namespace redlock::test::blocking_use {

namespace {

struct two_clients : site {
    two_clients() : site(3, guarded_and_brisk), one(client()), two(client()) {}

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
                               - masters.total_keys(record_key);
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
    two_clients here;
    lock_manager& mine = here.one->async();
    lock_manager& theirs = here.two->async();
    lock single = here.one->call([&](auto token) {
        return mine.async_acquire(redlock::slots("p", 3), once(), std::move(token));
    });
    CHECK(single.held());
    lock both = here.one->call([&](auto token) {
        return mine.async_acquire(redlock::slots("p", 3, 2), once(), std::move(token));
    });
    CHECK(both.slots().size() == 2);
    CHECK(
        error_of([&] {
            static_cast<void>(here.two->call([&](auto token) {
                return theirs.async_acquire(redlock::slots("p", 3), once(), std::move(token));
            }));
        })
        == errc::contended);
    CHECK(here.stopped([&](auto token) {
        return theirs.async_acquire(redlock::slots("p", 3), patient(), std::move(token));
    }) == asio::error::operation_aborted);
    CHECK(here.stopped([&](auto token) {
        return theirs.async_acquire(redlock::slots("p", 3, 2), patient(), std::move(token));
    }) == asio::error::operation_aborted);
    const lock_status status = here.two->call(
        [&](auto token) { return theirs.async_query(redlock::slots("p", 3), std::move(token)); });
    CHECK(status.count(lock_state::held) == 3);
    CHECK(here.release(both) == release_result::released);
    CHECK(here.release(single) == release_result::released);
    CHECK(here.clean());
}

TEST_CASE("blocking: one campaigns, is observed and resigns, and another's campaign is stopped") {
    two_clients here;
    election mine(here.one->async(), "leader");
    election theirs(here.two->async(), "leader");
    lock leads = here.one->call([&](auto token) { return mine.async_campaign(std::move(token)); });
    CHECK(leads.held());
    CHECK(leads.has_fencing_token());
    const leader_status seen =
        here.two->call([&](auto token) { return theirs.async_observe(std::move(token)); });
    CHECK(seen.leader == leads.owner_digest());
    CHECK(here.stopped([&](auto token) {
        return theirs.async_campaign(std::move(token));
    }) == asio::error::operation_aborted);
    CHECK(leads.held());
    CHECK(here.one->call([&](auto token) {
        return leads.async_release(std::move(token));
    }) == release_result::released);
    CHECK(here.clean());
}

TEST_CASE("blocking: readers, writers and a downgrade, and waits for them that are stopped") {
    two_clients here;
    const auto as = [](lock_mode mode, acquire_options options) {
        options.mode = mode;
        return options;
    };
    const auto reads = [&](auto token) {
        return here.two->async().async_acquire(
            "r", as(lock_mode::shared, patient()), std::move(token));
    };
    const auto writes = [&](auto token) {
        return here.two->async().async_acquire(
            "r", as(lock_mode::exclusive, patient()), std::move(token));
    };
    redlock::lock held = here.one->call([&](auto token) {
        return here.one->async().async_acquire(
            "r", as(lock_mode::exclusive, once()), std::move(token));
    });
    CHECK(here.stopped(reads) == asio::error::operation_aborted);
    CHECK(here.stopped(writes) == asio::error::operation_aborted);
    here.one->call([&](auto token) { return held.async_downgrade(std::move(token)); });
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
    two_clients here;
    redlock::lock both = here.one->call([&](auto token) {
        return here.one->async().async_acquire({"a", "b"}, once(), std::move(token));
    });
    CHECK(both.resource() == "a, b");
    CHECK(here.stopped([&](auto token) {
        return here.two->async().async_acquire({"b", "c"}, patient(), std::move(token));
    }) == asio::error::operation_aborted);
    CHECK(both.held());
    CHECK(here.release(both) == release_result::released);
    CHECK(here.clean());
}

} // namespace redlock::test::blocking_use
