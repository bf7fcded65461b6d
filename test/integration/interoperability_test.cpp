// What a lock looks like on the servers, and that other clients of the algorithm get along with it.
#include "quorum_fixture.hpp"

#include <cctype>

using namespace redlock;
using namespace redlock::test;

TEST_CASE(
    "the value is forty hexadecimal digits, new each time, with no longer a life than asked") {
    quorum_fixture site(3);
    std::string last;
    for (int round = 0; round < 3; ++round) {
        lock mine = site.me.take("r", once(5s));
        const std::string token(mine.secret());
        CHECK(token.size() == 40);
        CHECK(std::all_of(token.begin(), token.end(), [](unsigned char c) {
            return std::isdigit(c) != 0 || (c >= 'a' && c <= 'f');
        }));
        CHECK(token != last);
        last = token;
        CHECK(site.eventually([&] { return site.masters.total_keys() == 3; }));
        for (const master_process& master : site.masters) {
            CHECK(master.command({"GET", "redlock:{r}"}) == token);
            const int pttl = std::stoi(master.command({"PTTL", "redlock:{r}"}));
            CHECK(pttl > 0);
            CHECK(pttl <= 5'000);
        }
        CHECK(site.me.release(mine) == release_result::released);
    }
}

TEST_CASE("all keys begin with the prefix that was configured") {
    quorum_fixture site(3, [](config& c) { c.key_prefix = "{team}:locks:"; });
    lock mine = site.me.take("r");
    CHECK(site.me.extend(mine, 5s) == error_code());
    for (const master_process& master : site.masters) {
        CHECK(site.eventually(
            [&] { return master.keys() == std::vector<std::string>{"{team}:locks:{r}"}; }));
    }
}

TEST_CASE("an empty prefix makes the resource the key") {
    quorum_fixture site(1, [](config& c) { c.key_prefix.clear(); });
    lock mine = site.me.take("r");
    CHECK(site.masters[0].keys() == std::vector<std::string>{"r"});
}

TEST_CASE("a name may be any bytes, up to the longest that is allowed") {
    quorum_fixture site(3);
    std::string all;
    for (int byte = 0; byte < 256; ++byte) {
        all += static_cast<char>(byte);
    }
    const std::string longest(resource_name_max, '*');
    for (const std::string& name : {all, std::string("\r\n"), std::string(1, '\0'), longest}) {
        lock mine = site.me.take(name);
        CHECK(mine.resource() == name);
        CHECK(site.eventually([&] { return site.masters.total_keys() == 3; }));
        CHECK(site.masters[0].command({"GET", "redlock:{" + name + "}"}) == mine.secret());
        CHECK(site.me.extend(mine, 10s) == error_code());
        CHECK(site.me.release(mine) == release_result::released);
        CHECK(site.no_key_left());
    }
}

TEST_CASE("a key that another client set refuses an acquire until it expires") {
    quorum_fixture site(3);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(
            site.masters[i].command({"SET", "redlock:{r}", "by-hand", "NX", "PX", "1000"}) == "OK");
    }
    CHECK(site.me.acquire("r")->error == errc::contended);
    const acquisition_ptr waits = site.me.acquire("r", waiting(20s));
    CHECK(*waits);
}

TEST_CASE("a lock refuses a SET NX of another client, and a script with its token releases it") {
    quorum_fixture site(3);
    lock mine = site.take_everywhere("r");
    const std::string token(mine.secret());
    // The script of the Redis page on distributed locks.
    const std::string unlock = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then "
                               "return redis.call(\"del\",KEYS[1]) else return 0 end";
    for (const master_process& master : site.masters) {
        CHECK(master.command({"SET", "redlock:{r}", "by-hand", "NX", "PX", "1000"}) == "(nil)");
        CHECK(master.command({"EVAL", unlock, "1", "redlock:{r}", "by-hand"}) == "0");
        CHECK(master.command({"EVAL", unlock, "1", "redlock:{r}", token}) == "1");
    }
    CHECK(site.me.release(mine) == release_result::expired);
}

TEST_CASE("a key of another type under the lock's name counts as another owner's") {
    quorum_fixture site(3);
    for (std::size_t i = 0; i < 2; ++i) {
        site.masters[i].command({"LPUSH", "redlock:{r}", "a", "b"});
    }
    CHECK(site.me.acquire("r")->error == errc::contended);
    const lock_status status = site.me.query("r");
    CHECK(status.masters[0].vote == vote::owned_by_other);
    CHECK(status.state != lock_state::held);
    CHECK(site.eventually([&] { return site.masters[2].keys().empty(); }));
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(site.masters[i].command({"LLEN", "redlock:{r}"}) == "2");
    }
}
