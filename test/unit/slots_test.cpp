// The slots of a pool on a virtual clock: what a survey makes of the masters' answers, and what an
// acquire does with it.

#include "core/survey.hpp"
#include "virtual_quorum.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace unit;
using namespace std::chrono_literals;
namespace core = redlock::core;
using redlock::lock_state;

namespace {

std::string slot_key(std::uint32_t number, const std::string& pool = "r") {
    return "p:{" + pool + "}:slot:" + std::to_string(number);
}

// Somebody else's, for good.
void hold(virtual_quorum& it, std::uint32_t number) {
    for (virtual_master& server : it.masters) {
        server.keys[slot_key(number)] = {"somebody"};
    }
}

void let_go(virtual_quorum& it, std::uint32_t number) {
    for (virtual_master& server : it.masters) {
        server.keys.erase(slot_key(number));
    }
}

bool has_slot_key(virtual_quorum& it) {
    return std::ranges::any_of(it.masters, [&](const virtual_master& server) {
        return std::ranges::any_of(server.keys, [&](const auto& one) {
            return one.first.find(":slot:") != std::string::npos && one.second.expires > it.now();
        });
    });
}

std::size_t asked(const virtual_quorum& it, std::string_view what) {
    std::size_t all = 0;
    for (const virtual_master& server : it.masters) {
        all += server.count(what);
    }
    return all;
}

acquire_options waiting(redlock::wait_for wait = redlock::wait_for::forever()) {
    acquire_options options = renewed();
    options.wait = wait;
    return options;
}

core::settings rules_with(std::size_t masters, std::size_t hand_overs, bool pushes) {
    core::settings rules = settings_for(masters);
    rules.hand_overs_max = hand_overs;
    rules.pushes = pushes;
    return rules;
}

// Nothing but pushes and hand-over wakes anybody.
core::settings rules_without_polling(std::size_t masters, std::size_t hand_overs) {
    core::settings rules = rules_with(masters, hand_overs, true);
    rules.retry_delay_min = rules.retry_delay_max = 1h;
    return rules;
}

// The slots of whose removal the pool's waiters are told.
std::set<std::string> told_free(const virtual_quorum& it) {
    std::set<std::string> out;
    for (const virtual_master& server : it.masters) {
        for (const std::string& line : server.seen) {
            const std::size_t key = line.find("p:{r}:slot:");
            if (line.find(" remove 1 ") != line.npos && line.ends_with(" p:{r}:slot:free")) {
                out.insert(line.substr(key, line.find(' ', key) - key));
            }
        }
    }
    return out;
}

std::vector<std::uint32_t> chosen(const core::census& found, std::size_t most) {
    core::jitter random(7);
    std::vector<std::uint32_t> out{99};
    found.choose(most, random, out);
    return out;
}

} // namespace

TEST_CASE("a slot is worth asking for where it is free on a majority") {
    core::census found;
    found.reset(3, 2, 4);
    for (std::size_t i = 0; i < 3; ++i) {
        found.asked(i, 1);
    }
    found.told(0, 0, "1100");
    CHECK(found.found() == 0);
    CHECK(!found.decided());
    found.told(1, 0, "1010");
    CHECK(found.found() == 1);
    CHECK(found.decided());
    CHECK(chosen(found, 9) == std::vector<std::uint32_t>{0});
    found.told(2, 0, "0110");
    CHECK(found.over());
    CHECK(found.complete() == 3);
    CHECK(found.free_on(2) == 2);
    CHECK(std::ranges::is_permutation(chosen(found, 9), std::vector<std::uint32_t>{0, 1, 2}));
}

TEST_CASE("a survey that found nothing waits for all who owe an answer") {
    core::census found;
    found.reset(3, 2, 600);
    for (std::size_t i = 0; i < 3; ++i) {
        found.asked(i, 2);
    }
    const std::string none(512, '0');
    const std::string rest(88, '0');
    for (std::size_t i = 0; i < 2; ++i) {
        found.told(i, 0, none);
        CHECK(found.complete() == i);
        found.told(i, 512, rest);
    }
    CHECK(found.complete() == 2);
    CHECK(!found.decided());
    CHECK(found.owes(2));
    found.told(2, 0, none);
    found.failed(2);
    CHECK(found.decided());
    CHECK(found.complete() == 2); // half an answer is none
    CHECK(chosen(found, 9).empty());
}

