// What an ACL must allow for the guarded protocol. The lines here are those that the documentation
// quotes.
#include "guarded_quorum.hpp"

#include <algorithm>

using namespace redlock;
using namespace redlock::test;

namespace {

// The least: scripts are sent in full, and must be allowed to do what they do.
const std::vector<std::string> minimal = {
    "+info", "+eval", "+time", "+get", "+set", "+del", "+pttl", "+pexpire", "+hmget", "+hset"};

// What a deployment should allow besides: scripts by their digest, health checks, a name, the
// question whether every write is fsynced, and wake-ups.
const std::vector<std::string> comfort = {
    "+evalsha",
    "+ping",
    "+client|setname",
    "+config|get",
    "+publish",
    "+subscribe",
    "+unsubscribe",
    "&redlock:*"};

std::vector<std::string> without(std::vector<std::string> rules, const std::string& one) {
    std::erase(rules, one);
    return rules;
}

std::vector<std::string>
with(std::vector<std::string> rules, const std::vector<std::string>& more) {
    rules.insert(rules.end(), more.begin(), more.end());
    return rules;
}

struct restricted_site {
    restricted_site() : masters(3) {}

    // Connects anew with these rules and nothing else.
    void allow(const std::vector<std::string>& rules, const std::string& keys = "~redlock:*") {
        me.reset();
        for (master_process& master : masters) {
            const auto line = with({"ACL", "SETUSER", "locker", "reset", "on", ">pw", keys}, rules);
            REQUIRE(master.command(line) == "OK");
            master.command({"FLUSHALL"});
        }
        config settings = config_for(masters.urls());
        guarded(settings);
        settings.username = "locker";
        settings.password = "pw";
        settings.health_check_interval = 200ms;
        me.emplace(io, settings);
        run_until(io, [&] {
            const health now = me->health();
            return std::none_of(now.masters.begin(), now.masters.end(), [](const auto& one) {
                return one.state == master_state::connecting
                       || (one.state == master_state::down && one.text.empty());
            });
        });
    }

    // Whether a lock with a token can be taken, extended and released.
    bool works() {
        if (me->health().admitted < 3) {
            return false;
        }
        const acquisition_ptr got = me->acquire("r", with_token(once_unrenewed(5s)));
        if (got->error) {
            return false;
        }
        const bool extended = !me->extend(got->lock, 10s);
        return me->release(got->lock) == release_result::released && extended;
    }

    asio::io_context io;
    quorum_of_masters masters;
    std::optional<client> me;
};

} // namespace

TEST_CASE("guarded: a user limited to the prefix and the least of commands can lock") {
    restricted_site site;
    site.allow(minimal);
    INFO(to_string(site.me->health()));
    CHECK(site.works());
    CHECK(site.works()); // also after the steps down to what is allowed
}

TEST_CASE("guarded: every command of the least is needed") {
    restricted_site site;
    for (const std::string& one : minimal) {
        INFO("without " << one);
        site.allow(without(minimal, one));
        CHECK_FALSE(site.works());
    }
}

TEST_CASE("guarded: with the recommended commands nothing is refused") {
    restricted_site site;
    site.allow(with(minimal, comfort));
    for (master_process& master : site.masters) {
        master.command({"ACL", "LOG", "RESET"});
    }
    CHECK(site.works());
    const auto end = std::chrono::steady_clock::now() + 500ms; // health checks pass by
    run_until(site.io, [&] { return std::chrono::steady_clock::now() >= end; });
    for (master_process& master : site.masters) {
        CHECK(master.command({"ACL", "LOG"}) == "(empty array)");
    }
}

TEST_CASE("guarded: where scripts are forbidden, health says what to do") {
    restricted_site site;
    site.allow(without(with(minimal, comfort), "+eval"));
    const health now = site.me->health();
    INFO(to_string(now));
    CHECK(now.admitted == 0);
    CHECK_FALSE(now.ready);
    for (const master_health& one : now.masters) {
        CHECK(one.state == master_state::unfit);
        CHECK(one.text.find("NOPERM") != std::string::npos);
        CHECK(one.text.find("needs EVAL") != std::string::npos);
        CHECK(one.text.find("protocol::plain") != std::string::npos);
    }
    const acquisition_ptr refused = site.me->acquire("r");
    INFO(refused->explained());
    CHECK(refused->error == errc::no_quorum);
    CHECK(to_string(refused->why).find("protocol::plain") != std::string::npos);
    // What it advises works.
    config advised = config_for(site.masters.urls());
    advised.protocol = protocol::plain;
    advised.username = "locker";
    advised.password = "pw";
    client other(site.io, advised);
    other.until_admitted(3);
    CHECK(!other.acquire("r")->error);
}

TEST_CASE("guarded: keys outside the prefix that is allowed keep the masters out") {
    restricted_site site;
    site.allow(with(minimal, comfort), "~elsewhere:*");
    CHECK(site.me->health().admitted == 0);
    INFO(to_string(site.me->health()));
    CHECK(to_string(site.me->health()).find("NOPERM") != std::string::npos);
}
