// What an operator does without holding a lock: lists, and releases by force. Masters that are away
// and lists that differ: cli/acquire_test.py.
#include "guarded_quorum.hpp"

#include <redlock/admin.hpp>

namespace redlock::test { namespace {

bool all_granted(const std::vector<master_vote>& masters) {
    return std::ranges::count(masters, vote::granted, &master_vote::vote) == 3;
}

TEST_CASE("list and force_release refuse what they cannot do") {
    const quorum_of_masters masters(3);
    config how = config_for(masters.urls());
    CHECK_THROWS_AS(admin::force_release(how, ""), std::invalid_argument);
    how.key_prefix.clear();
    CHECK_THROWS_AS(admin::list(how), std::invalid_argument);
    how.masters.clear();
    CHECK_THROWS_AS(admin::list(how), std::invalid_argument);
    CHECK_THROWS_AS(admin::force_release(how, "r"), std::invalid_argument);
}

TEST_CASE("a lock is listed, and taken from its holder for nobody else before its lease ends") {
    quorum_fixture site(3, guarded);
    const config how = site.changed(guarded);
    const std::string name = "a{}\r\n";
    lock mine = site.take_everywhere(name, once_unrenewed(10s));
    const admin::held_locks found = admin::list(how);
    CHECK(found.resources == std::vector<std::string>{name});
    CHECK(all_granted(found.masters));
    const admin::force_result taken = admin::force_release(how, name);
    CHECK(taken.released);
    CHECK(all_granted(taken.masters));
    for (const master_process& master : site.masters) {
        CHECK(exists(master, lock_key(name)));
        CHECK(master.command({"GET", lock_key(name)}) != mine.secret());
    }
    client other(site.io, how, 3);
    CHECK(other.acquire(name, once(1s))->error == errc::contended);
    CHECK(site.me.extend(mine, 10s) == errc::lost);
    CHECK_FALSE(mine.held());
    for (int i = 0; i < 2; ++i) { // also if it is free
        CHECK(admin::force_release_now(how, name).released);
        CHECK(site.masters.total_keys(lock_key("*")) == 0);
    }
}

}} // namespace redlock::test