TEST_CASE("each free slot is chosen about as often as the others") {
    core::census found;
    found.reset(1, 1, 10);
    found.asked(0, 1);
    found.told(0, 0, "1111111111");
    core::jitter random(1);
    std::vector<int> first(10);
    std::vector<std::uint32_t> some;
    for (int i = 0; i < 10'000; ++i) {
        found.choose(3, random, some);
        REQUIRE(some.size() == 3);
        CHECK(std::set<std::uint32_t>(some.begin(), some.end()).size() == 3);
        ++first[some[0]];
    }
    for (const int times : first) {
        CHECK(times > 800);
        CHECK(times < 1200);
    }
}

TEST_CASE("who has a slot is what a majority says") {
    CHECK(core::judge_slot({"a", "a", "b"}, 2).state == lock_state::held);
    CHECK(core::judge_slot({"a", "b", "b"}, 2).owner == core::judge_slot({"b", "b"}, 2).owner);
    CHECK(core::judge_slot({"a", "b", ""}, 2).state == lock_state::undecided);
    CHECK(core::judge_slot({"", "a", ""}, 2).state == lock_state::free);
    CHECK(core::judge_slot({"a"}, 2).state == lock_state::undecided);
    CHECK(core::judge_slot({}, 2).state == lock_state::undecided);
}

TEST_CASE("the slots of a pool are taken one each, and then it is full") {
    virtual_quorum it(3);
    it.start();
    std::set<std::uint32_t> numbers;
    std::vector<answer> held;
    for (int i = 0; i < 5; ++i) {
        held.push_back(it.acquire_slot_now(once(), 5));
        REQUIRE(held.back().won);
        numbers.insert(held.back().slots.at(0));
        for (virtual_master& server : it.masters) {
            CHECK(
                server.value_of(slot_key(held.back().slots.at(0)), it.now()) == held.back().token);
        }
    }
    CHECK(numbers == std::set<std::uint32_t>{0, 1, 2, 3, 4});
    const answer none = it.acquire_slot_now(once(), 5);
    CHECK(none.why == errc::contended);
    CHECK(none.votes == std::vector<vote>(3, vote::held));
    it.release(held[3]);
    const answer again = it.acquire_slot_now(once(), 5);
    REQUIRE(again.won);
    CHECK(again.slots.at(0) == held[3].slots.at(0));
    held[3] = again;
    for (const answer& one : held) {
        it.release(one);
    }
    CHECK(it.idle());
    CHECK(!has_slot_key(it));
}

TEST_CASE("one survey and one attempt find the free slots of a thousand") {
    virtual_quorum it(5);
    it.start();
    for (std::uint32_t i = 0; i < 1000; ++i) {
        if (i % 100 != 0) {
            hold(it, i);
        }
    }
    const answer mine = it.acquire_slot_now(once(), 1000);
    REQUIRE(mine.won);
    CHECK(mine.slots.at(0) % 100 == 0);
    CHECK(mine.attempts == 1);
    CHECK(asked(it, "MGET") == 2 * 5); // 512 slots and the rest
    CHECK(asked(it, "SET") == 5);
}

TEST_CASE("a slot that somebody else took since the survey costs one attempt") {
    virtual_quorum it(3);
    it.start();
    std::string taken;
    for (virtual_master& server : it.masters) {
        server.when = [&](const arguments& words) {
            if (words[0] == "SET" && taken.empty()) {
                taken = words[1];
                for (virtual_master& each : it.masters) {
                    each.keys[taken] = {"somebody"};
                }
            }
            return mishap::none;
        };
    }
    const answer mine = it.acquire_slot_now(once(), 3);
    REQUIRE(mine.won);
    CHECK(mine.attempts == 2);
    CHECK(slot_key(mine.slots.at(0)) != taken);
    CHECK(asked(it, "MGET") == 3);
}

TEST_CASE("a slot whose key was left on a minority is free, and is tried") {
    virtual_quorum it(3);
    it.start();
    hold(it, 0);
    it.masters[2].keys[slot_key(1)] = {"left over"};
    const answer mine = it.acquire_slot_now(once(), 2);
    REQUIRE(mine.won);
    CHECK(mine.slots.at(0) == 1);
}

TEST_CASE("without a majority there is no survey") {
    virtual_quorum it(3);
    it.paths[0].reachable = it.paths[1].reachable = false;
    it.start();
    const answer none = it.acquire_slot_now(once(), 3);
    CHECK(none.why == errc::no_quorum);
    CHECK(none.votes[0] == vote::unreachable);
    CHECK(asked(it, "MGET") == 0);
    CHECK(it.engine.count().waiting == 0);
}

