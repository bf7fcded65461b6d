// What the core keeps of claims, wait queues and operations: as it is when new, and when it is used
// again.

#include "claim_site.hpp"
#include "core/bytes/command.hpp"
#include "core/bytes/keys.hpp"
#include "core/engine/queries.hpp"
#include "core/masters/settings.hpp"
#include "core/waiting/acquire_call.hpp"
#include "core/waiting/wait_queues.hpp"
#include "quorum_site.hpp"
#include "support/test.hpp"

namespace state_test {

using namespace redlock::core;
using redlock::vote;

// A process may hold very many locks, and have very many waiters. Each lock also has a ballot for
// each master, its key with the token, and the handle of its holder.
static_assert(sizeof(void*) > 8 || sizeof(ballot) <= 24);
static_assert(sizeof(void*) > 8 || sizeof(claim) <= 216);
static_assert(sizeof(void*) > 8 || sizeof(acquire_call) <= 280);

TEST_CASE("what few votes have is copied with them, and gone when they are used again") {
    ballots votes;
    votes.reset(3);
    votes.set_left(0, lease_unknown);
    votes.note(2, "OOM");
    votes.set_left(1, std::chrono::milliseconds(250));
    votes.set_counter(0, 17);
    ballots copy = votes;
    votes.clear_texts();
    CHECK(copy.text(2) == "OOM");
    CHECK(votes.text(2).empty());
    CHECK(votes.left(1) == std::chrono::milliseconds(250));
    CHECK(copy.left(0) == lease_unknown);
    CHECK(copy.counter(0) == 17);
    CHECK(copy.has_counter_below(18));
    CHECK(!copy.has_counter_below(17));
    copy.of[1].said = vote::held;
    copy.reset(3);
    CHECK(copy.text(2).empty());
    CHECK(copy.counter(0) == 0);
    CHECK(copy.left(1) == lease_unknown);
    CHECK(copy.of[1].said == vote::pending);
    copy = ballots();
    CHECK(copy.of.empty());
    CHECK(copy.text(2).empty());
}

TEST_CASE("a waiter for a lock waits in its form, for a slot of a pool as for a lock") {
    unit::claim_site it;
    claim& lease = it.it;
    const owned_key key("k", std::string(owned_key::token_size, '0'));
    lease.acquire(lock_form::announced, key, {}, it.at());
    CHECK(lease.waiting_form() == lock_form::exclusive);
    CHECK(lease.queue_key() == "k");
    lease.name_slots("pool", {0, 3});
    lease.acquire(lock_form::all, key, {}, it.at());
    CHECK(lease.waiting_form() == lock_form::exclusive);
    CHECK(lease.queue_key() == "pool");
    lease.reset();
    CHECK(lease.form() == lock_form::exclusive);
    CHECK(lease.queue_key().empty());
}

TEST_CASE("a wait queue hears of the locks that it watches, until it does no more") {
    unit::quorum_site it(3);
    wait_queues queues(it.masters);
    std::string keys;
    assign_keys_of(keys, "p", std::vector<std::string>{"a", "b"});
    wait_queue& both = queues.create(lock_form::all, keys);
    wait_queue& own = queues.create(lock_form::exclusive, "p{a}");
    const auto hear = [&](std::string_view lock_key) { return queues.waiting_for(lock_key); };
    CHECK(!queues.watch(both, it.now));
    CHECK(hear("p{b}") == std::vector<wait_queue*>{&both});
    CHECK(hear("p{a}") == std::vector<wait_queue*>{&both});
    CHECK(queues.watch(own, it.now)); // the channel was subscribed already
    CHECK(hear("p{a}") == std::vector<wait_queue*>{&own, &both});
    CHECK(hear("p{c}").empty());
    queues.unwatch(both, it.now);
    CHECK(hear("p{b}").empty());
    CHECK(hear("p{a}") == std::vector<wait_queue*>{&own});
}

TEST_CASE("an operation that is used again wants one lock, and a query has found nothing") {
    acquire_call wanted;
    wanted.search = std::make_unique<slot_search>(9, 3);
    wanted.reset();
    CHECK(wanted.search == nullptr);
    query asked;
    asked.result.owner_digest = "somebody";
    asked.result.masters.resize(3);
    asked.reset();
    CHECK(asked.result.owner_digest.empty());
    CHECK(asked.result.masters.empty());
}

TEST_CASE("what nobody asked for is off") {
    CHECK(settings{}.contention_warning == 0);
    CHECK(settings{}.local_handoff_time.count() == 0);
    CHECK(master_guard{}.not_after_us == 0);
}

} // namespace state_test
