// Connections on a virtual clock: the introduction, the order of replies, the end. And what one
// does by itself: it gives up, tries again, falls silent, and asks after the health of its master.

#include "connection_site.hpp"
#include "core/bytes/answer.hpp"
#include "core/bytes/keys.hpp"

namespace connection_test { namespace {

using namespace redlock::core;
using redlock::time_point;
using unit::checked_each_second;
using unit::connection_site;
using unit::lines;
using unit::up_site;

settings with_credentials(std::string user, std::string password, int database, std::string name) {
    settings rules = unit::settings_for(1);
    rules.masters[0] = {std::move(user), std::move(password), database, std::move(name)};
    return rules;
}

TEST_CASE("user, password, database and name come before everything else") {
    const std::string rest = "EVAL return 1 0";
    const auto introduction = [&](const settings& rules) {
        connection_site it(rules);
        it.link.start(it.now);
        it.link.opened(it.now);
        lines all = it.written();
        CHECK(all.back() == "INFO");
        all.pop_back();
        return all;
    };
    CHECK(introduction(with_credentials("", "pw", 0, "")) == lines{"AUTH pw", rest});
    CHECK(introduction(with_credentials("me", "pw", 0, "")) == lines{"AUTH me pw", rest});
    CHECK(
        introduction(with_credentials("me", "pw", 7, "app"))
        == lines{"AUTH me pw", "SELECT 7", "CLIENT SETNAME app", rest});
    CHECK(introduction(with_credentials("", "", 15, "")) == lines{"SELECT 15", rest});
}

TEST_CASE(
    "a refused password, database or INFO takes the connection down with the server's words") {
    struct {
        std::string command;
        std::string error;
    } const refusals[] = {
        {"AUTH", "WRONGPASS invalid username-password pair or user is disabled."},
        {"SELECT", "ERR DB index is out of range"},
        {"INFO", "NOAUTH Authentication required."},
        {"INFO", "NOPERM this user has no permissions to run the 'info' command"},
        {"INFO", "LOADING Redis is loading the dataset in memory"},
    };
    for (const auto& one : refusals) {
        CAPTURE(one.command, one.error);
        connection_site it(with_credentials("me", "pw", 3, "app"));
        it.server.password = "pw";
        it.server.replies[one.command] = "-" + one.error + "\r\n";
        it.bring_up();
        CHECK(!it.link.up());
        CHECK(it.link.refused());
        CHECK(it.link.why_down() == one.error);
        CHECK(it.closes == 1);
        CHECK(it.changes == 1);
        CHECK(it.drops.empty());
        CHECK(it.link.next_due() > it.now);
        CHECK(it.link.next_due() <= it.now + 150ms);
    }
}

TEST_CASE("plain: a server that took another's place is quarantined, however long it has been up") {
    settings rules = unit::settings_for(1);
    rules.quarantine = true;
    up_site it(rules);
    CHECK(it.link.judgement().votes_from == never);
    it.server.run_id = "another";
    it.reconnect();
    const time_point seen = it.now;
    CHECK(it.link.judgement().votes_from == seen + rules.quarantine_time());
    // A connection that is made anew does not begin the count anew.
    it.reconnect();
    CHECK(it.link.judgement().votes_from == seen + rules.quarantine_time());
}

TEST_CASE("plain: a promoted server is quarantined from the moment that it is first seen") {
    settings rules = unit::settings_for(1);
    rules.quarantine = true;
    connection_site it(rules);
    it.server.former_replication_id = "f00";
    it.bring_up();
    time_point seen = it.now;
    CHECK(it.link.judgement().votes_from == seen + rules.quarantine_time());
    it.now += rules.quarantine_time();
    it.link.introduce_again(it.now);
    it.answer();
    CHECK(it.link.judgement().votes_from <= it.now);
    for (const bool promoted_again : {false, true}) { // at first it forgets that it was
        it.server.former_replication_id = promoted_again ? "ba7" : "";
        it.now += 1s;
        it.link.introduce_again(it.now);
        it.answer();
        seen = it.now;
        CHECK((it.link.judgement().votes_from > it.now) == promoted_again);
    }
    CHECK(it.link.judgement().votes_from == seen + rules.quarantine_time());
}

TEST_CASE("a changed password is that of the next connection") {
    unit::started_quorum it(1);
    it.engine.set_password(0, "new");
    it.run_for(1s);
    CHECK(it.masters[0].count("AUTH") == 0);
    it.disconnect(0, 1s);
    CHECK(it.masters[0].count("AUTH new") > 0);
}

TEST_CASE("news of a socket that is closed already changes nothing") {
    connection_site it;
    it.link.closed("early", it.now);
    it.link.opened(it.now);
    CHECK(it.changes == 0);
    it.bring_up();
    it.link.closed("reset", it.now);
    const int changes = it.changes;
    it.link.closed("again", it.now);
    it.link.opened(it.now);
    it.hear("+OK\r\n");
    CHECK(it.changes == changes);
    CHECK(it.link.why_down() == "reset");
    CHECK(it.link.output().empty());
}

TEST_CASE("a certificate counts for what was sent under the same record") {
    for (const bool changed : {false, true}) {
        connection_site it(unit::guarded_settings_for(1));
        it.server.put("p::epoch", redlock::core::record_of_new_server(it.server.run_id));
        it.bring_up();
        while (!it.link.output().empty()) { // the handshake
            it.answer();
        }
        REQUIRE(it.link.up());
        const std::string record = it.server.data.find("p::epoch", 0)->value;
        const sent_command call{
            .kind = command_kind::acquire,
            .how = command_variant::native,
            .in_frame = true,
            .replies = 2,
            .certified = true,
            .record = it.link.record() - (changed ? 1U : 0U),
            .to = &it,
            .subject = {7, 1}};
        it.link.send("*1\r\n$4\r\nCALL\r\n", call, it.now);
        it.hear("+OK\r\n");
        CHECK(it.grants.empty());
        it.hear("$" + std::to_string(record.size()) + "\r\n" + record + "\r\n");
        CHECK(it.grants.size() == (changed ? 0 : 1));
        CHECK(it.replies.size() == (changed ? 1 : 0));
    }
}

TEST_CASE("a record that is written anew is never the one before") {
    connection_site it(unit::guarded_settings_for(1));
    std::set<std::string> records;
    it.bring_up();
    for (int i = 0; i < 3; ++i) {
        while (!it.link.output().empty()) {
            it.answer();
        }
        records.insert(it.server.data.find("p::epoch", 0)->value);
        it.server.forget();
        it.link.introduce_again(it.now);
    }
    CHECK(records.size() == 3);
}

TEST_CASE("grants in a row are one event, and those of a call cut anywhere count once each") {
    sent_command four{
        .kind = command_kind::acquire,
        .how = command_variant::native,
        .in_frame = true,
        .locks = 4,
        .replies = 4,
        .subject = {7, 1}};
    const std::string bytes = "+OK\r\n+OK\r\n$-1\r\n+OK\r\n";
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
        INFO("cut at " << cut);
        up_site it;
        four.to = &it;
        it.link.send("*1\r\n$4\r\nFOUR\r\n", four, it.now);
        it.hear(bytes.substr(0, cut));
        it.hear(bytes.substr(cut));
        if (cut == 0) {
            CHECK(it.grants == std::vector<std::pair<int, std::uint64_t>>{{4, 0b1100}, {1, 0b1}});
        }
        std::uint64_t locks = 0;
        for (const auto& [outstanding, granted] : it.grants) {
            CHECK((locks & granted) == 0);
            locks |= granted;
        }
        // A grant that came in pieces is a reply like others.
        CHECK(static_cast<std::size_t>(std::popcount(locks)) + it.replies.size() == 4);
        CHECK((locks & 0b10) == 0);
        CHECK(it.link.next_due() > it.now);
        CHECK(it.link.up());
        it.send(9);
        it.hear("+OK\r\n");
        CHECK(it.replies.back().first == 9);
    }
}

TEST_CASE("an unsolicited reply takes the connection down") {
    up_site it;
    it.hear("+surprise\r\n");
    CHECK(!it.link.up());
    CHECK(it.link.refused());
    CHECK(it.link.why_down() == "unsolicited reply");
    CHECK(it.replies.empty());
}

TEST_CASE("a master that lags too far is overloaded") {
    up_site it;
    for (std::size_t i = 0; i < connection::in_flight_max; ++i) {
        REQUIRE(!it.link.overloaded());
        it.send(1);
    }
    CHECK(it.link.overloaded());
    it.hear("+OK\r\n");
    CHECK(!it.link.overloaded());
}

TEST_CASE("a script for several locks is learned for each kind of call by itself") {
    constexpr command_kind kinds[] = {
        command_kind::acquire, command_kind::remove, command_kind::extend};
    for (const command_kind kind : kinds) {
        up_site it;
        const server_capabilities before = it.link.commands();
        const auto learn = [&](command_variant how, std::string_view error, std::size_t locks = 2) {
            const reply answered{
                error.empty() ? reply_type::array : reply_type::error, 0, error, {}};
            const sent_command command{.kind = kind, .how = how, .in_frame = true};
            const frame_answers all(answered, kind, how, false, locks);
            it.link.learn(command, answered, all.call());
        };
        const auto said_by = [&](command_kind one) {
            return it.link.commands().of(lock_form::exclusive, one, true);
        };
        CHECK(said_by(kind) == command_variant::eval);
        learn(command_variant::eval, "READONLY You can't write against a read only replica.");
        CHECK(said_by(kind) == command_variant::eval);
        learn(command_variant::eval, "");
        for (const command_kind other : kinds) {
            CHECK(
                said_by(other)
                == (other == kind ? command_variant::evalsha : command_variant::eval));
        }
        for (const std::size_t locks : {1U, 2U}) {
            learn(
                command_variant::evalsha, "LOADING Redis is loading the dataset in memory", locks);
            CHECK(said_by(kind) == command_variant::evalsha);
        }
        learn(command_variant::evalsha, "NOSCRIPT No matching script. Please use EVAL.");
        CHECK(it.link.commands() == before);
        learn(command_variant::eval, "");
        learn(command_variant::evalsha, "NOSCRIPT No matching script. Please use EVAL.", 1);
        CHECK(it.link.commands() == before);

        // Of several locks, one may be another's: nothing follows for the command.
        const std::string_view refusal = "NOPERM No permissions to access a key";
        learn(command_variant::eval, "");
        const server_capabilities taught = it.link.commands();
        learn(command_variant::evalsha, refusal);
        learn(command_variant::eval, refusal);
        learn(command_variant::eval, refusal, 1); // EVAL is the last
        CHECK(it.link.commands() == taught);
        CHECK(said_by(kind) == command_variant::evalsha);
        learn(command_variant::evalsha, refusal, 1);
        CHECK(!it.link.commands().evalsha);
        learn(command_variant::eval, "");
        CHECK(said_by(kind) == command_variant::eval); // whatever it knows
        it.reconnect();
        CHECK(it.link.commands() == before);
    }
}

TEST_CASE("a replica gets no handshake, whatever the connection before it was about to send") {
    connection_site it(unit::guarded_settings_for(1));
    it.link.start(it.now);
    it.link.opened(it.now);
    it.hear(it.server.execute({"INFO"}, it.now)); // the look is not replied to
    it.server.info_overrides["role"] = "slave";
    it.reconnect();
    CHECK(it.link.up());
    CHECK(it.written().empty());
}

TEST_CASE("connecting and introducing must end within connect_timeout") {
    for (const bool opened : {false, true}) {
        connection_site it;
        it.link.start(it.now);
        CHECK(it.link.next_due() == it.now + 2s);
        it.wait(1s);
        if (opened) {
            it.link.opened(it.now);
            CHECK(it.link.next_due() == it.now + 1s); // one deadline for both
        }
        it.wait(1s - 1ns);
        CHECK(it.closes == 0);
        it.wait(1ns);
        CHECK(it.closes == 1);
        CHECK(!it.link.refused());
        CHECK(
            it.link.why_down().find(opened ? "server replied" : "name resolution")
            != std::string::npos);
        CHECK(it.link.counters().disconnects == (opened ? 1U : 0U));
    }
}

TEST_CASE("a lost connection is opened again after a delay that grows within its bounds") {
    connection_site it;
    it.link.start(it.now);
    std::chrono::nanoseconds before = 50ms;
    std::chrono::nanoseconds largest{};
    for (int i = 1; i <= 60; ++i) {
        REQUIRE(it.opens == i);
        it.link.closed("connection refused", it.now);
        const std::chrono::nanoseconds delay = it.link.next_due() - it.now;
        REQUIRE(delay >= 50ms);
        REQUIRE(delay <= std::min<std::chrono::nanoseconds>(2s, 3 * before));
        before = delay;
        largest = std::max(largest, delay);
        it.wait(delay - 1ns);
        REQUIRE(it.opens == i);
        it.wait(1ns);
    }
    CHECK(largest == 2s);
    it.introduce();
    it.link.closed("reset", it.now);
    CHECK(it.link.next_due() - it.now <= 150ms); // it worked: small again
}

TEST_CASE("an idle connection is checked with PING, and a busy one is not") {
    up_site it(checked_each_second());
    CHECK(it.link.next_due() == it.now + 1s);
    it.wait(500ms);
    it.send(1);
    it.hear("+OK\r\n");
    it.written();
    it.wait(999ms);
    CHECK(it.written().empty());
    it.wait(1ms);
    CHECK(it.written() == lines{"PING"});
    it.wait(1ms);
    it.hear("+PONG\r\n");
    CHECK(it.link.up());
    CHECK(it.replies.size() == 1); // it is not reported
    CHECK(it.link.next_due() == it.now + 1s);
}

TEST_CASE("an ineligible master is asked again at each check, and is eligible once it says so") {
    const lines introduction{"EVAL return 1 0", "INFO"};
    connection_site it(checked_each_second());
    it.server.info_overrides["role"] = "slave";
    it.bring_up();
    CHECK(it.link.up());
    CHECK(!it.link.judgement().fit);
    it.written();
    it.wait(1s);
    CHECK(unit::virtual_master::lines_of(it.link.output()) == introduction);
    it.answer();
    CHECK(!it.link.judgement().fit);
    it.wait(1s);
    CHECK(unit::virtual_master::lines_of(it.link.output()) == introduction);
    it.server.info_overrides["role"] = "master";
    const int changes = it.changes;
    it.answer();
    CHECK(it.link.judgement().fit);
    CHECK(it.changes == changes + 1);
    it.wait(1s);
    CHECK(it.written() == lines{"PING"});
}

}} // namespace connection_test
