// Redis accepts what each public operation sends: one case for each. What the operations promise is
// shown in memory, by the suites `unit` and `net`.
#include "blocking_site.hpp"
#include "family_member.hpp"
#include "guarded_quorum.hpp"

#include <redlock/election.hpp>

#include <catch2/generators/catch_generators.hpp>

#include <future>

namespace redlock::test::blocking_use {

namespace {

struct two_clients : site {
    explicit two_clients(protocol speaks)
        : site(3, [speaks](config& c) {
              guarded_and_brisk(c);
              c.protocol = speaks;
              c.retry_delay_min = 5ms;
              c.retry_delay_max = 1h; // a waiter is notified, or waits
          }) {}

    /// Whether nothing is left but counters and what the masters note of themselves.
    bool clean() {
        return soon([this] {
            return masters.total_keys("*")
                   == masters.total_keys("*:fence") + masters.total_keys(record_key);
        });
    }

    std::unique_ptr<blocking::manager> one = client();
    std::unique_ptr<blocking::manager> two = client();
};

} // namespace

TEST_CASE("each primitive is refused to others, extended, released, and its waiter is notified") {
    const auto [speaks, kind] = GENERATE(table<protocol, std::string>({
        {protocol::guarded, "lock"},
        {protocol::guarded, "fair lock"},
        {protocol::guarded, "resources"},
        {protocol::guarded, "reader"},
        {protocol::guarded, "writer"},
        {protocol::guarded, "slot"},
        {protocol::guarded, "slots"},
        {protocol::guarded, "leader"},
        {protocol::plain, "lock"},
        {protocol::plain, "fair lock"},
        {protocol::plain, "slot"},
        {protocol::plain, "leader"},
    }));
    INFO(kind << ", " << to_string(speaks));
    two_clients here(speaks);
    const std::string rival = rival_of(kind);
    const std::shared_ptr<lock> held = take_member(*here.one, kind, once());
    CHECK(held->has_fencing_token() == (kind == "leader" && speaks == protocol::guarded));
    CHECK(error_of([&] { take_member(*here.two, rival, once()); }) == errc::contended);
    here.one->call([&](auto token) { return held->async_extend(20s, std::move(token)); });
    CHECK(held->remaining() > 10s);
    auto waiter =
        std::async(std::launch::async, [&] { return take_member(*here.two, rival, waiting(60s)); });
    CHECK(soon([&] {
        const metrics now = here.two->async().get_metrics();
        return now.subscriptions > 0 && now.notification_connections == 3;
    }));
    CHECK(release(*here.one, *held) == release_result::released);
    std::shared_ptr<lock> next = waiter.get();
    CHECK(next->held());
    next.reset();
    CHECK(here.clean());
}

TEST_CASE("a lock is seen by all, passed on by its secret, and its token grows") {
    const protocol speaks = GENERATE(protocol::guarded, protocol::plain);
    two_clients here(speaks);
    lock_manager& mine = here.one->async();
    lock_manager& theirs = here.two->async();
    acquire_options options = once();
    options.fencing = speaks == protocol::guarded;
    const std::string chosen(40, 'c');
    const auto seen = [&] { return query(*here.two, "r"); };
    CHECK(seen().state == lock_state::free);
    lock first = here.one->call(
        [&](auto token) { return mine.async_acquire_as("r", chosen, options, std::move(token)); });
    CHECK(here.masters[0].command({"GET", lock_key("r")}) == chosen);
    CHECK(seen().state == lock_state::held);
    CHECK(seen().owner_digest == first.owner_digest());
    CHECK(chosen.find(seen().owner_digest) == std::string::npos);
    CHECK(*seen().time_left <= 10s);
    CHECK(first.remaining() <= *seen().time_left);
    first.abandon();
    const auto attach = [&] {
        return here.two->call([&](auto token) {
            return theirs.async_attach("r", chosen, options, std::move(token));
        });
    };
    lock second = attach();
    CHECK(second.held());
    if (options.fencing) {
        CHECK(here.masters.total_keys(fence_key_of("r")) > 0);
        CHECK(second.fencing_token() > 1);
    }
    CHECK(release(*here.two, second) == release_result::released);
    CHECK(here.clean());
    CHECK(error_of([&] { attach().abandon(); }) == errc::lost);
    CHECK(here.clean()); // nothing is put back
}

TEST_CASE("a writer that becomes a reader lets readers in and no writer, in the same lock") {
    two_clients here(protocol::guarded);
    const auto held = take_member(*here.one, "writer", once());
    const std::string secret(held->secret());
    here.one->call([&](auto token) { return held->async_downgrade(std::move(token)); });
    CHECK(held->held());
    CHECK(held->secret() == secret);
    const auto beside = take_member(*here.two, "reader", once());
    CHECK(error_of([&] { take_member(*here.two, "writer", once()); }) == errc::contended);
    const lock_status found = query(*here.two, "r");
    CHECK(found.readers == 2);
    CHECK(to_string(found).starts_with("held by 2 readers"));
    CHECK(here.masters[0].command({"SET", lock_key("r"), "x", "NX", "PX", "1000"}) == "(nil)");
}

TEST_CASE("the status of a pool has the state and the owner of each slot") {
    two_clients here(GENERATE(protocol::guarded, protocol::plain));
    const auto held = take_member(*here.one, "slot", once());
    const lock_status found = query(*here.two, redlock::slots("p", 4));
    CHECK(found.count(lock_state::held) == 1);
    CHECK(found.count(lock_state::free) == 3);
    CHECK(found.slots[held->slot()].owner_digest == held->owner_digest());
}

TEST_CASE("an observer is notified of a leader, of its resignation, and of a crash") {
    two_clients here(protocol::guarded);
    election_options options;
    options.poll = std::chrono::minutes(10); // the notification comes from the masters
    options.ttl = 3s;
    election mine(here.one->async(), "leader", options);
    election theirs(here.two->async(), "leader", options);
    const auto change_from = [&](const std::string& seen) {
        return std::async(std::launch::async, [&, seen] {
            return here.two->call(
                [&](auto token) { return theirs.async_wait_change(seen, std::move(token)); });
        });
    };
    const auto campaign = [&] {
        return here.one->call([&](auto token) { return mine.async_campaign(std::move(token)); });
    };
    lock term = campaign();
    CHECK(term.fencing_token() > 0);
    const std::string leader = change_from("").get().owner_digest;
    CHECK(leader == term.owner_digest());
    auto resigned = change_from(leader);
    CHECK(soon([&] { return here.two->async().get_metrics().notification_connections == 3; }));
    release(*here.one, term);
    CHECK(resigned.get().state == lock_state::free);
    term = campaign();
    auto crashed = change_from(term.owner_digest());
    term.abandon();
    CHECK(crashed.get().owner_digest.empty());
    CHECK(soon([&] { return here.two->async().get_metrics().subscriptions == 0; }));
}

} // namespace redlock::test::blocking_use
