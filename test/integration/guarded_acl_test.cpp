// What an ACL must allow for the guarded protocol. The lines here are those that the documentation
// quotes.
#include "blocking_site.hpp"
#include "family_member.hpp"
#include "restricted_site.hpp"

namespace guarded_acl_test {

using namespace redlock;
using namespace redlock::test;

namespace {

// The least: scripts are sent in full, and must be allowed to do what they do.
const acl_rules minimal = {"+info", "+eval", "+time", "+get", "+set", "+del", "+pttl", "+pexpire"};

// What a deployment should allow in addition: scripts by their digest, health checks, a name, and
// release notifications.
const acl_rules comfort = {
    "+evalsha",
    "+incr",
    "+ping",
    "+client|setname",
    "+publish",
    "+subscribe",
    "+unsubscribe",
    "&redlock:*"};

// What readers and writers need besides.
const acl_rules sharing = {"+zadd", "+zscore", "+zrange", "+zrem", "+zremrangebyscore"};

struct guarded_site : restricted_site {
    guarded_site() : restricted_site(protocol::guarded) {}

    // As `works`, of readers and writers that meet.
    bool shares() {
        return succeeds([&](blocking::manager& manager) {
            manager.ready(10s);
            const auto take = [&](bool writes, acquire_options options) {
                options.mode = writes ? lock_mode::exclusive : lock_mode::shared;
                return manager.call([&](auto token) {
                    return manager.async().async_acquire("r", options, std::move(token));
                });
            };
            const auto extended_and_released = [&](redlock::lock one) {
                manager.call([&](auto token) { return one.async_extend(20s, std::move(token)); });
                return manager.call([&](auto token) { return one.async_release(std::move(token)); })
                       == release_result::released;
            };
            redlock::lock one = take(false, once());
            redlock::lock two = take(false, once());
            const bool refused =
                blocking_use::error_of([&] { static_cast<void>(take(true, once())); })
                == errc::contended;
            bool good = refused && extended_and_released(std::move(one));
            good = extended_and_released(std::move(two)) && good;
            redlock::lock writer = take(true, waiting(3s));
            manager.call([&](auto token) { return writer.async_downgrade(std::move(token)); });
            return extended_and_released(std::move(writer)) && good;
        });
    }

    // What a manager of this user can do, in calls that block.
    template <typename What>
    bool succeeds(What what) {
        blocking::manager manager(settings(speaks));
        bool result = false;
        const error_code error = blocking_use::error_of([&] { result = what(manager); });
        return !error && result;
    }
};

} // namespace

TEST_CASE("guarded: a user with the minimal ACL can acquire, extend and release") {
    guarded_site site;
    site.allow(minimal);
    INFO(to_string(site.me->health()));
    CHECK(site.works());
    CHECK(site.works()); // also after the steps down to what is allowed
}

TEST_CASE("guarded: each command of the minimal ACL is needed") {
    guarded_site site;
    for (const std::string& one : minimal) {
        INFO("without " << one);
        site.allow(without(minimal, one));
        CHECK_FALSE(site.works());
    }
}

TEST_CASE("guarded: with the recommended ACL no command is refused") {
    guarded_site site;
    site.allow(with(minimal, comfort));
    site.forget_refusals();
    CHECK(site.works());
    site.let_health_checks_pass();
    CHECK(site.nothing_was_refused());
}

TEST_CASE("where scripts are forbidden, no master votes, and health says what to do") {
    for (const protocol how : {protocol::guarded, protocol::plain}) {
        restricted_site site(how);
        site.allow(without(with(minimal, comfort), "+eval"));
        const health now = site.me->health();
        INFO(to_string(now));
        CHECK(now.admitted == 0);
        CHECK_FALSE(now.ready);
        for (const master_health& one : now.masters) {
            CHECK(one.state == master_state::ineligible);
            CHECK(contains(one.text, "NOPERM"));
            CHECK(contains(one.text, "redlock needs EVAL and EVALSHA: the ACL must allow them"));
        }
        const acquisition_ptr refused = site.me->acquire("r");
        CHECK(*refused == errc::no_quorum);
        CHECK(contains(to_string(refused->why), "needs EVAL"));
        for (master_process& master : site.masters) {
            master.command({"ACL", "SETUSER", "locker", "+eval"});
        }
        run_until(site.io, [&] { return site.me->health().admitted == 3; });
        CHECK(!site.me->acquire("r")->error);
    }
}

TEST_CASE("guarded: a master whose ACL does not allow the prefix does not vote") {
    guarded_site site;
    site.allow(with(minimal, comfort), "~elsewhere:*");
    CHECK(site.me->health().admitted == 0);
    INFO(to_string(site.me->health()));
    CHECK(contains(to_string(site.me->health()), "NOPERM"));
}

TEST_CASE("guarded: several resources, slots and elections need no more than a lock") {
    guarded_site site;
    site.allow(minimal);
    for (const std::string kind : {"resources", "slot", "slots", "leader"}) {
        INFO(kind);
        CHECK(site.succeeds([&](blocking::manager& manager) {
            manager.ready(10s);
            std::shared_ptr<lock> held = take_member(manager, kind, once());
            const error_code error =
                blocking_use::error_of([&] { take_member(manager, kind, once()); });
            held.reset();
            return error == errc::contended && take_member(manager, kind, waiting(20s)) != nullptr;
        }));
    }
}

TEST_CASE("guarded: the status of a pool needs MGET") {
    guarded_site site;
    const auto told = [](blocking::manager& manager) {
        manager.ready(10s);
        return manager
                   .call([&](auto token) {
                       return manager.async().async_query(redlock::slots("p", 4), std::move(token));
                   })
                   .count(lock_state::free)
               == 4;
    };
    site.allow(minimal);
    CHECK_FALSE(site.succeeds(told));
    site.allow(with(minimal, {"+mget"}));
    CHECK(site.succeeds(told));
}

TEST_CASE("guarded: readers and writers need each documented command of sorted sets") {
    guarded_site site;
    site.allow(with(minimal, sharing));
    CHECK(site.shares());
    for (const std::string& one : sharing) {
        INFO("without " << one);
        site.allow(with(minimal, without(sharing, one)));
        CHECK_FALSE(site.shares());
    }
}

} // namespace guarded_acl_test
