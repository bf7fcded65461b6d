// What an operator does without holding a lock: lists, and releases by force.
#include "guarded_quorum.hpp"

#include <redlock/admin.hpp>

namespace redlock::test { namespace {

bool all_done(const std::vector<admin::master_result>& masters, bool done = true) {
    return std::ranges::all_of(
        masters, [&](const admin::master_result& one) { return one.done == done; });
}

TEST_CASE("list: the names of all locks, and nothing else") {
    quorum_fixture site(3, guarded);
    const config how = site.changed(guarded);
    CHECK(admin::list(how).resources.empty());
    const lock one = site.take_everywhere("b", with_token());
    const lock two = site.take_everywhere("a{}\r\n");
    site.masters[1].command({"SET", how.key_prefix + "{minority}", "of one"});
    site.masters[0].command({"SET", "another{key}", "not ours"});
    const admin::held_locks found = admin::list(how);
    CHECK(found.resources == std::vector<std::string>{"a{}\r\n", "b", "minority"});
    CHECK(all_done(found.masters));
}

TEST_CASE("list: a master that is down is reported, and the others are read") {
    quorum_fixture site(3, guarded);
    const lock one = site.take_everywhere("r");
    site.masters[2].kill();
    const admin::held_locks found = admin::list(site.changed(guarded));
    CHECK(found.resources == std::vector<std::string>{"r"});
    CHECK(found.masters[0].done);
    CHECK_FALSE(found.masters[2].done);
    CHECK(!found.masters[2].text.empty());
}

TEST_CASE("list and force_release refuse what they cannot do") {
    quorum_fixture site(3);
    config how = config_for(site.masters.urls());
    CHECK_THROWS_AS(admin::force_release(how, ""), std::invalid_argument);
    CHECK_THROWS_AS(
        admin::force_release(how, "r", static_cast<admin::force>(7)), std::invalid_argument);
    how.key_prefix.clear();
    CHECK_THROWS_AS(admin::list(how), std::invalid_argument);
    how.masters.clear();
    CHECK_THROWS_AS(admin::list(how), std::invalid_argument);
    CHECK_THROWS_AS(admin::force_release(how, "r"), std::invalid_argument);
}

TEST_CASE(
    "force_release: the holder loses the lock, and nobody else gets it before its lease ends") {
    quorum_fixture site(3, guarded);
    lock mine = site.take_everywhere("r", once_unrenewed(10s));
    const config how = site.changed(guarded);
    const admin::force_result done = admin::force_release(how, "r");
    CHECK(done.released);
    CHECK(all_done(done.masters));
    for (const master_process& master : site.masters) {
        CHECK(exists(master, lock_key("r")));
        CHECK(master.command({"GET", lock_key("r")}) != mine.secret());
    }
    client other(site.io, how, 3);
    CHECK(other.acquire("r", once(1s))->error == errc::contended);
    CHECK(site.me.extend(mine, 10s) == errc::lost);
    CHECK_FALSE(mine.held());
}

TEST_CASE("force_release at once: the key is gone, and a lock that is free is released") {
    quorum_fixture site(3, guarded);
    lock mine = site.take_everywhere("r", once_unrenewed(10s));
    const config how = site.changed(guarded);
    for (int i = 0; i < 2; ++i) {
        CHECK(admin::force_release(how, "r", admin::force::at_once).released);
        CHECK(site.masters.total_keys(lock_key("r")) == 0);
    }
    mine.abandon();
}

TEST_CASE("force_release: two masters of three that are down are not a release") {
    quorum_fixture site(3, guarded);
    lock mine = site.take_everywhere("r", once_unrenewed(10s));
    site.masters[1].kill();
    site.masters[2].kill();
    const admin::force_result done = admin::force_release(site.changed(guarded), "r");
    CHECK_FALSE(done.released);
    CHECK(done.masters[0].done);
    mine.abandon();
}

TEST_CASE("force_release does not touch the masters of another quorum") {
    quorum_fixture site(3, guarded);
    quorum_of_masters others(2);
    lock mine = site.take_everywhere("r", once_unrenewed(10s));
    config wrong_list = site.changed(guarded);
    wrong_list.masters = {wrong_list.masters[0], others.urls()[0], others.urls()[1]};
    const admin::force_result done = admin::force_release(wrong_list, "r", admin::force::at_once);
    CHECK_FALSE(done.masters[0].done);
    CHECK(contains(done.masters[0].text, "not a member of this quorum"));
    CHECK(site.masters[0].command({"GET", lock_key("r")}) == mine.secret());
    CHECK(site.me.release(mine) == release_result::released);
}

}} // namespace redlock::test
