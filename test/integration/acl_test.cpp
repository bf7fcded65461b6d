// What an ACL must allow. The lines here are those that the documentation quotes.
#include "blocking_site.hpp"
#include "family_member.hpp"
#include "guarded_quorum.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace redlock::test::acl { namespace {

using rules = std::vector<std::string>;

rules without(rules all, const std::string& one) {
    std::erase(all, one);
    return all;
}

rules with(rules all, const rules& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

// The least: scripts are sent in full, and must be allowed to do what they do.
rules minimal(protocol speaks) {
    const rules both = {"+info", "+set", "+eval", "+get", "+del", "+pttl", "+pexpire"};
    return speaks == protocol::plain ? both : with(both, {"+time"});
}

// What a deployment should allow in addition: scripts by their digest, health checks, a name, and
// release notifications.
const rules comfort = {
    "+evalsha",
    "+incr",
    "+ping",
    "+client|setname",
    "+publish",
    "+subscribe",
    "+unsubscribe",
    "&redlock:*"};

// What the fair queue needs besides.
const rules queue = {"+time", "+zadd", "+zscore", "+zrange", "+zrank", "+zrem"};

// What readers and writers need besides.
const rules sharing = {"+zadd", "+zscore", "+zrange", "+zrem", "+zremrangebyscore"};

// Masters with a user that an ACL restricts, and a client of that user.
struct restricted_site {
    explicit restricted_site(protocol how) : speaks(how), masters(3) {}

    // Connects anew with these rules and nothing else, to masters without keys.
    void allow(const rules& allowed, const std::string& keys = "~redlock:*") {
        me.reset();
        for (master_process& master : masters) {
            const auto line =
                with({"ACL", "SETUSER", "locker", "reset", "on", ">pw", keys}, allowed);
            REQUIRE(master.command(line) == "OK");
            master.command({"FLUSHALL"});
        }
        me.emplace(io, settings());
        me->until_each([](const auto& one) { return is_down(one) || has_judged(one); });
    }

    // Whether a lock can be taken, extended and released: with a token if the protocol has any.
    bool works() {
        if (me->health().admitted < 3) {
            return false;
        }
        acquire_options options = once_unrenewed(5s);
        options.fencing = speaks == protocol::guarded;
        const acquisition_ptr got = me->acquire("r", options);
        if (got->error) {
            return false;
        }
        const bool extended = !me->extend(got->lock, 10s);
        return me->release(got->lock) == release_result::released && extended;
    }

    // Whether a manager of this user can do that, in calls that block.
    template <typename What>
    bool succeeds(What what) {
        blocking::manager manager(settings());
        bool result = false;
        const error_code error = error_of([&] {
            manager.ready(10s);
            result = what(manager);
        });
        return !error && result;
    }

    // As `works`, of readers and writers that meet.
    bool shares() {
        return succeeds([](blocking::manager& manager) {
            const auto extended_and_released = [&](const std::shared_ptr<lock>& one) {
                manager.call([&](auto token) { return one->async_extend(20s, std::move(token)); });
                return release(manager, *one) == release_result::released;
            };
            const auto one = take_member(manager, "reader", once());
            const auto two = take_member(manager, "reader", once());
            const bool refused =
                error_of([&] { take_member(manager, "writer", once()); }) == errc::contended;
            const bool read = extended_and_released(one) && extended_and_released(two);
            const auto writer = take_member(manager, "writer", waiting(3s));
            manager.call([&](auto token) { return writer->async_downgrade(std::move(token)); });
            return refused && read && extended_and_released(writer);
        });
    }

    config settings() const {
        config result = config_for(masters.urls());
        result.protocol = speaks;
        result.username = "locker";
        result.password = "pw";
        result.health_check_interval = 200ms;
        return result;
    }

    protocol speaks;
    asio::io_context io;
    quorum_of_masters masters;
    std::optional<client> me;
};

TEST_CASE("the minimal ACL is enough to acquire, extend and release, and all of it is needed") {
    restricted_site site(GENERATE(protocol::plain, protocol::guarded));
    const rules least = minimal(site.speaks);
    site.allow(least);
    INFO(to_string(site.me->health()));
    CHECK(site.works());
    CHECK(site.works()); // also after the steps down to what is allowed
    for (const std::string& one : least) {
        INFO("without " << one);
        site.allow(without(least, one));
        CHECK_FALSE(site.works());
    }
}

TEST_CASE("with the recommended ACL no command is refused, in a fair queue either") {
    restricted_site site(GENERATE(protocol::plain, protocol::guarded));
    const bool fair = GENERATE(false, true);
    const rules recommended = with(minimal(site.speaks), comfort);
    site.allow(fair ? with(recommended, queue) : recommended);
    CHECK(site.works());
    acquire_options options = waiting(1h);
    options.fifo = fair;
    lock mine = site.me->take("r", options);
    const acquisition_ptr next = site.me->begin("r", options);
    const acquisition_ptr last = site.me->begin("r", options);
    run_until(site.io, [&] {
        return site.me->count().notification_connections == 3
               && site.masters.total_keys("redlock:{r}:queue*") == (fair ? 2U : 0U);
    });
    site.me->cancel(last);
    CHECK(site.me->release(mine) == release_result::released);
    CHECK(!site.me->finish(next)->error);
    CHECK(site.me->release(next->lock) == release_result::released);
    CHECK(site.me->query("r").state == lock_state::free);
    const auto checks = site.me->count().masters[0].commands + 2; // of its health
    run_until(site.io, [&] {
        return site.masters.total_keys("redlock:{r}:queue*") == 0
               && site.me->count().masters[0].commands >= checks;
    });
    for (const master_process& master : site.masters) {
        CHECK(master.command({"ACL", "LOG"}) == "(empty array)");
    }
}

TEST_CASE("a key outside of the allowed prefix is a vote with the server's error") {
    restricted_site site(GENERATE(protocol::plain, protocol::guarded));
    site.allow(with(minimal(site.speaks), comfort), "~elsewhere:*");
    CHECK(site.me->health().admitted == (site.speaks == protocol::plain ? 3 : 0));
    const acquisition_ptr got = site.me->acquire("r");
    INFO(got->explained());
    CHECK(*got == errc::no_quorum);
    CHECK(count_votes(got->why, vote::error) >= 2);
    CHECK(contains(to_string(got->why), "NOPERM"));
}

TEST_CASE("several resources, slots and elections need no more than a lock, but for MGET") {
    restricted_site site(protocol::guarded);
    const rules least = minimal(site.speaks);
    site.allow(least);
    for (const std::string kind : {"resources", "slot", "slots", "leader"}) {
        INFO(kind);
        CHECK(site.succeeds([&](blocking::manager& manager) {
            std::shared_ptr<lock> held = take_member(manager, kind, once());
            const error_code error = error_of([&] { take_member(manager, kind, once()); });
            held.reset();
            return error == errc::contended && take_member(manager, kind, waiting(20s)) != nullptr;
        }));
    }
    const auto shows_a_pool = [](blocking::manager& manager) {
        return query(manager, redlock::slots("other", 4)).count(lock_state::free) == 4;
    };
    CHECK_FALSE(site.succeeds(shows_a_pool));
    site.allow(with(least, {"+mget"}));
    CHECK(site.succeeds(shows_a_pool));
}

TEST_CASE("readers and writers need each documented command of sorted sets") {
    restricted_site site(protocol::guarded);
    const rules least = minimal(site.speaks);
    site.allow(with(least, sharing));
    CHECK(site.shares());
    for (const std::string& one : sharing) {
        INFO("without " << one);
        site.allow(with(least, without(sharing, one)));
        CHECK_FALSE(site.shares());
    }
}

}} // namespace redlock::test::acl
