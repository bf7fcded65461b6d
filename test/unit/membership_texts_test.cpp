// What health says of the members: why a master does not vote, and how far a change is.

#include "member_world.hpp"

namespace membership_texts_test { namespace {

using namespace member_world;
using state = core::recorded_list::state;

const core::member_change remove_2{false, "m2"};
const std::vector<std::size_t> each_of_four{0, 1, 2, 3};

std::string text(const client& of) {
    return of.members().change_text(of.now);
}

TEST_CASE("a quorum is being founded until it is known to be, except where another one is") {
    world all(5);
    client one(all, {0, 1, 2});
    CHECK(
        one.why_not(0)
        == "the quorum is not founded yet: each master of the list must reply once; missing: m0, "
           "m1, m2");
    put(all, 0, {state::founding, {1, names({0, 3, 4}), {}}});
    one.settle();
    const std::string why = one.why_not(0);
    CHECK(why.starts_with(
        "not a member of this client's quorum: it is being founded for that of m0, m3, m4, and "
        "this client's list is m0, m1, m2; "));
    CHECK(why.ends_with(
        "; this list replaces that one in 2 s, and its quarantine follows; at once by `redlock "
        "members found` with the right list, with --new without a quarantine"));
    CHECK(one.why_not(1) == "the quorum is not founded: another list is recorded on m0");
    CHECK(one.members().being_founded(0));
    CHECK(one.members().being_founded(1));
    all.forget(0);
    one.ask(0);
    one.settle();
    CHECK(one.admitted() == 3);
    CHECK(!one.members().being_founded(1));
}

TEST_CASE(
    "of a known quorum, a member without a final list is being founded, and no other master") {
    founded_world all;
    settled_client user(all, {0, 1, 2, 3});
    all.forget(1);
    user.send(1);
    put(all, 2, {state::founding, {1, names({2, 4}), {}}});
    user.ask(2);
    CHECK(!user.members().being_founded(0));
    CHECK(user.members().being_founded(1));
    CHECK(user.members().being_founded(2));
    CHECK(!user.members().being_founded(3));
    all.forget(3);
    user.ask(3);
    CHECK(!user.members().being_founded(3));
}

TEST_CASE("a change says how far it is, and which masters it waits for") {
    founded_world all;
    client changer(all, {0, 1, 2, 3}, add_3);
    CHECK(text(changer) == "the members of the quorum are not known yet");
    CHECK(changer.members().awaited().empty());

    changer.settle({3});
    CHECK(text(changer) == "to be planned on m0, m1, m2, m3");
    CHECK(changer.members().awaited() == each_of_four);
    changer.ask(3);
    while (all.list(0).what != state::planned) {
        REQUIRE(changer.step());
    }
    CHECK(text(changer) == "to be planned on m1, m2, m3");
    while (all.list(3).what != state::planned) {
        REQUIRE(changer.step());
    }
    CHECK(text(changer) == "planned on all masters; reading them once more");
    CHECK(changer.members().awaited() == each_of_four);

    changer.settle();
    const redlock::time_point due = changer.members().next_due();
    REQUIRE(due != core::forever);
    CHECK(changer.members().change_text(due - 1500ms) == "planned on all masters; final in 2 s");
    CHECK(changer.members().change_text(due + 5s) == "planned on all masters; final in 0 s");
    CHECK(changer.members().awaited().empty());

    changer.wait();
    CHECK(text(changer) == "being made final");
    CHECK(changer.members().awaited() == each_of_four);
    changer.settle();
    CHECK(text(changer).empty());
    CHECK(changer.members().awaited().empty());
}

TEST_CASE("a change that waits for another one names it, and its masters") {
    founded_world all;
    put(all, 0, {state::planned, *founded.after(add_3)});
    put(all, 1, {state::planned, *founded.after(remove_2)});
    put(all, 2, {state::planned, *founded.after(remove_1)});
    settled_client changer(all, {0, 1, 2, 3}, add_3);
    CHECK(
        text(changer)
        == "waits for another change, which is planned on m1 (remove m2), m2 (remove m1); if "
           "nobody makes that one any more, make it first");
}

TEST_CASE("a client that makes no change tells of the plans of its quorum") {
    founded_world all;
    put(all, {0, 2}, {state::planned, *founded.after(add_3)});
    put(all, 3, {state::planned, {8, names({3}), {false, "m4"}}}); // of another one
    settled_client user(all, {0, 1, 2, 3});
    CHECK(text(user) == "add m3 (planned on m0, m2)");
    put(all, 2, {state::planned, *founded.after(remove_2)});
    user.settle();
    CHECK(text(user) == "add m3 (planned on m0), remove m2 (planned on m2)");
}

TEST_CASE("a change that cannot be made says why") {
    founded_world all;
    settled_client half(all, {0, 1, 2, 3}, remove_1);
    CHECK(text(half) == "the members must be more than half of this client's list");
    settled_client unknown(all, {0, 1, 2}, add_3);
    CHECK(text(unknown) == "m3 is not in this client's list of masters");
    put(all, 3, {state::planned, {8, names({3}), {false, "m4"}}});
    settled_client foreign(all, {0, 1, 2, 3}, add_3);
    CHECK(
        text(foreign)
        == "m3 has the memory record of another quorum, or of long ago: empty it first");

    world few(2);
    settled_client two(few, {0, 1}, remove_1);
    CHECK(text(two) == "a quorum of two masters cannot lose one");
    world single(2);
    settled_client one(single, {0}, core::member_change{true, "m1"});
    CHECK(text(one) == "a quorum of one master cannot change");
}

}} // namespace membership_texts_test
