// An attempt that did not succeed leaves no key, whatever happened to its commands.
#include "quorum.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <set>

using namespace redlock;
using namespace redlock::test;
using namespace std::chrono_literals;

namespace {

bool is_removal(const received_command& command) {
    const std::string name = command.name();
    const bool script = name == "EVALSHA" || name == "EVAL";
    return (script && command.args.size() == 5) || name == "DELEX" || name == "DELIFEQ";
}

// Of a SET or of a compare-and-delete by script.
std::string token_of(const received_command& command) {
    return command.name() == "SET" ? command.args.at(2) : command.args.at(4);
}

// The first removal of what a SET may have left, or null.
const received_command* removal_of(const received_command& set, const fake_master::log& log) {
    const auto found = std::find_if(log.begin(), log.end(), [&](const received_command& one) {
        return is_removal(one) && token_of(one) == token_of(set);
    });
    return found == log.end() ? nullptr : &*found;
}

bool is_token(const std::string& text) {
    return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

} // namespace

TEST_CASE("a key whose grant was lost with the connection is removed when it is back") {
    quorum q;
    q.start();
    for (const std::size_t master : {0U, 1U}) {
        q.masters[master].refuse_connections(true); // for the next connection
        q.masters[master].when("SET", fake_action::execute_then_close(), 1);
    }
    acquisition& failed = q.acquire("r");
    CHECK(failed.error() == errc::no_quorum);
    CHECK(q.masters[0].get_key("redlock:{r}"));
    CHECK(q.masters[1].get_key("redlock:{r}"));
    CHECK(q.manager->get_metrics().pending_removals == 2);
    CHECK(q.manager->get_metrics().removals_repeated == 0);

    q.masters[0].refuse_connections(false);
    q.masters[1].refuse_connections(false);
    q.run_until([&] { return q.manager->get_metrics().removals_repeated == 2; });
    q.run_until([&] { return q.keys() == 0; });
    CHECK(q.manager->get_metrics().pending_removals == 0);
    CHECK(!q.acquire("r").error());
}

TEST_CASE("a debt is forgotten when the key must have expired") {
    quorum q(1);
    q.start();
    q.masters[0].refuse_connections(true);
    q.masters[0].when("SET", fake_action::execute_then_close(), 1);
    CHECK(q.acquire("r", once(100ms)).error() == errc::no_quorum);
    q.run_until([&] { return q.manager->get_metrics().pending_removals == 0; });
    CHECK(q.manager->get_metrics().removals_repeated == 0);
    q.run_until([&] { return q.keys() == 0; }); // a plain SET that is executed late lasts longer
}

TEST_CASE("a removal whose connection breaks is repeated on the next") {
    quorum q;
    q.start();
    lock held = q.acquired("r");
    q.run_until([&] { return q.keys() == 3; });
    for (fake_master& master : q.masters) {
        master.when("EVAL", fake_action::close_before_reply(), 1);
    }
    release_outcome& released = q.release(held);
    CHECK(!released.error());
    CHECK(released.value() == release_result::uncertain); // nobody has said a word
    q.run_until([&] { return q.keys() == 0; });
    q.run_until([&] { return q.manager->get_metrics().removals_repeated == 3; });
}

TEST_CASE("a removal that is refused for a while is repeated") {
    quorum q(3, [](config& c) { c.health_check_interval = 50ms; });
    q.start();
    lock held = q.acquired("r");
    q.run_until([&] { return q.keys() == 3; });
    for (const std::string name : {"EVALSHA", "EVAL"}) {
        for (fake_master& master : q.masters) {
            master.when(name, fake_action::reply("-BUSY Redis is busy running a script.\r\n"), 1);
        }
    }
    CHECK(q.release(held).value() == release_result::uncertain);
    q.run_until([&] { return q.keys() == 0; });
}

TEST_CASE("the rollback of a SET that hangs comes after it on the same connection") {
    quorum q(3, [](config& c) { c.master_timeout = 150ms; });
    q.start();
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

TEST_CASE("every attempt that fails is undone at every master that was asked, before the next") {
    quorum q;
    q.start();
    q.masters[0].set_key("redlock:{r}", "somebody's");
    q.masters[1].set_key("redlock:{r}", "somebody's");
    acquisition& waiting = q.begin_acquire("r", patiently());
    q.run_until([&] { return q.manager->get_metrics().attempts >= 5; });
    CHECK_FALSE(waiting.done());
    CHECK(q.masters[0].get_key("redlock:{r}") == "somebody's");
    q.masters[0].erase_key("redlock:{r}");
    q.masters[1].erase_key("redlock:{r}");
    CHECK(!q.wait(waiting).error());
    CHECK(waiting.why().attempts >= 5);

    q.run_until([&] { return q.keys() == 3; });
    std::set<std::string> tokens;
    for (const fake_master& master : q.masters) {
        const auto log = master.commands();
        const auto sets = master.commands("SET");
        for (std::size_t i = 0; i < sets.size(); ++i) {
            CHECK(is_token(token_of(sets[i])));
            tokens.insert(token_of(sets[i]));
            CHECK(sets[i].args.at(3) == "NX");
            if (i + 1 < sets.size()) {
                const received_command* const removal = removal_of(sets[i], log);
                REQUIRE(removal != nullptr);
                CHECK(removal->sequence > sets[i].sequence);
                CHECK(removal->sequence < sets[i + 1].sequence);
            } else {
                CHECK(removal_of(sets[i], log) == nullptr);
                CHECK(token_of(sets[i]) == waiting.value().token());
            }
        }
    }
    CHECK(tokens.size() == waiting.why().attempts); // the same everywhere, and never used again
}

TEST_CASE("a contended attempt takes back what it was granted and leaves the holder's") {
    quorum q;
    q.start();
    q.masters[0].set_key("redlock:{r}", "somebody's");
    q.masters[2].set_key("redlock:{r}", "somebody's");
    acquisition& refused = q.acquire("r");
    CHECK(refused.error() == errc::contended);
    CHECK(refused.error() == condition::not_acquired);
    CHECK(!refused.value().valid());
    CHECK(q.manager->get_metrics().contended == 1);
    q.run_until([&] { return q.keys() == 2; });
    for (fake_master& master : q.masters) {
        master.wait_for(
            [](const auto& log) { return std::any_of(log.begin(), log.end(), is_removal); });
    }
    CHECK(q.masters[0].get_key("redlock:{r}") == "somebody's");
    CHECK(q.masters[2].get_key("redlock:{r}") == "somebody's");
}

TEST_CASE("a straggler that grants after the lock was refused is undone") {
    quorum q(5, [](config& c) { c.master_timeout = 1h; });
    q.start();
    for (const std::size_t master : {0U, 1U, 2U}) {
        q.masters[master].set_key("redlock:{r}", "somebody's");
    }
    q.masters[4].when("SET", fake_action::hang(), 1);
    CHECK(q.acquire("r").error() == errc::contended);
    q.masters[4].wait_for_command("SET");
    q.masters[4].release_hung();
    q.run_until([&] { return q.keys() == 3; });
    q.run_until([&] { return q.manager->get_metrics().pending_removals == 0; });
}

TEST_CASE("a straggler that grants after the lock was taken belongs to it") {
    quorum q(3, [](config& c) { c.master_timeout = 1h; });
    q.start();
    q.masters[2].when("SET", fake_action::hang(), 1);
    lock held = q.acquired("r");
    q.masters[2].wait_for_command("SET");
    CHECK(q.masters[2].keys().empty());
    q.masters[2].release_hung();
    q.run_until([&] { return q.manager->get_metrics().masters[2].granted == 1; });
    CHECK(q.masters[2].get_key("redlock:{r}") == held.token());
    CHECK(q.release(held).value() == release_result::released);
    q.run_until([&] { return q.keys() == 0; });
}

TEST_CASE("a release reaches the master that has not answered the acquire yet") {
    quorum q(3, [](config& c) { c.master_timeout = 1h; });
    q.start();
    q.masters[2].when("SET", fake_action::hang(), 1);
    lock held = q.acquired("r");
    CHECK(q.release(held).value() == release_result::released);
    q.masters[2].wait_for_command("SET");
    q.masters[2].release_hung(); // the SET is executed after the release was decided
    q.run_until([&] { return q.masters[2].count("EVAL") + q.masters[2].count("EVALSHA") > 0; });
    q.run_until([&] { return q.keys() == 0; });
}

TEST_CASE("a grant that comes too late is undone") {
    quorum q(3, [](config& c) { c.master_timeout = 10s; });
    q.start();
    for (fake_master& master : q.masters) {
        master.when("SET", fake_action::delay(200ms), 1);
    }
    acquire_options options = once(10s);
    options.min_validity = 9'800ms; // of 9'898 ms after the allowance for drift
    acquisition& failed = q.acquire("r", options);
    CHECK(failed.error());
    CHECK((failed.error() == errc::validity_exhausted || failed.error() == errc::no_quorum));
    q.run_until([&] { return q.keys() == 0; });
}

TEST_CASE("an acquire whose wait ends within an attempt is undone") {
    quorum q(3, [](config& c) { c.master_timeout = 10s; });
    q.start();
    for (fake_master& master : q.masters) {
        master.when("SET", fake_action::execute_then_hang(), 1);
    }
    acquire_options options = once();
    options.wait = 100ms;
    acquisition& failed = q.acquire("r", options);
    // An outage, unless this machine is so slow that the masters had no time to answer.
    CHECK((failed.error() == errc::no_quorum || failed.error() == errc::wait_timed_out));
    for (fake_master& master : q.masters) {
        master.wait_for_command("SET");
        master.release_hung();
    }
    q.run_until([&] { return q.keys() == 0; });
    CHECK(q.manager->get_metrics().wait_timed_out + q.manager->get_metrics().no_quorum == 1);
}
