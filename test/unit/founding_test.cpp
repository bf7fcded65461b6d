// The founding of a quorum: the membership of two clients whose lists may differ, with masters that
// execute the handshake in Lua.

#include "member_world.hpp"

#include <random>

namespace founding_test {

using namespace member_world;

TEST_CASE("the first client founds the quorum, and the next one finds it founded") {
    world all(3);
    client first(all, {1, 2, 0}); // in whatever order
    first.settle();
    CHECK(first.admitted() == 3);
    CHECK(first.idle());
    const std::string record = all.record(1);
    CHECK(record.ends_with("1" + first.list()));

    client next(all, {2, 0, 1});
    next.ask(0);
    CHECK(next.admitted() == 1);
    CHECK(all.record(1) == record);
}

TEST_CASE("a quorum of one master is founded as well") {
    world all(1);
    settled_client only(all, {0});
    CHECK(only.admitted() == 1);
}

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
    CHECK(wrong.why_not(1) == "the quorum cannot be founded: another list is recorded on m0");
}

TEST_CASE("a quorum is not founded before each of its masters has replied") {
    world all(3);
    client one(all, {0, 1, 2});
    one.send(0);
    one.ask(1);
    CHECK(one.admitted() == 0);
    CHECK(one.idle());
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

TEST_CASE("a founding that was on all masters, but never at once, is not final") {
    world all(4);
    client first(all, {0, 1, 2});
    client second(all, {0, 1, 3});
    first.send(1);
    first.send(2);
    all.forget(1);
    second.settle();
    all.forget(0);
    first.send(0);
    first.read_all(); // each master has replied with its list
    first.settle();
    CHECK(first.members().members().members == core::member_names{"m0", "m1", "m3"});
}

TEST_CASE("a reply that was sent before the last master had the list confirms nothing") {
    world all(4);
    client first(all, {0, 1, 2});
    client second(all, {0, 1, 3});
    for (const std::size_t i : {0U, 1U, 0U, 1U}) {
        first.send(i);
    }
    all.forget({0, 1});
    second.settle();
    CHECK(second.admitted() == 3);
    first.send(2);
    first.send(2);
    for (const std::size_t i : {0U, 1U, 2U, 0U, 1U, 2U}) {
        first.read(i);
    }
    first.settle();
    CHECK(first.members().members().members == core::member_names{"m0", "m1", "m3"});
}

TEST_CASE("a master that gets the list anew ends what the others had confirmed") {
    world all(4);
    client first(all, {0, 1, 2});
    client second(all, {0, 1, 3});
    const auto asks = [&](client& one, std::size_t i) { one.ask(i); };
    asks(first, 1);
    all.forget(1);
    asks(first, 0);
    asks(first, 2);
    asks(first, 0); // confirmed, and lost afterwards
    all.forget(0);
    asks(second, 0);
    asks(first, 1);
    asks(first, 1);
    asks(first, 2);
    first.settle();
    CHECK(first.admitted() == 0);
}

// Two clients with each list in a random order, while masters lose their records. One of the
// masters in common keeps its record, as the guarantee requires, once all masters of a list have
// had it at once.
TEST_CASE("two lists with a master in common are never both final") {
    const std::vector<std::vector<std::vector<std::size_t>>> cases{
        {{0, 1, 2}, {0, 1, 3}}, {{0, 1, 2}, {0, 3, 4}}, {{0, 1, 2}, {0, 1}}, {{0, 1, 2}, {2}}};
    std::size_t founded = 0;
    for (unsigned seed = 0; seed < 400; ++seed) {
        const auto& lists = cases[seed % cases.size()];
        std::mt19937 random(seed);
        world all(5);
        std::deque<client> clients;
        for (std::size_t i = 0; i < 4; ++i) {
            clients.emplace_back(all, lists[i % 2]);
        }
        const auto in = [&](std::size_t which, std::size_t master) {
            return std::ranges::find(lists[which], master) != lists[which].end();
        };
        const auto has = [&](std::size_t master, std::size_t which) {
            const std::string record = all.record(master);
            return record.size() > clients[which].list().size()
                   && record.ends_with(clients[which].list())
                   && record.substr(0, record.size() - clients[which].list().size()).size() > 33;
        };
        std::array<bool, 2> whole{};
        std::array<bool, 2> final_once{};
        for (int step = 0; step < 300; ++step) {
            if (random() % 8 == 0) {
                const std::size_t lost = random() % 5;
                bool may = true;
                for (std::size_t which = 0; which < 2; ++which) {
                    if (!whole[which] || !has(lost, which) || !in(0, lost) || !in(1, lost)) {
                        continue;
                    }
                    bool kept = false;
                    for (std::size_t i = 0; i < 5; ++i) {
                        kept = kept || (i != lost && in(0, i) && in(1, i) && has(i, which));
                    }
                    may = may && kept;
                }
                if (may) {
                    all.forget(lost);
                }
                continue;
            }
            client& one = clients[random() % clients.size()];
            if (random() % 3 == 0) {
                one.read_all();
            } else {
                one.send(random() % one.masters().size());
            }
            for (std::size_t which = 0; which < 2; ++which) {
                whole[which] =
                    whole[which] || std::ranges::all_of(lists[which], [&](std::size_t i) {
                        return has(i, which);
                    });
                const std::string list = clients[which].list();
                final_once[which] =
                    final_once[which] || std::ranges::any_of(clients, [&](const client& each) {
                        const core::generation& present = each.members().members();
                        return present.number == 1
                               && core::written({core::recorded_list::state::final, present})
                                          .substr(1)
                                      == list;
                    });
            }
            REQUIRE(!(final_once[0] && final_once[1]));
        }
        founded += final_once[0] || final_once[1] ? 1U : 0U;
    }
    CHECK(founded > 200);
}

} // namespace founding_test