TEST_CASE(
    "a master that is silent holds a survey up for its time only, and only if nothing is found") {
    virtual_quorum it(3);
    it.start();
    it.paths[1].hung = true;
    const time_point began = it.now();
    const answer mine = it.acquire_slot_now(once(), 3);
    REQUIRE(mine.won);
    CHECK(it.now() < began + 100ms);

    virtual_quorum full(3);
    full.start();
    hold(full, 0);
    full.paths[1].hung = true;
    const time_point then = full.now();
    const answer none = full.acquire_slot_now(once(), 1);
    CHECK(none.why == errc::contended);
    CHECK(full.now() == then + 100ms);
    CHECK(none.votes == std::vector<vote>{vote::held, vote::timed_out, vote::held});
}

TEST_CASE("two masters that break during a survey are an outage") {
    virtual_quorum it(3);
    it.start();
    for (const std::size_t i : {0U, 2U}) {
        it.masters[i].when = [](const arguments& words) {
            return words[0] == "MGET" ? mishap::break_before : mishap::none;
        };
    }
    const answer none = it.acquire_slot_now(once(), 3);
    CHECK(none.why == errc::no_quorum);
    CHECK(none.votes[0] == vote::unreachable);
    CHECK(none.votes[2] == vote::unreachable);
}

TEST_CASE("the release of any slot wakes who waits for one") {
    virtual_quorum it(rules_without_polling(3, 0));
    it.start();
    for (std::uint32_t i = 0; i < 4; ++i) {
        hold(it, i);
    }
    const auto name = it.acquire_slot(waiting(), 4);
    it.run_for(1s);
    CHECK(asked(it, "SET") == 0);
    const std::size_t surveys = asked(it, "MGET");
    CHECK(surveys <= 3 * 3); // at first, and when the subscriptions were confirmed
    it.run_for(100s);
    CHECK(asked(it, "MGET") == surveys);
    let_go(it, 2);
    for (std::size_t i = 0; i < 3; ++i) {
        it.push(i, "p:{r}:slot:free", "one");
    }
    REQUIRE(it.run_while_not([&] { return it.answer_to(name) != nullptr; }, 1s));
    CHECK(it.answer_to(name)->slots.at(0) == 2);
    it.release(*it.answer_to(name));
    CHECK(it.idle());
    CHECK(asked(it, "UNSUBSCRIBE p:{r}:slot:free") == 3);
}

TEST_CASE("one master's push is enough, a little later") {
    virtual_quorum it(rules_without_polling(3, 0));
    it.start();
    hold(it, 0);
    const auto name = it.acquire_slot(waiting(), 1);
    it.run_for(1s);
    let_go(it, 0);
    it.push(1, "p:{r}:slot:free", "one");
    REQUIRE(it.run_while_not([&] { return it.answer_to(name) != nullptr; }, 1s));
    CHECK(it.answer_to(name)->won);
}

TEST_CASE("what is released while a survey is under way is not missed") {
    for (const nanoseconds delay : {0us, 200us, 400us, 600us, 800us, 1000us, 1200us, 1400us}) {
        INFO(delay.count());
        virtual_quorum it(rules_without_polling(3, 0));
        it.start();
        hold(it, 0);
        hold(it, 1);
        const auto name = it.acquire_slot(waiting(), 2);
        it.run_for(1s);
        // The push comes for a slot that is gone again; and then another, during that survey.
        for (std::size_t i = 0; i < 3; ++i) {
            it.push(i, "p:{r}:slot:free", "one");
        }
        it.run_for(delay);
        let_go(it, 1);
        for (std::size_t i = 0; i < 3; ++i) {
            it.push(i, "p:{r}:slot:free", "two");
        }
        REQUIRE(it.run_while_not([&] { return it.answer_to(name) != nullptr; }, 1s));
        CHECK(it.answer_to(name)->slots.at(0) == 1);
    }
}

