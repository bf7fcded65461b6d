// Changes of the members of a quorum: the memberships of clients, with masters that execute the
// handshake in Lua.

#include "member_world.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace membership_test { namespace {

using namespace member_world;
using state = core::recorded_list::state;

// A word of a record, counted from 0.
std::string word(const std::string& record, int n) {
    std::size_t at = 0;
    for (; n > 0; --n) {
        at = record.find(' ', at) + 1;
    }
    return record.substr(at, record.find(' ', at) - at);
}

TEST_CASE("a damaged list is invalid") {
    const auto hex = [](std::string_view text) {
        std::string out;
        for (const char c : text) {
            constexpr std::string_view digits = "0123456789abcdef";
            out += digits[static_cast<unsigned char>(c) / 16];
            out += digits[static_cast<unsigned char>(c) % 16];
        }
        return out;
    };
    const std::string id(32, '7');
    const auto state_of = [&](const std::string& list) { return core::read_list(id + list).what; };
    CHECK(state_of("1" + hex("a,b")) == state::final);
    CHECK(state_of("4" + hex("a,b")) == state::agreed);
    for (const std::string& bad :
         {"1" + hex("b,a"),
          "1" + hex("a,a"),
          "1" + hex("a,,b"),
          std::string("1"),
          std::string("16"),
          std::string("1zz"),
          "5" + hex("a,b"),
          "3" + hex("a,b"),
          "3" + hex("1,+b,a,b"),
          "3" + hex("2,+c,a,b"),
          "3" + hex("2,-a,a,b"),
          "3" + hex("2,+a,a"),
          "3" + hex("2,*b,a,b"),
          "3" + hex("x,+b,a,b"),
          "2" + hex("2,+,a,b")}) {
        INFO(bad);
        CHECK(state_of(bad) == state::invalid);
    }
}

TEST_CASE("two changes that stopped anywhere are finished by the same commands") {
    const core::member_change add_5{true, "m5"};
    const auto made = [](const client& of, const core::member_change& what) {
        return of.members().members().contains(what.name) == what.adds;
    };
    const auto finish = [](client& changer) {
        changer.settle();
        changer.finish();
    };
    for (const auto& [one, other] :
         {std::pair(add_5, remove_0), std::pair(remove_0, remove_1), std::pair(add_5, remove_1)}) {
        const bool adds = one.adds;
        for (unsigned steps = 0; steps < 5; ++steps) {
            for (unsigned turns = 0; turns < 1U << steps; ++turns) {
                CAPTURE(one.shown(), other.shown(), steps, turns);
                world all(6);
                settled_client founder(all, {0, 1, 2, 3, 4});
                std::vector<std::size_t> list{0, 1, 2, 3, 4};
                if (adds) {
                    list.push_back(5);
                }
                client first(all, list, one);
                client second(all, list, other);
                first.send_all();
                second.send_all();
                first.read_all();
                second.read_all();
                for (unsigned i = 0; i < steps; ++i) {
                    (turns >> i & 1U) != 0 ? first.step() : second.step();
                }
                client again(all, list, one);
                finish(again);
                client rival(all, list, other);
                finish(rival);
                finish(again);
                CHECK(made(again, one));
                CHECK(made(again, other));
            }
        }
    }
}

TEST_CASE("a change begins in a client that has long read all records") {
    founded_world all(4);
    settled_client first(all, {0, 1, 2, 3}, add_3);
    REQUIRE(first.waits());
    settled_client second(all, {0, 1, 2, 3});
    second.read_again();
    second.settle();
    REQUIRE(second.idle());
    second.make(add_3);
    REQUIRE(second.waits()); // all have had the plan at one moment
    second.finish();
    CHECK(second.members().voters() == 4);
    second.make(remove_0);
    CHECK(!second.idle());
    second.make(std::nullopt);
    CHECK(second.idle());
}

TEST_CASE("members are confirmed by a majority of records that were read since") {
    founded_world all(3);
    settled_client user(all, {0, 1, 2});
    CHECK(user.members().confirmed());
    user.read_again();
    CHECK(!user.idle());
    user.ask(0);
    CHECK(!user.members().confirmed());
    user.ask(1);
    CHECK(user.members().confirmed());
    user.settle();
    CHECK(user.idle());
}

