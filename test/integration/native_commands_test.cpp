// Servers that compare and delete by themselves are not sent a script, and others get one.
#include "quorum_fixture.hpp"

namespace redlock::test { namespace {

std::string rung_of(const client& me) {
    return me.health().masters[0].compare_and_delete;
}

bool was_called(const master_process& master, const std::string& command) {
    const std::string stats = master.command({"INFO", "commandstats"});
    return stats.find("cmdstat_" + command + ":") != std::string::npos;
}

TEST_CASE("a server that compares and deletes natively is sent no script for it") {
    quorum_fixture site(3);
    const std::string command_variant = rung_of(site.me);
    if (command_variant != "DELEX" && command_variant != "DELIFEQ") {
        SKIP(site.me.health().masters[0].version << " has neither DELEX nor DELIFEQ");
    }
    lock mine = site.take_everywhere("r", once_unrenewed(10s));
    CHECK(site.me.extend(mine, 20s) == error_code());
    CHECK(mine.remaining() > 10s);
    CHECK(site.me.extend(mine, 5s) == error_code()); // never shortens, whatever SET would do
    CHECK(mine.remaining() > 10s);
    CHECK(site.eventually([&] {
        for (const master_process& master : site.masters) {
            if (std::stol(master.command({"PTTL", "redlock:{r}"})) < 10'000) {
                return false;
            }
        }
        return true;
    }));
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(site.no_key_left());
    const std::string native = command_variant == "DELEX" ? "delex" : "delifeq";
    for (const master_process& master : site.masters) {
        CHECK(site.eventually([&] { return was_called(master, native); }));
    }

    lock gone = site.take_everywhere("r", once_unrenewed(10s));
    site.everywhere({"DEL", "redlock:{r}"});
    CHECK(site.me.release(gone) == release_result::expired);
    lock stolen = site.take_everywhere("r", once_unrenewed(10s));
    site.everywhere({"SET", "redlock:{r}", "thief"});
    CHECK(site.me.release(stolen) == release_result::stolen);
    CHECK(site.masters.total_keys() == 3);
}

TEST_CASE("a server without native commands is sent scripts by their digest") {
    quorum_fixture site(3);
    if (rung_of(site.me) != "EVALSHA") {
        SKIP(site.me.health().masters[0].version << " has native commands");
    }
    for (int round = 0; round < 2; ++round) {
        lock mine = site.me.take("r", once_unrenewed(10s));
        CHECK(site.me.extend(mine, 20s) == error_code());
        CHECK(site.me.release(mine) == release_result::released);
        CHECK(site.no_key_left());
    }
    // Extend and remove; and one that finds out whether scripts are allowed.
    const std::string scripts = extends_natively(site.masters[0]) ? "3" : "2";
    for (const master_process& master : site.masters) {
        // In full once for each script, then by digest.
        const std::string stats = master.command({"INFO", "commandstats"});
        CHECK(contains(stats, "cmdstat_eval:calls=" + scripts + ","));
        CHECK(was_called(master, "evalsha"));
        CHECK_FALSE(was_called(master, "delex"));
    }
}

TEST_CASE("health tells the version of each server and how it compares and deletes") {
    quorum_fixture site(1);
    const master_health one = site.me.health().masters[0];
    CHECK((one.version.starts_with("redis ") || one.version.starts_with("valkey ")));
    CHECK(one.run_id.size() == 40);
    CHECK_FALSE(one.compare_and_delete.empty());
}

}} // namespace redlock::test