TEST_CASE("of the waiters of one pool only the first looks, and they are served in turn") {
    for (const std::size_t hand_overs : {0U, 3U, 100U}) {
        virtual_quorum it(rules_with(3, hand_overs, true));
        it.start();
        std::vector<answer> held;
        for (int i = 0; i < 3; ++i) {
            held.push_back(it.acquire_slot_now(waiting(), 3));
        }
        std::vector<std::uint64_t> names;
        for (int i = 0; i < 12; ++i) {
            names.push_back(it.acquire_slot(waiting(), 3));
        }
        it.run_for(50ms);
        for (std::size_t i = 0; i < names.size(); ++i) {
            CHECK(it.answer_to(names[i]) == nullptr);
            it.release(held[i]);
            REQUIRE(it.run_while_not([&] { return it.answer_to(names[i]) != nullptr; }, 5s));
            REQUIRE(it.answer_to(names[i])->won);
            held.push_back(*it.answer_to(names[i]));
            CHECK(held[i].slots.at(0) == held.back().slots.at(0));
        }
        for (std::size_t i = names.size(); i < held.size(); ++i) {
            it.release(held[i]);
        }
        CHECK(it.idle());
        CHECK(!has_slot_key(it));
        CHECK((it.engine.count().hand_overs > 0) == (hand_overs > 0));
    }
}

TEST_CASE("what one survey found serves several of a line") {
    virtual_quorum it(rules_with(3, 0, true));
    it.start();
    std::vector<std::uint64_t> names;
    for (int i = 0; i < 40; ++i) {
        names.push_back(it.acquire_slot(waiting(), 40));
    }
    std::set<std::uint32_t> numbers;
    for (const auto name : names) {
        REQUIRE(it.run_while_not([&] { return it.answer_to(name) != nullptr; }, 1s));
        numbers.insert(it.answer_to(name)->slots.at(0));
    }
    CHECK(numbers.size() == 40);
    CHECK(asked(it, "MGET") == 3 * 40 / core::slot_tries_max);
    CHECK(asked(it, "SET") == 3 * 40);
}

TEST_CASE("a slot that is handed over costs the masters nothing") {
    virtual_quorum it(rules_without_polling(3, 100));
    it.start();
    answer mine = it.acquire_slot_now(waiting(), 1);
    std::vector<std::uint64_t> names;
    for (int i = 0; i < 5; ++i) {
        names.push_back(it.acquire_slot(waiting(), 1));
    }
    it.run_for(1s);
    const std::size_t surveys = asked(it, "MGET");
    for (const auto name : names) {
        it.release(mine);
        it.run_for(10ms);
        REQUIRE(it.answer_to(name) != nullptr);
        mine = *it.answer_to(name);
    }
    CHECK(asked(it, "MGET") == surveys);
    CHECK(asked(it, "SET") == 3);
}

TEST_CASE("a slot that a hand-over has made needless is told to other processes") {
    virtual_quorum it(rules_without_polling(3, 100));
    it.start();
    const answer mine = it.acquire_slot_now(waiting(), 2);
    const std::uint32_t other = 1 - mine.slots.at(0);
    hold(it, other);
    const auto name = it.acquire_slot(waiting(), 2);
    it.run_for(1s);
    let_go(it, other);
    for (std::size_t i = 0; i < 3; ++i) {
        it.push(i, "p:{r}:slot:free", "one");
    }
    // The masters have given it the other slot, and it has not heard of that.
    REQUIRE(it.run_while_not([&] { return asked(it, "SET " + slot_key(other)) == 3; }, 1s));
    REQUIRE(it.answer_to(name) == nullptr);
    it.release(mine);
    REQUIRE(it.answer_to(name) != nullptr);
    CHECK(it.answer_to(name)->slots == mine.slots);
    it.run_for(10ms);
    CHECK(told_free(it) == std::set<std::string>{slot_key(other)});
}

TEST_CASE("who had a part of a slot, and looks for another, tells other processes") {
    virtual_quorum it(rules_without_polling(3, 0));
    it.start();
    std::map<std::string, std::size_t> firsts; // who voted for it; on the others a thief was faster
    for (std::size_t i = 0; i < 3; ++i) {
        it.masters[i].when = [&, i](const arguments& words) {
            if (words[0] == "SET" && firsts.emplace(words[1], i).first->second != i) {
                it.masters[i].keys[words[1]] = {"thief"};
            }
            return mishap::none;
        };
    }
    const auto name = it.acquire_slot(waiting(), core::slot_tries_max);
    it.run_for(1s);
    CHECK(it.answer_to(name) == nullptr);
    CHECK(firsts.size() == core::slot_tries_max);
    CHECK(told_free(it).size() == core::slot_tries_max);
}