TEST_CASE("a quorum whose founder stopped when a majority voted can lose a master at once") {
    for (std::size_t lost = 0; lost < 3; ++lost) {
        for (std::size_t last = 0; last < 3; ++last) { // whose list is not final yet
            CAPTURE(lost, last);
            world all(3);
            client founder(all, {last, (last + 1) % 3, (last + 2) % 3});
            founder.ask_all();
            while (founder.admitted() < 2) {
                founder.ask_all();
                founder.ask(1);
                founder.ask(2);
            }
            REQUIRE(all.list(last).what == state::agreed);
            client next(all, {0, 1, 2}, [](core::settings& rules) { rules.founds = false; });
            next.settle({lost});
            CHECK(next.admitted() == 2);
        }
    }
}

TEST_CASE("a master that comes back empty has the longest quarantine of any client") {
    founded_world one;
    client patient(one, {0, 1, 2});
    patient.quarantine = std::chrono::seconds(60);
    patient.settle();
    one.forget(0);
    settled_client user(one, {0, 1, 2});
    CHECK(one.list(0).founded());
    CHECK(one.record(0).find(" 60000000 ") != std::string::npos);

    // A record that asks for more than any client does is damaged.
    put(one, 1, one.list(1), "172800000000");
    one.forget(2);
    settled_client another(one, {0, 1, 2});
    CHECK(one.record(2).find(" 60000000 ") != std::string::npos);
    put(one, 1, one.list(1), "172799999999"); // in less than two days nothing is wrong
    one.forget(2);
    another.settle();
    CHECK(word(one.record(2), 4) == "172799999999");
}

std::string quarantines_of(world& all, std::size_t masters) {
    std::string out;
    for (std::size_t i = 0; i < masters; ++i) {
        out += word(all.record(i), 4) + ' ';
    }
    return out;
}

// A client without a max_ttl of its own.
struct guest : client {
    explicit guest(world& all, std::optional<core::member_change> change = std::nullopt)
        : client(all, {0, 1, 2}, [](core::settings& rules) {
              rules.quarantine = true;
              rules.max_ttl = 0ms;
          }) {
        make(std::move(change));
        quarantine = std::chrono::microseconds(0);
    }
    std::string recorded(std::chrono::milliseconds max_ttl) const {
        return std::to_string(rules().recorded_quarantine(max_ttl).count()) + ' ';
    }
};

TEST_CASE("a client without a max_ttl records 30 s where it founds, and nothing where others did") {
    world fresh(3);
    guest founder(fresh);
    founder.settle();
    REQUIRE(founder.admitted() == 3);
    const std::string usual = founder.recorded(30s);
    CHECK(quarantines_of(fresh, 3) == usual + usual + usual);

    world longer(3);
    longer.ask(1, {"SET", record_key, "4 run - 0 60000000 " + longer.new_id()});
    guest(longer).settle();
    CHECK(quarantines_of(longer, 3) == "60000000 60000000 60000000 ");

    founded_world one;
    guest user(one);
    user.settle();
    CHECK(quarantines_of(one, 3) == "1000 1000 1000 ");
    one.forget(1);
    user.settle();
    CHECK(quarantines_of(one, 3) == "1000 1000 1000 ");

    // Its list is not written over that of a client which was faster.
    world both(3);
    guest late(both);
    for (std::size_t i = 0; i < 3; ++i) {
        settled_client first(both, {0, 1, 2});
        late.send(i); // chosen without any reply
    }
    late.read_all();
    CHECK(quarantines_of(both, 3) == "1000 1000 1000 ");
}

