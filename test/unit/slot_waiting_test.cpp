// Waiting for any slot of a pool on a virtual clock.

#include "waiters.hpp"

namespace slot_waiting_test { namespace {

using namespace unit;
namespace core = redlock::core;

// The slots whose removal notifies the pool's waiters.
std::set<std::string> told_free(const virtual_quorum& it) {
    std::set<std::string> out;
    for (const virtual_master& server : it.masters) {
        std::string removed; // the removal before: its key, a ttl and the token
        for (const std::string& line : server.seen) {
            const std::size_t key = line.find("p:{r}:slot:");
            if (line.find(" remove 1 ") != line.npos) {
                removed = line.substr(key);
            } else if (line.starts_with("PUBLISH p:{r}:slot:free ")) {
                CHECK(removed.find(line.substr(24)) != removed.npos);
                out.insert(removed.substr(0, removed.find(' ')));
            }
        }
    }
    return out;
}

TEST_CASE("the release of any slot wakes a waiter for one") {
    started_quorum it(rules_without_polling(3));
    for (std::uint32_t i = 0; i < 4; ++i) {
        it.hold_everywhere(slot_key(i));
    }
    const auto name = it.acquire_slot(waiting(), 4, 1s);
    CHECK(it.asked("SET") == 0);
    CHECK(!it.has_sent_nothing(name)); // it has searched
    const std::size_t scans = it.asked("MGET");
    CHECK(scans <= 3 * 3); // at first, and when the subscriptions were confirmed
    it.run_for(100s);
    CHECK(it.asked("MGET") == scans);
    it.free_everywhere(slot_key(2));
    it.push_everywhere("p:{r}:slot:free", "one");
    REQUIRE(it.run_while_not([&] { return it.answer_to(name) != nullptr; }, 1s));
    CHECK(it.answered(name).slots.at(0) == 2);
    it.release(it.answered(name));
    CHECK(it.idle());
    CHECK(it.asked("UNSUBSCRIBE p:{r}:slot:free") == 3);
}

TEST_CASE("a slot that is handed off costs the masters nothing") {
    started_quorum it(rules_without_polling(3, 1h));
    answer mine = it.acquire_slot_now(waiting(), 1);
    std::vector<std::uint64_t> names;
    for (int i = 0; i < 5; ++i) {
        names.push_back(it.acquire_slot(waiting(), 1));
    }
    it.run_for(1s);
    const std::size_t scans = it.asked("MGET");
    for (const auto name : names) {
        it.release(mine, 10ms);
        mine = it.answered(name);
    }
    CHECK(it.asked("MGET") == scans);
    CHECK(it.asked("SET") == 3);
}

TEST_CASE("a slot that a handoff has made needless is announced to other processes") {
    started_quorum it(rules_without_polling(3, 1h));
    const answer mine = it.acquire_slot_now(waiting(), 2);
    const std::uint32_t other = 1 - mine.slots.at(0);
    it.hold_everywhere(slot_key(other));
    const auto name = it.acquire_slot(waiting(), 2, 1s);
    it.free_everywhere(slot_key(other));
    it.push_everywhere("p:{r}:slot:free", "one");
    // The masters have given it the other slot, and it has not heard of that.
    REQUIRE(it.run_while_not([&] { return it.asked("SET " + slot_key(other)) == 3; }, 1s));
    REQUIRE(it.answer_to(name) == nullptr);
    it.release(mine);
    CHECK(it.answered(name).slots == mine.slots);
    it.run_for(10ms);
    CHECK(told_free(it) == std::set<std::string>{slot_key(other)});
}

TEST_CASE("an acquire that had a part of a slot, and looks for another, notifies other processes") {
    started_quorum it(rules_without_polling(3));
    std::map<std::string, std::size_t> firsts; // its voters; elsewhere a thief was faster
    for (std::size_t i = 0; i < 3; ++i) {
        it.masters[i].when = [&, i](const arguments& words) {
            if (words[0] == "SET" && firsts.emplace(words[1], i).first->second != i) {
                it.masters[i].put(words[1], "thief");
            }
            return mishap::none;
        };
    }
    const auto name = it.acquire_slot(waiting(), core::slot_search::tries_max, 1s);
    CHECK(it.answer_to(name) == nullptr);
    CHECK(firsts.size() == core::slot_search::tries_max);
    CHECK(told_free(it).size() == core::slot_search::tries_max);
}

TEST_CASE("a lock that is named like a pool's slot is not handed off as a slot") {
    core::settings rules = rules_with(3, 1h, true);
    rules.key_prefix.clear();
    started_quorum it(rules);
    const answer mine = it.acquire_now(waiting(), "{r}:slot");
    it.hold_everywhere("{r}:slot:0");
    const auto other = it.acquire_slot(waiting(), 1, 50ms);
    it.release(mine, 5s);
    CHECK(it.answer_to(other) == nullptr);
}

}} // namespace slot_waiting_test
