// A command that was delayed and arrives when its attempt is long over does nothing.
#include "guarded_quorum.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace redlock::test { namespace {

// One master and one client with little patience.
struct slow_site : quorum_fixture {
    slow_site(protocol how, milliseconds patience)
        : quorum_fixture(
            1,
            [&](config& settings) {
                settings.protocol = how;
                settings.master_timeout = patience;
                settings.health_check_interval = 1h; // its connection stays until we end it
            }),
          spoken(how) {}

    master_process& master() { return masters[0]; }

    // More than what the bound leaves to clocks of different speed.
    void pass_the_time() { pass(300ms); }

    // An attempt that the master hears of only when it is over.
    void attempt_in_vain() {
        master().hang();
        const acquisition_ptr got = me.acquire("r", fenced_if_possible());
        CHECK(*got == errc::no_quorum);
        CHECK(count_votes(got->why, vote::timed_out) == 1);
    }

    acquire_options fenced_if_possible() const {
        acquire_options options = once_unrenewed(10s);
        options.fencing = !transferable && spoken == protocol::guarded;
        options.transferable = transferable;
        return options;
    }

    const protocol spoken;
    bool transferable = false;
};

TEST_CASE("an acquire that a hung master executes too late does nothing, and is counted") {
    slow_site site(protocol::guarded, 200ms);
    site.transferable = GENERATE(false, true);
    const std::uint64_t before = calls_of(site.master(), "set"); // of its record
    site.attempt_in_vain();
    site.pass_the_time();
    site.master().resume();
    run_until(site.io, [&] { return site.me.count().masters[0].late == 1; });
    CHECK(calls_of(site.master(), "set") == before); // not even for a moment
    CHECK_FALSE(exists(site.master(), lock_key("r")));
    site.me.until_admitted(1);
    CHECK(!site.me.acquire("r", site.fenced_if_possible())->error);
    CHECK(calls_of(site.master(), "set") > before); // that is how a grant would have looked
}

TEST_CASE(
    "an acquire of a closed connection does nothing when a hung master executes it too late") {
    slow_site site(protocol::guarded, 200ms);
    site.transferable = GENERATE(false, true);
    const std::uint64_t sets = calls_of(site.master(), "set"); // of its record
    const std::uint64_t before = calls_of(site.master(), "eval");
    site.attempt_in_vain();
    site.me.close();
    site.pass_the_time();
    site.master().resume();
    run_until(site.io, [&] { return calls_of(site.master(), "eval") > before; });
    CHECK(calls_of(site.master(), "set") == sets);
    CHECK_FALSE(exists(site.master(), lock_key("r")));
}

TEST_CASE("plain: a SET that a hung master executes too late is rolled back") {
    slow_site site(protocol::plain, 200ms);
    site.attempt_in_vain();
    site.master().resume();
    run_until(site.io, [&] { return calls_of(site.master(), "set") == 1; });
    CHECK(site.me.count().masters[0].late == 0);
    run_until(site.io, [&] { return !exists(site.master(), lock_key("r")); });
}

TEST_CASE("an extension that a hung master executes too late does nothing") {
    slow_site site(protocol::guarded, 200ms);
    lock mine = site.me.take("r", once_unrenewed(1s));
    const std::string token(mine.secret());
    const auto watched = site.me.watch(mine);
    // A key that is older than the lease, as of a master whose clock is slow.
    site.master().command({"PERSIST", lock_key("r")});
    site.master().hang();
    CHECK(site.me.extend(mine, 10s) == errc::no_quorum);
    run_until(site.io, [&] { return watched->done; });
    site.pass_the_time();
    site.master().resume();
    run_until(site.io, [&] { return site.me.count().masters[0].late >= 1; });
    CHECK(calls_of(site.master(), "pexpire") == 0);
}

}} // namespace redlock::test
