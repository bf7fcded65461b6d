// The quorum alone: which master is asked first, and how long a round trip takes.

#include "core/masters/masters.hpp"
#include "quorum_site.hpp"

namespace quorum_test { namespace {

using namespace redlock::core;
using site = unit::quorum_site;

TEST_CASE("quorum: a name that comes to mean another server lets the first one's other name vote") {
    site it(3);
    it.servers[0].run_id = it.servers[1].run_id;
    it.bring_up();
    CHECK(it.masters[1].otherwise == redlock::vote::duplicate);
    it.servers[0].run_id = "another";
    it.masters.closed(0, "reset", it.now);
    it.now += 2s;
    it.masters.time_passed(0, it.now);
    it.masters.opened(0, it.now);
    it.talk(0);
    CHECK(it.masters[1].otherwise == redlock::vote::granted);
}

TEST_CASE("quorum: contenders agree on the arbiter, whatever the order of the masters") {
    site here(3);
    site there(3);
    std::swap(there.servers[0].run_id, there.servers[2].run_id);
    CHECK(here.masters.arbiter_of("r") == nobody);
    here.bring_up();
    there.bring_up();
    std::set<std::size_t> chosen;
    for (int i = 0; i < 50; ++i) {
        const std::string key = "lock " + std::to_string(i);
        const std::size_t first = here.masters.arbiter_of(key);
        CHECK(there.masters.arbiter_of(key) == 2 - first);
        CHECK(here.masters.queue_master_of(key) == first);
        chosen.insert(first);
    }
    CHECK(chosen.size() == 3);

    const std::size_t first = here.masters.arbiter_of("r");
    here.masters.closed(first, "reset", here.now);
    CHECK(here.masters.arbiter_of("r") != first); // only a master that may vote is asked
    CHECK(here.masters.arbiter_of("r") != nobody);
}

TEST_CASE("quorum: a single master cannot be an arbiter, but keeps the queue") {
    site it(1);
    CHECK(it.masters.queue_master_of("r") == nobody);
    it.bring_up();
    CHECK(it.masters.arbiter_of("r") == nobody);
    CHECK(it.masters.queue_master_of("r") == 0);
}

TEST_CASE("quorum: the round trip is smoothed, and what took no time says nothing of it") {
    site it(1);
    CHECK(it.masters.round_trip() == 0ns);
    it.masters.measured(0ns);
    it.masters.measured(8ms);
    CHECK(it.masters.round_trip() == 8ms);
    it.masters.measured(0ns);
    it.masters.measured(16ms);
    CHECK(it.masters.round_trip() == 9ms);
}

}} // namespace quorum_test
