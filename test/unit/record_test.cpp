// The record of each master, as engines use it: nothing is granted by a server that is not known to
// have remembered for a quarantine.

#include "core/bytes/keys.hpp"
#include "virtual_quorum.hpp"

#include <regex>
#include <sstream>

namespace record_test { namespace {

using namespace unit;
namespace core = redlock::core;
namespace memory = redlock::testing::memory;
using redlock::master_state;

constexpr std::int64_t date = 1'700'000'000'000'000;
const std::string record_key = "p::epoch";

struct served_quorum {
    explicit served_quorum(
        std::size_t masters,
        bool new_servers = true,
        milliseconds max_ttl = 30s,
        core::member_names members = {})
        : it(rules_for(masters, max_ttl, std::move(members))) {
        it.each([](virtual_master& one) { one.ahead = std::chrono::microseconds(date); });
        if (new_servers) {
            it.put_records();
        }
    }

    static core::settings
    rules_for(std::size_t masters, milliseconds max_ttl, core::member_names members) {
        core::settings rules = guarded_settings_for(masters);
        if (!members.empty()) {
            rules.names = rules.members = std::move(members);
        }
        rules.max_ttl = max_ttl;
        rules.quarantine = true;
        rules.clock_offset_bound = 100ms;
        rules.health_check_interval = 1s;
        return rules;
    }
    void start(nanoseconds then) {
        it.start();
        it.run_for(then);
    }
    std::string record(std::size_t master) {
        return it.masters[master].data.find(record_key, 0)->value;
    }
    std::size_t admitted() { return it.engine.examine(it.now()).admitted; }
    master_state state(std::size_t master) {
        return it.engine.examine(it.now()).masters[master].state;
    }
    nanoseconds quarantine() const { return it.engine.rules().quarantine_time(); }