TEST_CASE(
    "a change of max_ttl limits new leases at once, and the quarantine after the longest one") {
    const core::member_change to_2s{false, {}, 2s};
    world all(3);
    guest founder(all);
    founder.settle();
    guest changer(all, to_2s);
    changer.settle();
    REQUIRE(changer.waits());
    const std::string usual = changer.recorded(30s);
    const std::string brief = changer.recorded(2s);
    CHECK(quarantines_of(all, 3) == usual + usual + usual);
    CHECK(changer.members().next_due() - changer.now >= changer.rules().recorded_quarantine(30s));
    founder.settle();
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(all.list(i).what == state::planned);
        CHECK(founder.members().planned_max_ttl(i) == 2s);
    }
    CHECK(founder.members().change_text(founder.now) == "max-ttl 2000ms (planned on m0, m1, m2)");
    changer.finish();
    CHECK(quarantines_of(all, 3) == brief + brief + brief);
    CHECK(changer.members().change_text(changer.now).empty());
    CHECK(changer.members().members().number == 2);
    CHECK(changer.members().planned_max_ttl(0) == core::ttl_max);

    // A master that has missed the end gets it, and the quarantine of those that have it.
    put(all, 2, {state::final, {1, names({0, 1, 2}), {}}}, "31000000");
    all.forget(1);
    founder.settle();
    CHECK(quarantines_of(all, 3) == brief + brief + brief);
    client patient(all, {0, 1, 2});
    patient.quarantine = std::chrono::seconds(60);
    patient.send(0);
    put(all, 2, {state::final, {1, names({0, 1, 2}), {}}}, "31000000");
    founder.settle();
    CHECK(quarantines_of(all, 3) == "60000000 " + brief + "60000000 ");

    // It can be made again, and be longer.
    guest again(all, to_2s);
    again.settle();
    again.finish();
    CHECK(quarantines_of(all, 3) == brief + brief + brief);
    guest longer(all, core::member_change{false, {}, 60s});
    longer.settle();
    longer.finish();
    const std::string most = longer.recorded(60s);
    CHECK(quarantines_of(all, 3) == most + most + most);
    CHECK(longer.members().members().number == 4);
}

TEST_CASE("a longer quarantine that was recorded before a change is found after it") {
    world all(5);
    settled_client founder(all, {0, 1, 2, 3, 4});
    settled_client changer(all, {0, 1, 2, 3, 4}, core::member_change{false, "m4"});
    REQUIRE(changer.waits());
    client patient(all, {0, 1, 2, 3, 4});
    patient.quarantine = std::chrono::seconds(60);
    patient.settle({2, 3}); // a majority of the five: it may take a lock
    changer.finish();
    REQUIRE(all.list(0).list.number == 2);
    REQUIRE(all.record(2).find(" 60000000 ") == std::string::npos);

    all.forget(1);
    client user(all, {0, 1, 2, 3});
    user.settle({0}); // N - q + 1 of the four
    CHECK(!all.list(1).founded());
    client with_removed(all, {0, 1, 2, 3, 4});
    GENERATE(false, true) ? with_removed.settle({0}) : user.settle();
    CHECK(all.list(1).founded());
    CHECK(all.record(1).find(" 60000000 ") != std::string::npos);
}

TEST_CASE("if only plans are left, two of three members restore the third, and one of two nobody") {
    world all(4);
    const core::recorded_list of_three{state::planned, {3, names({0, 1, 2, 3}), {true, "m3"}}};
    put(all, {0, 1}, of_three);
    settled_client three(all, {0, 1, 2, 3});
    CHECK(all.list(2) == of_three);

    // A lease from before m2 was removed may have the votes of m1 and m2.
    world fewer(4);
    const core::recorded_list of_two{state::planned, {3, names({0, 1, 3}), {true, "m3"}}};
    put(fewer, {0, 3}, of_two);
    settled_client two(fewer, {0, 1, 3});
    CHECK(two.members().voters() == 2);
    CHECK(!fewer.list(1).founded());
}

TEST_CASE("a record that is not an older one of this quorum is not written over") {
    const core::recorded_list second{state::final, *founded.after(add_3)};
    const core::recorded_list rival{state::final, *founded.after({true, "m4"})};
    const core::recorded_list foreign{state::final, {1, names({4}), {}}};
    world all(5);
    put(all, {0, 2, 3}, second);
    put(all, 1, rival);
    put(all, 4, foreign);
    settled_client user(all, {0, 1, 2, 3, 4});
    CHECK(user.admitted() == 3);
    CHECK(all.list(1) == rival);
    CHECK(all.list(4) == foreign);
    CHECK(
        user.why_not(1)
        == "its memory record has other members, m0, m1, m2, m4, than this client has read "
           "elsewhere: m0, m1, m2, m3");
}

TEST_CASE("a change of one record that changes no list lets no client ask the other masters") {
    founded_world one;
    settled_client user(one, {0, 1, 2, 3});
    REQUIRE(user.idle());
    client patient(one, {0, 1, 2});
    patient.quarantine = std::chrono::seconds(60);
    patient.send(1);
    user.ask(1);
    CHECK(user.idle());
}

TEST_CASE("each master that stays must agree to a change") {
    founded_world one;
    client changer(one, {0, 1, 2, 3}, add_3);
    changer.settle({1});
    CHECK(!changer.waits());
    CHECK(one.list(0).what == state::final); // nothing was written without knowing it
    changer.settle();
    CHECK(changer.waits());
}

