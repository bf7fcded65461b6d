// The founding of a quorum: the membership of two clients whose lists may differ, with masters that
// execute the handshake in Lua.

#include "member_world.hpp"

namespace founding_test {

using namespace member_world;

TEST_CASE("a client whose list has too few of the members is refused, and both lists are shown") {
    world all(4);
    settled_client right(all, {0, 1, 2});
    settled_client wrong(all, {0, 3});
    CHECK(wrong.admitted() == 0);
    CHECK(wrong.idle());
    CHECK(
        wrong.why_not(0)
        == "not a member of this client's quorum: it belongs to that of m0, m1, m2, and this "
           "client's list is m0, m3");
    CHECK(wrong.why_not(1) == "the quorum is not founded: another list is recorded on m0");
}

TEST_CASE("a quorum is not founded before each of its masters has replied") {
    world all(3);
    client one(all, {0, 1, 2});
    one.settle({2});
    CHECK(one.admitted() == 0);
    // Nothing to be corrected later: neither the list nor a longer quarantine.
    CHECK(all.list(0).what == core::recorded_list::state::none);
    CHECK(core::recorded_quarantine(all.record(0)) == std::chrono::microseconds(0));
    CHECK(one.why_not(0).ends_with("missing: m2"));
    one.settle();
    CHECK(one.admitted() == 3);
}

TEST_CASE("a master that lost its record receives the list again, also over one being founded") {
    world all(5);
    client right(all, {0, 1, 2});
    client wrong(all, {0, 1, 3, 4});
    right.settle();
    all.forget(0);
    wrong.settle();
    CHECK(all.record(0).ends_with("0" + wrong.list()));
    right.settle();
    CHECK(all.record(0).ends_with("1" + right.list()));
}

// A list of which one master went away after its first reply, and those that correct it.
struct unfinished_world : world {
    unfinished_world() : world(6) {
        first.ask_all();
        first.settle({5});
    }
    client first{*this, {0, 1, 5}};
};

TEST_CASE("a list that cannot be final itself replaces nothing") {
    unfinished_world all;
    const std::string record = all.record(0);
    client next(all, {0, 1, 4}, [](core::settings& rules) { rules.replaces = true; });
    next.settle({4});
    CHECK(!next.waits());
    CHECK(next.why_not(0).find("when each of its masters has replied") != std::string::npos);
    settled_client other(all, {1, 2, 3});
    other.finish();
    REQUIRE(other.admitted() == 3);
    next.settle();
    CHECK(!next.waits());
    CHECK(all.record(0) == record);
}

TEST_CASE("a list that replaces another one begins a quarantine, unless no lock can have been") {
    for (const bool unused : {false, true}) {
        unfinished_world all;
        const std::string before = all.record(0).substr(0, 24);
        client next(all, {0, 1, 2}, [&](core::settings& rules) {
            rules.replaces = true;
            rules.unused = unused;
        });
        next.settle();
        next.finish();
        CHECK(!all.record(0).starts_with(before));
        CHECK(all.record(0).starts_with("4 run - 0 ") == unused);
        CHECK(all.record(2).starts_with("4 run - 0 ") == unused);
        // What was said of new masters does not hold for one that loses its record later.
        all.forget(0);
        next.settle();
        CHECK(next.admitted() == 3);
        CHECK(!all.record(0).starts_with("4 run - 0 "));
    }
}

TEST_CASE("a list that all its masters have had is not replaced") {
    world all(4);
    client first(all, {0, 1, 2});
    for (int i = 0; i < 3; ++i) { // all had it
        first.ask_all();
    }
    first.send(0);
    REQUIRE(all.list(0).what == core::recorded_list::state::agreed);
    settled_client next(all, {0, 1, 3}, [](core::settings& rules) { rules.replaces = true; });
    CHECK(!next.waits());
    CHECK(next.why_not(0).find("all its masters have had that list") != std::string::npos);
    first.settle();
    CHECK(first.admitted() == 3);
}

TEST_CASE("two spellings of one list that begin at the same moment: one becomes final") {
    const auto spelled = [](core::settings& rules) {
        for (std::string& name : rules.members) {
            name.front() = 'n';
        }
    };
    for (const std::size_t split : {1U, 2U}) {
        world masters(3);
        client one(masters, {0, 1, 2});
        client other(masters, {0, 1, 2}, spelled);
        one.ask_all();
        other.ask_all();
        for (std::size_t i = 0; i < 3; ++i) {
            (i < split ? one : other).send(i);
        }
        one.settle();
        other.settle();
        CHECK(
            one.why_not(2).find("(the same server by another name, n0, n1, n2: ")
            != std::string::npos);
        CHECK(one.members().next_due() < other.members().next_due());
        one.finish();
        other.settle();
        CHECK(one.admitted() == 3);
        CHECK(other.admitted() == 0);
        // A name is of no use any more: the quorum has recorded the address.
        CHECK(other.why_not(0).find(": write it in that way)") != std::string::npos);
    }
}

} // namespace founding_test