    virtual_quorum it;
};

TEST_CASE("members that a slow master reports count at once, before another connection breaks") {
    served_quorum q(3, true, 1s, {"m0", "m1", "m2"});
    q.start(5s);
    REQUIRE(q.admitted() == 3);
    // Another client has removed a master.
    std::string& record = q.it.masters[0].data.find(record_key, 0)->value;
    record = record.substr(0, record.rfind(' ') + 33)
             + core::written({core::recorded_list::state::final, {2, {"m0", "m1"}, {false, "m2"}}});
    q.it.paths[0].back = 150ms; // more than `master_timeout`: its clock is asked for again
    q.it.disconnect(0);
    REQUIRE(q.it.run_while_not([&] { return q.it.engine.examine(q.it.now()).generation == 2; }));
    acquire_options options = patient(10s);
    options.ttl = 1s;
    const std::uint64_t asked = q.it.acquire(options); // nothing is sent yet
    q.it.disconnect(1);
    q.it.paths[0].back = 1ms; // both have to vote
    CHECK(q.it.awaited(asked).won);
}

TEST_CASE(
    "a client without a max_ttl takes what is recorded, and looks again when it asks for more") {
    served_quorum q(3, true, 0ms);
    const auto recorded = [&](std::size_t master, std::string_view rest) {
        virtual_master& one = q.it.masters[master];
        one.data.put(record_key).value = "4 " + one.run_id + " - 0 " + std::string(rest);
    };
    // 2 s, twice 1 % of it, 2 ms and twice 100 ms. The third master has a longer one.
    recorded(0, "2242000 1a");
    recorded(1, "2242000 1b");
    recorded(2, "30802000 1c");
    q.it.start();
    CHECK(q.it.engine.ttl_limit() == 2s);
    q.it.engine.look_at_limit(q.it.now());
    const std::size_t asked = q.it.masters[0].count("INFO");
    q.it.run_for(1s);
    CHECK(q.it.masters[0].count("INFO") >= asked + 4); // each tenth of the longest lease
    const redlock::health found = q.it.engine.examine(q.it.now());
    CHECK(found.max_ttl == 2s);
    CHECK(found.quarantine_time == 30'802ms);
    acquire_options options = once();
    options.ttl = 2s;
    CHECK(q.it.take(options).won);
    options.ttl = 2s + 1ms;
    CHECK(q.it.acquire_now(options, "s").why == errc::invalid_argument);
    CHECK(q.record(0).ends_with(" 2242000 1a"));

    recorded(1, "30802000 2b");
    CHECK(q.it.acquire_now(options, "s").why == errc::invalid_argument);
    q.it.run_for(10ms);
    CHECK(q.it.engine.ttl_limit() == 30s);
    const answer got = q.it.acquire_now(options, "t");
    CHECK(got.won);
    CHECK(got.votes[0] != vote::granted); // its quarantine would be too short
}

TEST_CASE(
    "the first fencing token of a name takes one round trip, if clocks are within their bound") {
    for (const milliseconds apart : {0ms, 15ms, 120ms}) {
        served_quorum q(5);
        for (std::size_t i = 0; i < 5; ++i) {
            q.it.masters[i].ahead += static_cast<int>(i) * apart;
        }
        q.start(100ms);
        REQUIRE(q.admitted() == 5);
        for (int i = 0; i < 100; ++i) {
            CHECK(q.it.take(fenced(), "r" + std::to_string(i)).won);
            q.it.run_for(std::chrono::microseconds(1'234));
        }
        CHECK(q.it.engine.count().raised == (apart == 120ms ? 100 : 0));
    }
}

TEST_CASE("a server whose record needs no change gets no handshake") {
    served_quorum first(3, true, 2s, {"a", "b", "c"});
    first.start(1s);
    REQUIRE(first.admitted() == 3);
    const auto replaced = [](const std::string& pattern, const std::string& by) {
        return [=](virtual_master&, std::string& record) {
            record = std::regex_replace(record, std::regex(pattern), by);
        };
    };
    const auto handshakes = [&](milliseconds max_ttl, const auto& change) {
        served_quorum next(3, true, max_ttl, {"a", "b", "c"});
        const std::int64_t born = next.it.masters[0].wall_us(next.it.now()) - 2'300'000;
        for (std::size_t i = 0; i < 3; ++i) {
            std::string& record = next.it.masters[i].data.put(record_key).value;
            record = first.record(i);
            replaced("- \\d+ ", "- " + std::to_string(born) + " ")(next.it.masters[i], record);
            change(next.it.masters[i], record);
        }
        next.start(1ms);
        const auto sent = next.it.masters[0].count("EVAL handshake");
        CHECK((sent > 0 || next.admitted() == 3));
        return sent;
    };
    CHECK(handshakes(2s, replaced("x", "x")) == 0);
    CHECK(handshakes(1s, replaced("x", "x")) == 0);
    CHECK(handshakes(3s, replaced("x", "x")) > 0);                         // it asks for more
    CHECK(handshakes(2s, replaced("^4 run", "4 other")) > 0);              // another server
    CHECK(handshakes(2s, replaced("- \\d+ ", "- 2000000000000000 ")) > 0); // its clock went back
    CHECK(handshakes(2s, replaced(" \\d+ (\\w+)$", " 0 $1")) > 0);         // without a quarantine
    CHECK(handshakes(2s, replaced("(\\w{32})\\w*$", "$1")) > 0);           // without a list
    CHECK(handshakes(2s, replaced("^4", "5")) > 0);                        // of another format
    for (const bool recorded : {false, true}) {
        const auto promoted = [&](virtual_master& one, std::string& record) {
            one.info_overrides["master_replid2"] = std::string(40, 'a');
            replaced(" - ", recorded ? " " + std::string(40, 'a') + " " : " - ")(one, record);
        };
        CHECK((handshakes(2s, promoted) == 0) == recorded);
    }
    CHECK(handshakes(2s, replaced(" - ", " " + std::string(40, 'a') + " ")) == 0);
}

TEST_CASE("a client whose quarantine is off records one for the first client that has one") {
    const auto start = [](bool has_one, milliseconds max_ttl, const std::string& before) {
        core::settings rules = served_quorum::rules_for(3, max_ttl, {});
        rules.quarantine = has_one;
        virtual_quorum it(rules);
        for (virtual_master& one : it.masters) {
            one.ahead = std::chrono::microseconds(date);
            one.data.put(record_key).value = before.empty()
                                                 ? core::record_of_new_server(one.run_id)
                                                 : "4 " + one.run_id + " - 0 " + before + " 1a";
        }
        it.start();
        it.run_for(100ms);
        CHECK(it.engine.examine(it.now()).admitted == 3);
        std::istringstream words(it.masters[0].data.find(record_key, 0)->value);
        std::string word;
        for (int i = 0; i < 5; ++i) {
            words >> word;
        }
        return word;
    };
    constexpr auto of_2s = "2242000"; // 2 s, twice 1 % of it, 2 ms and twice 100 ms
    CHECK(start(false, 2s, "") == "0/2242000");
    CHECK(start(false, 2s, "0/30802000") == "0/30802000");
    CHECK(start(false, 0s, "") == "0/30802000"); // it acquires for 30 s at most
    CHECK(start(false, 0s, of_2s) == of_2s);     // it takes what is recorded
    CHECK(start(false, 30s, of_2s) == "30802000");
    CHECK(start(true, 2s, "0/30802000") == "30802000");
    CHECK(start(true, 2s, "0/1000") == of_2s);
}

TEST_CASE("while a smaller max_ttl is planned, new leases and renewals are at most that long") {
    const core::member_names members{"m0", "m1", "m2"};
    served_quorum q(3, true, 0ms, members);
    q.start(200ms);
    REQUIRE(q.it.engine.ttl_limit() == 30s);
    acquire_options options = renewed();
    const answer lease = q.it.take(options);
    REQUIRE(lease.won);

    const core::recorded_list plan{
        core::recorded_list::state::planned, {2, members, {false, {}, 500ms}}};
    for (std::size_t i = 0; i < 3; ++i) {
        const std::string before = q.record(i);
        q.it.masters[i].data.put(record_key).value = before.substr(0, before.rfind(' ') + 1)
                                                     + std::string(32, "abc"[i])
                                                     + core::written(plan);
    }
    q.it.engine.look_at_limit(q.it.now());
    q.it.run_for(10ms);
    CHECK(q.it.engine.ttl_limit() == 500ms);
    options.ttl = 501ms;
    CHECK(q.it.acquire_now(options, "s").why == errc::invalid_argument);
    q.it.run_for(20s);
    CHECK(!q.it.lost_by(lease));
}

TEST_CASE("a master whose clock is stepped while clients are connected begins to remember") {
    for (const auto by : {3600s, -3600s}) {
        served_quorum q(3);
        q.start(5s);
        q.it.masters[1].ahead += by;
        q.it.run_for(3s);
        CHECK(q.state(1) == master_state::quarantined);
        CHECK(q.it.logged("its clock was stepped by ") == 1);
        CHECK(q.it.logged("seem to have been stepped at once") == 0);
        CHECK(q.record(1).starts_with("4 run-1 - 1")); // born, not 0
        CHECK(q.record(0).starts_with("4 run-0 - 0 "));
        q.it.run_for(q.quarantine() + 1s);
        CHECK(q.admitted() == 3);
        CHECK(q.record(1).starts_with("4 run-1 - 1"));
    }
}

TEST_CASE("what was queued before a record changed does not count under the new one") {
    served_quorum q(1, true, 0ms);
    std::string& record = q.it.masters[0].data.put(record_key).value;
    record = "4 run-0 - 0 30802000 1a";
    q.it.start();
    q.it.paths[0].hung = true;
    q.it.engine.look_at_limit(q.it.now());
    q.it.run_for(1ns);
    std::string asked = std::exchange(q.it.paths[0].inbox, {});
    q.it.paths[0].hung = false;
    record = "4 run-0 - 0 2242000 1b";               // of 2 s
    const std::uint64_t name = q.it.acquire(once()); // it is not sent before the replies
    while (const auto words = virtual_master::take_command(asked)) {
        q.it.engine.received(0, q.it.masters[0].execute(*words, q.it.now()), q.it.now());
    }
    CHECK(!q.it.awaited(name).won); // it lasts for 10 s
}

TEST_CASE(
    "where several masters seem to be stepped at once, our own clock was: nothing is written") {
    served_quorum q(3);
    q.start(5s);
    q.it.each([](virtual_master& one) { one.ahead += 3600s; });
    q.it.run_for(5s);
    CHECK(q.admitted() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(q.record(i).starts_with("4 run-" + std::to_string(i) + " - 0 "));
    }
    // A step after that is seen as any.
    q.it.masters[0].ahead -= 3600s;
    q.it.run_for(5s);
    CHECK(q.admitted() == 2);
}

TEST_CASE("a clock that is set late in a quarantine is noticed before the master votes") {
    served_quorum q(1, false);
    q.start(q.quarantine() - 10ms);
    q.it.masters[0].ahead += 3600s; // what a holder has healed there expires
    q.it.run_for(50ms);
    CHECK(q.state(0) == master_state::quarantined);
    CHECK(!q.it.acquire_now(once()).won);
    q.it.run_for(q.quarantine() - 1s);
    CHECK(q.admitted() == 0);
    q.it.run_for(2s);
    CHECK(q.admitted() == 1);
}

TEST_CASE("a master with a record of another format does not vote, and says what to do") {
    served_quorum q(3);
    q.it.masters[0].data.put(record_key).is = memory::entry::type::hash; // of version 0.1
    q.it.masters[1].data.put(record_key).value = "5 of a version to come";
    q.it.start();
    for (const std::size_t i : {0U, 1U}) {
        const auto seen = q.it.engine.examine(q.it.now()).masters[i];
        CHECK(seen.state == master_state::ineligible);
        CHECK(
            seen.text
            == "its memory record 'p::epoch' is of another version of redlock, or damaged: "
               "stop all clients of another version, then delete the record");
    }
    CHECK(q.record(1) == "5 of a version to come");
    q.it.masters[0].data.clear();
    q.it.masters[2].data.clear(); // which is noticed without any lock
    q.it.run_for(2s);
    CHECK(q.state(0) == master_state::quarantined);
    CHECK(q.state(2) == master_state::quarantined);
    q.it.run_for(q.quarantine());
    CHECK(q.state(0) == master_state::admitted);
}

}} // namespace record_test