TEST_CASE("a slot is not handed over to who says a smaller size") {
    virtual_quorum it(rules_with(3, 100, true));
    it.start();
    hold(it, 0);
    const answer mine = it.acquire_slot_now(waiting(), 2);
    REQUIRE(mine.slots.at(0) == 1);
    const auto other = it.acquire_slot(waiting(), 1);
    it.run_for(50ms);
    it.release(mine);
    it.run_for(5s);
    CHECK(it.answer_to(other) == nullptr);
    let_go(it, 0);
    REQUIRE(it.run_while_not([&] { return it.answer_to(other) != nullptr; }));
    CHECK(it.answer_to(other)->slots.at(0) == 0);
}

TEST_CASE("a lock that is called as a pool's slots are is not handed over as a slot") {
    core::settings rules = rules_with(3, 100, true);
    rules.key_prefix.clear();
    virtual_quorum it(rules);
    it.start();
    const answer mine = it.acquire_now(waiting(), "{r}:slot");
    for (virtual_master& server : it.masters) {
        server.keys["{r}:slot:0"] = {"somebody"};
    }
    const auto other = it.acquire_slot(waiting(), 1);
    it.run_for(50ms);
    it.release(mine);
    it.run_for(5s);
    CHECK(it.answer_to(other) == nullptr);
}

TEST_CASE("a waiter for a slot that is cancelled leaves nothing, wherever it stood") {
    for (const nanoseconds after : {0us, 500us, 1000us, 1500us, 2500us, 10'000us}) {
        for (const bool full : {true, false}) {
            INFO(after.count() << ", " << full);
            virtual_quorum it(rules_with(3, 0, true));
            it.start();
            if (full) {
                hold(it, 0);
            }
            const auto first = it.acquire_slot(waiting(), 1);
            const auto second = it.acquire_slot(waiting(), 1);
            it.run_for(after);
            it.cancel(first);
            it.cancel(second);
            it.run_for(1s);
            for (const auto name : {first, second}) {
                REQUIRE(it.answer_to(name) != nullptr);
                if (it.answer_to(name)->won) {
                    CHECK(!full);
                    it.release(*it.answer_to(name));
                }
            }
            let_go(it, 0);
            CHECK(it.idle());
            CHECK(!has_slot_key(it));
            CHECK(it.engine.count().subscriptions == 0);
        }
    }
}

TEST_CASE("a wait for a slot ends in time") {
    virtual_quorum it(rules_with(3, 0, true));
    it.start();
    hold(it, 0);
    const time_point began = it.now();
    const answer none = it.acquire_slot_now(waiting(700ms), 1);
    CHECK(none.why == errc::contended);
    CHECK(it.now() <= began + 700ms);
    CHECK(it.idle());
}

TEST_CASE("a manager that is closed ends surveys, and waits for slots") {
    virtual_quorum it(rules_with(3, 0, true));
    it.start();
    hold(it, 0);
    const auto waits = it.acquire_slot(waiting(), 1);
    it.run_for(1s);
    const auto looks = it.acquire_slot(once(), 2);
    it.engine.ask_slots(1, "r", 2, it.now());
    it.close();
    it.run_for(1s);
    CHECK(it.answer_to(waits)->why == errc::closed);
    CHECK(it.answer_to(looks)->why == errc::closed);
    CHECK(it.pools.size() == 1);
    CHECK(it.closings == 1);
}

TEST_CASE("the status of a pool says who has which slot") {
    virtual_quorum it(3);
    it.start();
    const answer mine = it.acquire_slot_now(once(), 600);
    it.masters[1].keys[slot_key(mine.slots.at(0) == 7 ? 8 : 7)] = {"left over"};
    it.paths[2].hung = true;
    it.engine.ask_slots(1, "r", 600, it.now());
    REQUIRE(it.run_while_not([&] { return !it.pools.empty(); }));
    const redlock::pool_status& found = it.pools[0];
    CHECK(found.answered == 2);
    CHECK(found.quorum == 2);
    REQUIRE(found.slots.size() == 600);
    CHECK(found.held() == 1);
    CHECK(found.count(lock_state::undecided) == 1);
    CHECK(found.free() == 598);
    CHECK(found.slots[mine.slots.at(0)].state == lock_state::held);
    CHECK(found.slots[mine.slots.at(0)].owner.size() == 16);
}

TEST_CASE("a pool, its slots and a lock of the same name do not touch each other") {
    virtual_quorum it(3);
    it.start();
    const answer lock = it.acquire_now(once(), "r");
    const answer like = it.acquire_now(once(), "r}:slot:0");
    const answer slot = it.acquire_slot_now(once(), 1);
    CHECK(lock.won);
    CHECK(like.won);
    CHECK(slot.won);
    CHECK(it.acquire_slot_now(once(), 1, "r}:slot").won);
}
