// What an ACL must allow. The lines here are those that the documentation quotes.
#include "restricted_site.hpp"

namespace redlock::test { namespace {

// The least that works on every server: scripts are sent in full, and must be allowed to do what
// they do. SET takes, the others extend and release; INFO is the introduction.
const acl_rules minimal = {"+info", "+set", "+eval", "+get", "+del", "+pttl", "+pexpire"};

// What a deployment should allow: scripts by their digest, health checks, a name, and release
// notifications.
const acl_rules recommended = {
    "+info",
    "+set",
    "+eval",
    "+evalsha",
    "+get",
    "+del",
    "+pttl",
    "+pexpire",
    "+ping",
    "+client|setname",
    "+publish",
    "+subscribe",
    "+unsubscribe",
    "&redlock:*"};

struct plain_site : restricted_site {
    plain_site() : restricted_site(protocol::plain) {}
};

TEST_CASE("a user with the minimal ACL can acquire, extend and release") {
    plain_site site;
    site.allow(minimal);
    CHECK(site.works());
    CHECK(site.works()); // also after the steps down to what is allowed
}

TEST_CASE("each command of the minimal ACL is needed") {
    plain_site site;
    for (const std::string& one : minimal) {
        INFO("without " << one);
        site.allow(without(minimal, one));
        CHECK_FALSE(site.works());
    }
}

TEST_CASE("with the recommended ACL no command is refused") {
    plain_site site;
    site.allow(recommended);
    CHECK(site.works());
    lock mine = site.me->take("r"); // somebody has to wait
    const acquisition_ptr waiter = site.me->begin("r", waiting(1h));
    run_until(site.io, [&] { return site.me->count().notification_connections == 3; });
    CHECK(site.me->release(mine) == release_result::released);
    CHECK(!site.me->finish(waiter)->error);
    CHECK(site.me->release(waiter->lock) == release_result::released);
    const lock_status status = site.me->query("r");
    CHECK(status.state == lock_state::free);
    site.let_health_checks_pass();
    CHECK(site.nothing_was_refused());
}

TEST_CASE("with the commands of the fair queue in addition no command is refused") {
    plain_site site;
    site.allow(with(recommended, {"+time", "+zadd", "+zscore", "+zrange", "+zrank", "+zrem"}));
    acquire_options in_order = waiting(1h);
    in_order.order = fairness::fifo;
    lock mine = site.me->take("r", in_order);
    site.forget_refusals();
    const acquisition_ptr waiter = site.me->begin("r", in_order);
    const acquisition_ptr another = site.me->begin("r", in_order);
    run_until(site.io, [&] { return site.masters.total_keys("redlock:{r}:queue*") == 2; });
    another->cancel.emit(asio::cancellation_type::terminal);
    waiter->cancel.emit(asio::cancellation_type::terminal);
    run_until(site.io, [&] { return site.masters.total_keys("redlock:{r}:queue*") == 0; });
    CHECK(site.nothing_was_refused());
}

TEST_CASE("a key outside the allowed prefix is a vote with the server's error") {
    plain_site site;
    site.allow(recommended);
    config settings = site.settings(protocol::plain);
    settings.key_prefix = "elsewhere:";
    client other(site.io, settings, 3);
    const acquisition_ptr got = other.acquire("r");
    CHECK(*got == errc::no_quorum);
    CHECK(count_votes(got->why, vote::error) >= 2);
    CHECK(contains(to_string(got->why), "NOPERM"));
    CHECK(other.count().waiting == 0);
}

}} // namespace redlock::test
