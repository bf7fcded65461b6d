// An attempt that did not succeed leaves no key, whatever the connection does to its commands.
#include "quorum.hpp"

namespace redlock::test { namespace {

bool is_removal(const received_command& command) {
    const std::string name = command.name();
    return (name == "EVALSHA" || name == "EVAL") && command.args.size() == 7;
}

// Of a SET or of a compare-and-delete by script.
std::string token_of(const received_command& command) {
    return command.name() == "SET" ? command.args.at(2) : command.args.at(5);
}

// The first removal of what a SET may have left, or null.
const received_command* removal_of(const received_command& set, const fake_master::log& log) {
    const auto found = std::find_if(log.begin(), log.end(), [&](const received_command& one) {
        return is_removal(one) && token_of(one) == token_of(set);
    });
    return found == log.end() ? nullptr : &*found;
}

TEST_CASE("the rollback of a SET that hangs comes after it on the same connection") {
    started_quorum q(3, [](config& c) { c.master_timeout = 150ms; });
    q.masters[0].when("SET", fake_action::hang(), 1);
    q.masters[1].when("SET", fake_action::hang(), 1);
    CHECK(q.acquire("r").error() == errc::no_quorum);
    for (const std::size_t master : {0U, 1U}) {
        // On the wire when the acquire completes, so it needs no loop to arrive.
        q.masters[master].wait_for(
            [](const auto& log) { return std::any_of(log.begin(), log.end(), is_removal); });
        const auto sets = q.masters[master].commands("SET");
        REQUIRE(sets.size() == 1);
        const auto log = q.masters[master].commands();
        const received_command* const removal = removal_of(sets[0], log);
        REQUIRE(removal != nullptr);
        CHECK(removal->connection == sets[0].connection);
        CHECK(removal->sequence > sets[0].sequence);
        CHECK(q.masters[master].keys().empty());
        q.masters[master].release_hung();
    }
    // The SET has been executed now, later than anybody wants it.
    q.run_until([&] { return q.keys() == 0 && q.admitted() == 3; });
    CHECK(!q.acquire("r").error());
}

}} // namespace redlock::test
