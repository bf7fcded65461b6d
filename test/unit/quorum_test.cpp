// The quorum alone: which masters may vote, which one is asked first, and when a majority is known.

#include "core/masters/masters.hpp"
#include "quorum_site.hpp"

namespace quorum_test { namespace {

using namespace redlock::core;
using redlock::time_point;
using redlock::vote;

constexpr unsigned bit(unsigned master) {
    return 1U << master;
}

using site = unit::quorum_site;
using all = std::vector<vote>;
constexpr vote admitted = vote::granted;
constexpr vote away = vote::unreachable;

TEST_CASE("quorum: masters vote once they have introduced themselves, and a majority is ready") {
    site it(3);
    CHECK(it.masters.next_due() == forever);
    it.masters.start(it.now);
    CHECK(it.masters.next_due() == it.now + it.rules.connect_timeout);
    CHECK(it.votes() == all{away, away, away});
    CHECK(it.masters.why_not(1, it.now) == "not connected yet");

    it.introduce(2);
    CHECK(it.votes() == all{away, away, admitted});
    CHECK(std::exchange(it.changed, 0) == bit(2));
    CHECK(!it.masters.ready());
    CHECK(it.readied == 0);

    it.introduce(0);
    CHECK(it.masters.ready());
    CHECK(it.readied == 1);
    it.introduce(1);
    CHECK(it.masters.admitted() == 3);
    CHECK(it.readied == 1);
    CHECK(it.masters.why_not(1, it.now).empty());

    it.masters.closed(0, "reset", it.now);
    it.masters.closed(1, "reset", it.now);
    CHECK(it.votes() == all{away, away, admitted});
    CHECK(it.masters.why_not(1, it.now) == "reset");
    CHECK(!it.masters.ready());
    it.wait(2s);
    it.introduce(1);
    CHECK(it.readied == 2);

    CHECK(it.masters.clock_stepped(2, it.now)); // it is not to be judged any more
    it.masters.stop("closed", it.now);
    CHECK(it.masters.next_due() == forever);
    CHECK(it.masters.admitted() == 0);
    CHECK(it.masters.why_not(2, it.now) == "closed");
}

TEST_CASE("quorum: a server with two names votes once, under the name that was seen first") {
    site it(3);
    it.servers[0].run_id = it.servers[1].run_id;
    it.masters.start(it.now);
    it.introduce(1);
    it.introduce(0);
    it.introduce(2);
    CHECK(it.votes() == all{vote::duplicate, admitted, admitted});
    it.masters.closed(1, "reset", it.now);
    CHECK(it.votes() == all{vote::duplicate, away, admitted});
    it.wait(2s);
    it.introduce(1);
    CHECK(it.votes() == all{vote::duplicate, admitted, admitted});
    // The name comes to mean another server: the other one ceases to be a duplicate.
    it.servers[1].run_id = "another";
    it.masters.closed(1, "reset", it.now);
    it.changed = 0;
    it.wait(2s);
    it.introduce(1);
    CHECK(it.votes() == all{admitted, admitted, admitted});
    CHECK(it.changed == (bit(0) | bit(1)));
}

TEST_CASE("quorum: a master that did not answer yet may be slow if it has had no time for it") {
    site it(3);
    CHECK(it.masters.may_be_slow(it.now, it.now) == 0);
    it.masters.start(it.now);
    it.masters.opened(0, it.now);
    it.now += 10ms;
    it.talk(0); // its round trip is 10 ms
    const time_point asked = it.now;
    it.ask(0);
    CHECK(it.masters.may_be_slow(asked, asked + 39ms) == bit(0));
    CHECK(it.masters.may_be_slow(asked, asked + 40ms) == 0);
    CHECK(it.masters.may_be_slow(asked - 1ns, asked + 40ms) == bit(0)); // it has answered since
    it.wait(it.rules.master_timeout);
    CHECK(it.masters.may_be_slow(asked - 1ns, it.now) == 0); // silent
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

TEST_CASE("quorum: a master whose clock alone was stepped begins to remember anew") {
    settings rules = unit::settings_for(3);
    rules.quarantine = true;
    site it(rules);
    it.bring_up();
    const time_point due = it.now + rules.master_timeout;
    CHECK(it.masters.judge_steps(due) == 0);
    CHECK(it.masters.clock_stepped(1, it.now)->masters == set_of(1));
    CHECK(!it.masters.clock_stepped(1, it.now)); // that is known
    CHECK(it.masters[1].otherwise == vote::quarantined);
    CHECK(it.masters.next_due() == due);
    CHECK(it.masters.output(1).empty());
    CHECK(it.masters.output(0).find("TIME") != std::string::npos); // it tells whose clock it was
    it.talk(0);
    it.talk(2);
    CHECK(it.masters.judge_steps(due - 1ns) == 0);
    CHECK(it.masters.judge_steps(due) == 1);
    it.masters.time_passed(1, due);
    CHECK(it.masters[1].otherwise == vote::quarantined); // until the new record
    CHECK(it.talk(0).empty());
    CHECK(it.talk(1) == std::vector<std::string>{"EVAL", "INFO"});
    CHECK(it.masters.judge_steps(due) == 0);
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
