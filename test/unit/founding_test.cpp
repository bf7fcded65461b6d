// The founding of a quorum: the membership of two clients whose lists may differ, with masters that
// execute the handshake in Lua.

#include "core/guarded_scripts.hpp"
#include "core/membership.hpp"
#include "core/settings.hpp"
#include "memory/lua_machine.hpp"
#include "memory/server.hpp"
#include "virtual_quorum.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace founding_test {

using namespace unit;
namespace core = redlock::core;
namespace memory = redlock::testing::memory;

namespace {

const std::string epoch = "p::epoch";

struct world {
    explicit world(std::size_t masters) {
        for (std::size_t i = 0; i < masters; ++i) {
            servers.emplace_back(lua);
        }
    }
    std::string ask(std::size_t master, const std::vector<std::string>& words) {
        const std::vector<std::string_view> views(words.begin(), words.end());
        return servers[master].execute(views, ++now).describe();
    }
    std::string record(std::size_t master) { return ask(master, {"GET", epoch}); }
    std::string new_id() {
        const std::string digits = std::to_string(++ids);
        return std::string(32 - digits.size(), '0') + digits;
    }
    void forget(std::size_t master) { ask(master, {"FLUSHALL"}); }

    memory::lua_machine lua;
    std::deque<memory::server> servers;
    std::int64_t now = 1'700'000'000'000'000;
    std::uint64_t ids = 0;
};

// One client. A handshake is executed at once; its reply may be read later, in order.
class member_client {
public:
    member_client(world& all, std::vector<std::size_t> masters)
        : all_(all),
          masters_(std::move(masters)),
          rules_(rules_for(masters_)),
          members_(rules_) {}

    void send(std::size_t i) {
        const std::uint32_t look = members_.look();
        const core::membership::proposal mine = members_.proposal_to(i);
        std::vector<std::string> words{
            "EVAL",
            std::string(core::guarded_handshake.text),
            "1",
            epoch,
            "run",
            "-",
            "1000",
            "0",
            all_.new_id(),
            mine.list};
        if (!mine.id.empty()) {
            words.push_back(mine.id);
        }
        all_.ask(masters_[i], words);
        replies_.push_back({i, look, all_.record(masters_[i])});
    }
    void read_all() {
        for (; !replies_.empty(); replies_.pop_front()) {
            const auto& one = replies_.front();
            members_.read(one.master, one.record, one.look);
        }
    }
    // What the quorum does when all masters reply.
    void settle() {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            send(i);
        }
        read_all();
        for (int round = 0; round < 10; ++round) {
            for (std::size_t i = 0; i < masters_.size(); ++i) {
                if (members_.wants_handshake(i)) {
                    send(i);
                }
            }
            read_all();
        }
    }
    std::size_t admitted() const {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            sum += members_.why_not(i).empty() ? 1U : 0U;
        }
        return sum;
    }
    bool idle() const {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            if (members_.wants_handshake(i)) {
                return false;
            }
        }
        return true;
    }
    std::string why_not(std::size_t i) const { return members_.why_not(i); }
    const std::vector<std::size_t>& masters() const { return masters_; }
    const std::string& list() const { return rules_.members; }

private:
    static core::settings rules_for(const std::vector<std::size_t>& masters) {
        core::settings rules = guarded_settings_for(masters.size());
        std::vector<std::string> names;
        for (std::size_t i = 0; i < masters.size(); ++i) {
            names.push_back("m" + std::to_string(masters[i]));
        }
        rules.names = names;
        rules.members = core::list_of(names);
        return rules;
    }

    struct reply {
        std::size_t master;
        std::uint32_t look;
        std::string record;
    };
    world& all_;
    std::vector<std::size_t> masters_;
    core::settings rules_;
    core::membership members_;
    std::deque<reply> replies_;
};

} // namespace

TEST_CASE("a list of masters is the same in any order") {
    const std::array<std::string, 2> one{"b:1", "a:1"};
    const std::array<std::string, 2> other{"a:1", "b:1"};
    CHECK(core::list_of(one) == core::list_of(other));
    CHECK(core::list_of(one) == "613a312c623a31");
}

TEST_CASE("the first client founds the quorum, and the next one finds it founded") {
    world all(3);
    member_client first(all, {0, 1, 2});
    first.settle();
    CHECK(first.admitted() == 3);
    CHECK(first.idle());
    const std::string record = all.record(1);
    CHECK(record.ends_with("1" + first.list()));

    member_client next(all, {2, 0, 1});
    next.send(0);
    next.read_all();
    CHECK(next.admitted() == 1);
    CHECK(all.record(1) == record);
}

TEST_CASE("a quorum of one master is founded as well") {
    world all(1);
    member_client only(all, {0});
    only.settle();
    CHECK(only.admitted() == 1);
}

TEST_CASE("a client with another list is refused, and both lists are shown") {
    world all(4);
    member_client right(all, {0, 1, 2});
    right.settle();
    member_client wrong(all, {0, 1, 3});
    wrong.settle();
    CHECK(wrong.admitted() == 0);
    CHECK(wrong.idle());
    CHECK(
        wrong.why_not(0)
        == "not a member of this client's quorum: it belongs to that of m0, m1, m2, and this "
           "client's list is m0, m1, m3");
    CHECK(wrong.why_not(2) == "the quorum cannot be founded: another list is recorded on m0, m1");
}

TEST_CASE("a quorum is not founded before each of its masters has replied") {
    world all(3);
    member_client one(all, {0, 1, 2});
    one.send(0);
    one.send(1);
    one.read_all();
    CHECK(one.admitted() == 0);
    CHECK(one.idle());
    CHECK(one.why_not(0).ends_with("missing: m2"));
    one.settle();
    CHECK(one.admitted() == 3);
}

TEST_CASE("a master that lost its record receives the list again, also over one being founded") {
    world all(4);
    member_client right(all, {0, 1, 2});
    member_client wrong(all, {0, 1, 3});
    right.settle();
    all.forget(0);
    wrong.settle();
    CHECK(all.record(0).ends_with("0" + wrong.list()));
    right.settle();
    CHECK(all.record(0).ends_with("1" + right.list()));
    wrong.settle();
    CHECK(wrong.admitted() == 0);
}

TEST_CASE("a founding that was on all masters, but never at once, is not final") {
    world all(4);
    member_client first(all, {0, 1, 2});
    member_client second(all, {0, 1, 3});
    first.send(1);
    first.send(2);
    all.forget(1);
    second.settle();
    all.forget(0);
    first.send(0);
    first.read_all(); // each master has replied with its list
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
        std::deque<member_client> clients;
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
            member_client& one = clients[random() % clients.size()];
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
                final_once[which] = final_once[which] || clients[which].admitted() > 0
                                    || clients[which + 2].admitted() > 0;
            }
            REQUIRE(!(final_once[0] && final_once[1]));
        }
        founded += final_once[0] || final_once[1] ? 1U : 0U;
    }
    CHECK(founded > 200);
}

} // namespace founding_test