TEST_CASE("a change is made once by a client, and not again after it was undone") {
    founded_world one;
    client stopped(one, {0, 1, 2, 3}, add_3);
    stopped.settle({2});
    client watching(one, {0, 1, 2, 3}, add_3);
    for (const core::member_change& what : {add_3, core::member_change{false, "m3"}}) {
        settled_client changer(one, {0, 1, 2, 3}, what);
        changer.finish();
        CHECK(changer.members().members().contains("m3") == what.adds);
        watching.settle();
        CHECK(!watching.waits());
    }
    CHECK(watching.members().members().number == 3);
    const std::string said =
        "the members have changed since, to m0, m1, m2: begin the change again if it is still "
        "wanted";
    for (int round = 0; round < 3; ++round) {
        stopped.settle();
        CHECK(!stopped.waits());
        CHECK(stopped.members().change_text(stopped.now) == said);
    }
    CHECK(one.list(0).list.number == 3);
}

TEST_CASE(
    "of two plans, a master that lost its record receives the one that may be complete, if only "
    "one may be") {
    const core::generation of_four{1, names({0, 1, 2, 3}), {}};
    const auto plan = [](const core::generation& from, const core::member_change& what) {
        return core::recorded_list{state::planned, *from.after(what)};
    };
    const core::recorded_list without_3 = plan(of_four, {false, "m3"});
    const core::recorded_list without_1 = plan(of_four, remove_1);
    const core::recorded_list without_0 = plan(of_four, remove_0);
    const core::recorded_list with_3 = plan(founded, add_3);
    const core::recorded_list of_two = plan(founded, remove_0);
    const core::recorded_list of_two_others = plan(founded, remove_1);
    struct {
        std::map<std::size_t, core::recorded_list> on;
        core::recorded_list restored; // each master that stays may have had it
    } const rows[] = {
        {{{0, without_3}, {1, without_3}, {3, without_0}}, without_3},
        {{{0, without_3}, {1, without_0}, {3, without_0}}, without_0},
        {{{0, without_1}, {1, without_3}, {3, without_1}}, without_1},
        {{{0, with_3}, {1, of_two}, {3, with_3}}, of_two}, // however few masters have it
        {{{0, of_two_others}, {1, of_two}}, {}},           // both may be complete
    };
    for (const auto& the : rows) {
        world all(4);
        std::vector<std::size_t> list{2};
        for (const auto& [master, what] : the.on) {
            put(all, master, what);
            list.push_back(master);
        }
        std::ranges::sort(list);
        settled_client user(all, list);
        CHECK(all.list(2).founded() == the.restored.founded());
        CHECK((all.list(2) == the.restored || !the.restored.founded()));
    }
}

TEST_CASE("a quorum that lost all its records during a change is founded again, and changed") {
    founded_world one;
    settled_client adds(one, {0, 1, 2, 3}, add_3);
    adds.finish();
    settled_client changer(one, {0, 1, 2, 3}, remove_0);
    REQUIRE(changer.waits());
    one.forget({0, 1, 2, 3});
    changer.settle();
    CHECK(changer.members().members().number == 1);
    REQUIRE(changer.waits());
    changer.finish();
    CHECK(changer.members().members().members == names({1, 2, 3}));
}

TEST_CASE("a quorum is not founded again by a client with another list") {
    founded_world one;
    settled_client user(one, {0, 1, 2, 3});
    one.forget({1, 2});
    user.settle();
    CHECK(one.list(1).what == state::none);
    CHECK(one.list(2).what == state::none);
}

TEST_CASE(
    "a final list changes the second word of the record, and begins where its quarantine ends") {
    founded_world one;
    const std::string before = one.record(0);
    one.now += 1'000'000;
    settled_client changer(one, {0, 1, 2, 3}, add_3);
    const std::string planned = one.record(0);
    changer.finish();
    const std::string after = one.record(0);
    CHECK(word(before, 1) == "run");
    CHECK(word(planned, 1).starts_with("run:"));
    CHECK(word(after, 1).starts_with("run:"));
    CHECK(word(planned, 1) != word(after, 1));
    CHECK(word(planned, 3) == word(before, 3));
    CHECK(std::stoll(word(after, 3)) + 1000 > std::stoll(word(before, 3)) + 1'000'000);
}

}} // namespace membership_test
