#include "core/bytes/keys.hpp"
#include "waiters.hpp"

namespace query_test { namespace {

using namespace unit;
namespace core = redlock::core;
using redlock::lock_state;
using redlock::lock_status;

constexpr core::reply text(std::string_view value) {
    return {core::reply_type::string, 0, value, {}};
}
constexpr core::reply number(std::int64_t value) {
    return {core::reply_type::integer, value, {}, {}};
}

lock_status asked(virtual_quorum& it) {
    it.statuses.clear();
    it.engine.query(1, "r", 0, it.now());
    it.run_while_not([&] { return !it.statuses.empty(); });
    return it.statuses.at(0);
}

TEST_CASE("a master that may have lost the key does not show that a lock is free") {
    core::settings rules = guarded_settings_for(3);
    rules.quarantine = true;
    virtual_quorum it(rules);
    it.masters[2].put("p::epoch", core::record_of_new_server(it.masters[2].run_id));
    it.start();
    const lock_status found = asked(it);
    CHECK(found.state == lock_state::undecided);
    for (const std::size_t master : {0U, 1U, 2U}) {
        INFO(found.masters[master].text);
        CHECK(found.masters[master].vote == vote::absent);
        const bool excused = found.masters[master].text.find(" left: ") != std::string::npos;
        CHECK(excused == (master < 2));
    }
    it.engine.query(1, "r", 2, it.now());
    REQUIRE(it.run_while_not([&] { return !it.pools.empty(); }));
    CHECK(it.pools[0].count(lock_state::undecided) == 2);
    CHECK(it.pools[0].state == lock_state::undecided);
    CHECK(it.pools[0].masters.at(2).vote == vote::absent);

    it.run_for(rules.quarantine_time() + 10s);
    CHECK(asked(it).state == lock_state::free);
    it.engine.query(1, "r", 2, it.now());
    REQUIRE(it.run_while_not([&] { return it.pools.size() == 2; }));
    CHECK(it.pools[1].count(lock_state::free) == 2);
    CHECK(it.pools[1].state == lock_state::free);
}

TEST_CASE("masters that were emptied a moment ago do not show that a lock or a slot is free") {
    started_quorum it(guarded_settings_for(3));
    CHECK(asked(it).state == lock_state::free);
    it.masters[0].data.clear();
    it.masters[1].data.clear();
    it.engine.query(1, "r", 2, it.now()); // the same moment: no reply has shown it yet
    const lock_status found = asked(it);
    CHECK(found.state == lock_state::undecided);
    CHECK(found.masters[0].vote == vote::absent);
    CHECK(found.masters[0].text == "its memory record has changed");
    CHECK(found.masters[2].text.empty());
    REQUIRE(it.run_while_not([&] { return !it.pools.empty(); }));
    CHECK(it.pools[0].count(lock_state::undecided) == 2);
}

TEST_CASE("a lock that a majority has with one token is held, until that majority ends") {
    started_quorum it(3);
    it.masters[0].put(it.key(), "token", it.now() + 1s);
    it.masters[1].put(it.key(), "token", it.now() + 3s);
    it.masters[2].put(it.key(), "token", it.now() + 2s);
    const lock_status found = asked(it);
    CHECK(found.state == lock_state::held);
    CHECK(found.time_left == 2s);
    CHECK(found.owner_digest.size() == 16);
    CHECK(found.owner_digest.find("token") == std::string::npos);
    CHECK(found.masters[1].time_left == 3s);
    CHECK(found.masters[1].owner_digest == found.owner_digest);
}

TEST_CASE("a query ends with the last reply, that of the number of readers included") {
    started_quorum plain(3);
    const redlock::time_point began = plain.now();
    CHECK(asked(plain).state == lock_state::free);
    CHECK(plain.now() < began + 50ms);
    started_quorum it(guarded_settings_for(3));
    it.each([&](virtual_master& one) { one.put(it.key(), "readers", it.now() + 10s); });
    const redlock::time_point then = it.now();
    const lock_status found = asked(it);
    CHECK(found.state == lock_state::held);
    CHECK(found.readers == 1);
    CHECK(it.now() < then + 50ms);
    core::query alone;
    alone.begin(1);
    alone.asked(0, 2);
    alone.answered(0, core::command_kind::get, text(core::held_by_readers));
    alone.answered(0, core::command_kind::count_readers, number(4));
    CHECK(alone.complete());
    CHECK(alone.result.masters[0].readers == 4);
}

TEST_CASE("a lock in its last millisecond has no time left, one that stays for centuries a year") {
    const std::pair<const char*, milliseconds> rows[] = {
        {":0\r\n", 0ms},
        {":9000000000000000000\r\n", std::chrono::years(1)}, // more than nanoseconds can count
    };
    for (const auto& [said, left] : rows) {
        started_quorum it(3);
        it.hold_everywhere();
        it.each([&, text = said](virtual_master& server) { server.replies["PTTL"] = text; });
        const lock_status found = asked(it);
        CHECK(found.state == lock_state::held);
        CHECK(found.time_left == left);
        CHECK(found.masters[0].time_left == left);
    }
}

TEST_CASE("a lock that is split between tokens is undecided") {
    started_quorum it(3);
    it.masters[0].put(it.key(), "a", it.now() + 1s);
    it.masters[1].put(it.key(), "b", it.now() + 1s);
    const lock_status found = asked(it);
    CHECK(found.state == lock_state::undecided);
    CHECK(found.masters[0].owner_digest != found.masters[1].owner_digest);
}

TEST_CASE("a master that breaks in the middle of a query is unreachable, and counted once") {
    started_quorum it(3);
    it.masters[0].when = [](const arguments& words) {
        return words[0] == "PTTL" ? mishap::break_before : mishap::none;
    };
    const lock_status found = asked(it);
    CHECK(found.state == lock_state::free);
    CHECK(found.masters[0].vote == vote::unreachable);
    it.run_for(1s);
    CHECK(it.statuses.size() == 1);
}

TEST_CASE("a key without expiry or of another type is not a lock of this library") {
    started_quorum it(3);
    it.masters[0].put(it.key(), "token");
    it.masters[1].replies["GET"] = "-WRONGTYPE Operation against a key\r\n";
    it.masters[2].replies["GET"] = "-NOPERM no permissions\r\n";
    const lock_status found = asked(it);
    CHECK(found.state == lock_state::undecided);
    CHECK(found.masters[0].vote == vote::owned_by_other);
    CHECK(found.masters[1].vote == vote::owned_by_other);
    CHECK(found.masters[2].vote == vote::error);
    CHECK(found.masters[2].text == "NOPERM no permissions");
}

TEST_CASE("only the replies of members decide a query, and each is awaited") {
    using redlock::core::command_kind;
    core::query asked;
    asked.begin(4);
    CHECK(asked.complete());
    for (const std::size_t master : {0U, 1U}) {
        asked.asked(master, 2);
        asked.answered(master, command_kind::get, text("token"));
        CHECK(!asked.complete());
        asked.answered(master, command_kind::pttl, number(700));
    }
    asked.asked(2, 2);
    asked.answered(2, command_kind::get, {});
    asked.dropped(2, "reset");
    CHECK(asked.complete());

    core::query read = asked;
    for (redlock::master_vote& one : read.result.masters) {
        one.readers = 3;
    }
    read.result.masters[0].readers = 2;
    core::query other = asked;
    read.decide(0b0111, 2);
    CHECK(read.result.readers == 2); // the others have no vote, or did not reply
    CHECK(redlock::to_string(read.result).starts_with("held by 2 readers, 700 ms left: "));
    asked.decide(0b0111, 2);
    CHECK(asked.result.readers == 0);
    CHECK(asked.result.state == lock_state::held);
    CHECK(asked.result.time_left == 700ms);
    CHECK(asked.result.masters[2].text == "reset");
    CHECK(asked.result.masters[3].vote == vote::timed_out);
    other.decide(0b1110, 2); // the first is not a member
    CHECK(other.result.state == lock_state::undecided);
}

TEST_CASE("the status of a pool has the owner that a majority has") {
    core::query asked;
    asked.begin(3, 2);
    std::vector<core::reply> slots{text("a"), {}};
    const core::reply got{core::reply_type::array, 2, {}, slots};
    for (const std::size_t master : {0U, 1U, 2U}) {
        asked.asked(master, 1);
    }
    asked.slots_answered(0, 0, got);
    asked.slots_answered(1, 0, got);
    CHECK(!asked.complete());
    std::swap(slots[0], slots[1]);
    slots[1].text = "b";
    asked.slots_answered(2, 0, got);
    CHECK(asked.complete());
    asked.decide(0b111, 2);
    const lock_status& status = asked.result;
    CHECK(status.state == lock_state::free);
    for (const redlock::master_vote& one : status.masters) {
        CHECK(one.vote == vote::held);
        CHECK(one.text == "1 of 2 slots are free there");
    }
    CHECK(status.slots[0].state == lock_state::held);
    CHECK(status.slots[1].state == lock_state::free);
}

}} // namespace query_test
