// Which command compares and deletes, and which compares and extends.
#include "quorum.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

using namespace redlock;
using namespace redlock::test;
using namespace std::chrono_literals;

namespace {

fake_options valkey_9() {
    fake_options options;
    options.speaks = memory::server::dialect::valkey_9_0;
    return options;
}

fake_options redis_8_4() {
    fake_options options;
    options.speaks = memory::server::dialect::redis_8_4;
    return options;
}

std::size_t scripts(const quorum& q) {
    return q.count("EVALSHA") + q.count("EVAL");
}

// Takes, extends and releases a lock; true when all went well on all masters.
bool works(quorum& q) {
    lock held = q.acquired("r", once(10s));
    q.run_until([&] { return q.keys() == q.masters.size(); });
    const bool extended = !q.extend(held, 25s).error();
    for (const fake_master& master : q.masters) { // also at those that were not waited for
        q.run_until([&] { return master.pttl("redlock:{r}") > 10'000; });
    }
    const bool released = q.release(held).value() == release_result::released;
    q.run_until([&] { return q.keys() == 0; });
    return extended && released;
}

} // namespace

TEST_CASE("a script that the server does not know is sent in full once") {
    quorum q;
    q.start();
    CHECK(works(q));
    for (const fake_master& master : q.masters) {
        q.run_until([&] { return master.count("EVAL") == 2; }); // one to extend, one to delete
        CHECK(master.count("EVALSHA") == 0);
    }
    CHECK(works(q));
    for (const fake_master& master : q.masters) {
        CHECK(master.count("EVALSHA") == 2);
        CHECK(master.count("EVAL") == 2);
    }
    for (fake_master& master : q.masters) {
        master.flush_scripts();
    }
    CHECK(works(q));
    for (const fake_master& master : q.masters) {
        q.run_until([&] { return master.count("EVAL") == 4; });
    }
    CHECK(q.health_of(0).compare_and_delete == "EVALSHA");
}

TEST_CASE("where EVALSHA is forbidden, EVAL is used, and EVALSHA not tried again") {
    quorum q;
    for (fake_master& master : q.masters) {
        master.when("EVALSHA", fake_action::reply("-NOPERM this user may not\r\n"));
    }
    q.start();
    CHECK(works(q));
    CHECK(works(q)); // by now the scripts are known, and would go by their digests
    CHECK(q.health_of(0).compare_and_delete == "EVAL");
    const std::size_t tried = q.count("EVALSHA");
    CHECK(works(q));
    CHECK(q.count("EVALSHA") == tried);
}

TEST_CASE("a server that never knows a script is always sent it in full") {
    quorum q;
    for (fake_master& master : q.masters) {
        master.when("EVALSHA", fake_action::reply("-NOSCRIPT No matching script\r\n"));
    }
    q.start();
    CHECK(works(q));
    CHECK(works(q));
}

TEST_CASE("where all scripts are forbidden the keys are left to their ttl, and nothing hangs") {
    quorum q;
    for (fake_master& master : q.masters) {
        master.when("EVALSHA", fake_action::reply("-NOPERM no\r\n"));
        master.when("EVAL", fake_action::reply("-NOPERM no\r\n"));
    }
    q.start();
    lock held = q.acquired("r", once(200ms));
    release_outcome& released = q.release(held);
    CHECK(!released.error());
    CHECK(released.value() == release_result::uncertain);
    q.run_until([&] { return q.keys() == 0; });
    q.run_until([&] { return q.manager->get_metrics().pending_removals == 0; });
}

TEST_CASE("a Valkey that has native commands is not sent scripts") {
    quorum q(std::vector<fake_options>(3, valkey_9()));
    q.start();
    CHECK(q.health_of(0).version == "valkey 9.0.0");
    CHECK(q.health_of(0).compare_and_delete == "DELIFEQ");
    CHECK(works(q));
    CHECK(q.count("DELIFEQ") == 3);
    CHECK(q.count("SET") == 6); // one to take, one to extend
    CHECK(scripts(q) == 0);
}

TEST_CASE("a Redis that has native commands is not sent scripts") {
    quorum q(std::vector<fake_options>(3, redis_8_4()));
    q.start();
    CHECK(q.health_of(0).version == "redis 8.4.0");
    CHECK(q.health_of(0).compare_and_delete == "DELEX");
    CHECK(works(q));
    CHECK(q.count("DELEX") == 3);
    CHECK(q.count("SET") == 6);
    CHECK(scripts(q) == 0);
}

TEST_CASE("a native command that did nothing is followed by EXISTS, which tells why") {
    const auto options = GENERATE(valkey_9(), redis_8_4());
    quorum q(std::vector<fake_options>(3, options));
    q.start();
    SECTION("the key is gone") {
        lock held = q.acquired("r");
        q.run_until([&] { return q.keys() == 3; });
        for (fake_master& master : q.masters) {
            master.flush_keys();
        }
        CHECK(q.release(held).value() == release_result::expired);
        CHECK(q.count("EXISTS") >= 2);
    }
    SECTION("the key is somebody else's") {
        lock held = q.acquired("r");
        q.run_until([&] { return q.keys() == 3; });
        for (fake_master& master : q.masters) {
            master.set_key("redlock:{r}", "somebody's");
        }
        CHECK(q.release(held).value() == release_result::stolen);
        CHECK(q.count("EXISTS") >= 2);
        CHECK(q.keys() == 3);
    }
    SECTION("an extension finds the key gone") {
        lock held = q.acquired("r");
        q.run_until([&] { return q.keys() == 3; });
        for (fake_master& master : q.masters) {
            master.flush_keys();
        }
        CHECK(q.extend(held, 25s).error() == errc::lost);
        CHECK_FALSE(held.held());
        CHECK(q.wait(q.begin_wait_lost(held)).value() == loss_reason::expired);
    }
    SECTION("an extension finds somebody else's") {
        lock held = q.acquired("r");
        q.run_until([&] { return q.keys() == 3; });
        for (fake_master& master : q.masters) {
            master.set_key("redlock:{r}", "somebody's");
        }
        CHECK(q.extend(held, 25s).error() == errc::lost);
        CHECK(q.wait(q.begin_wait_lost(held)).value() == loss_reason::owned_by_other);
    }
}

TEST_CASE("a server that claims a version but refuses its commands is asked in scripts") {
    fake_options options;
    options.info = {GENERATE(
        std::pair<const std::string, std::string>("valkey_version", "9.0.0"),
        std::pair<const std::string, std::string>("redis_version", "8.4.0"))};
    quorum q(std::vector<fake_options>(3, options));
    q.start();
    CHECK(works(q));
    CHECK(q.health_of(0).compare_and_delete == "EVALSHA");
    const std::size_t tried = q.count("DELEX") + q.count("DELIFEQ");
    CHECK(tried == 3);
    CHECK(works(q));
    CHECK(q.count("DELEX") + q.count("DELIFEQ") == tried); // and not asked natively again
}

TEST_CASE("native commands that an ACL forbids are said in scripts") {
    quorum q(std::vector<fake_options>(3, valkey_9()));
    for (fake_master& master : q.masters) {
        master.when("DELIFEQ", fake_action::reply("-NOPERM no\r\n"));
    }
    q.start();
    CHECK(works(q));
    CHECK(q.health_of(0).compare_and_delete == "EVALSHA");
}

TEST_CASE("an extension that is shorter than one before does not shorten the key") {
    // SET with IFEQ would: so a server that has it is asked by script.
    quorum q(std::vector<fake_options>(3, valkey_9()));
    q.start();
    lock held = q.acquired("r", once(20s));
    q.run_until([&] { return q.keys() == 3; });
    const time_point before = held.deadline();
    CHECK(!q.extend(held, 1s).error());
    CHECK(held.deadline() >= before);
    CHECK(q.masters[0].pttl("redlock:{r}") > 5'000);
    CHECK(q.count("SET") == 3);
}

TEST_CASE("different servers of one quorum are each spoken to in their own way") {
    quorum q({valkey_9(), redis_8_4(), fake_options()});
    q.start();
    CHECK(works(q));
    CHECK(q.masters[0].count("DELIFEQ") == 1);
    CHECK(q.masters[1].count("DELEX") == 1);
    CHECK(q.masters[2].count("EVAL") == 2);
}
