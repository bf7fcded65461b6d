// A SET that was executed and whose answer was lost: it may have granted, so it is undone.
#include "quorum_fixture.hpp"
#include "support/fake_master.hpp"

namespace redlock::test { namespace {

// Real masters and fake ones that execute the next SET and lose its answer.
struct half_real_site {
    half_real_site(std::size_t n_real, std::size_t n_fake) : real(n_real), fakes(n_fake) {
        std::vector<std::string> urls = real.urls();
        for (fake_master& fake : fakes) {
            urls.push_back(fake.url());
        }
        config settings = config_for(urls);
        settings.release_notifications = false; // the fake ones publish nothing
        me.emplace(io, settings);
        me->until_admitted(n_real + n_fake);
    }

    void lose_next_set(fake_action how = fake_action::execute_then_close()) {
        for (fake_master& fake : fakes) {
            fake.when("SET", how, 1);
        }
    }

    std::size_t keys() {
        std::size_t sum = real.total_keys();
        for (fake_master& fake : fakes) {
            sum += fake.keys().size();
        }
        return sum;
    }

    void check_nothing_left() {
        run_until(io, [this] {
            const metrics now = me->count();
            return now.waiting == 0 && now.held == 0 && now.pending_removals == 0 && keys() == 0;
        });
        for (fake_master& fake : fakes) {
            CHECK(fake.protocol_errors().empty());
        }
    }

    asio::io_context io;
    quorum_of_masters real;
    std::vector<fake_master> fakes;
    std::optional<client> me;
};

TEST_CASE("a lost answer that was not needed: the lock is held, and released everywhere") {
    half_real_site site(2, 1);
    site.lose_next_set();
    lock mine = site.me->take("r");
    site.fakes[0].wait_for_command("SET");
    site.me->until_admitted(3);
    CHECK(mine.held());
    CHECK(site.fakes[0].keys().size() == 1);
    CHECK(site.me->release(mine) == release_result::released);
    site.check_nothing_left();
}

TEST_CASE("lost answers on a majority: no quorum, and what was granted is undone") {
    half_real_site site(2, 3);
    site.lose_next_set();
    const acquisition_ptr got = site.me->acquire("r", once(30s));
    CHECK(*got == errc::no_quorum);
    CHECK(count_votes(got->why, vote::unreachable) == 3);
    site.check_nothing_left();
    run_until(site.io, [&] { return site.me->count().removals_repeated == 3; });
    CHECK(!site.me->acquire("r")->error); // the lease of 30 s is not in the way
}

TEST_CASE("a lost answer and a key of somebody else: contended, and ours is undone") {
    half_real_site site(2, 1);
    site.real[0].command({"SET", "redlock:{r}", "somebody else", "PX", "60000"});
    site.lose_next_set();
    const acquisition_ptr got = site.me->acquire("r", once(30s));
    CHECK(*got == errc::contended);
    run_until(site.io, [&] { return site.keys() == 1 && site.me->count().pending_removals == 0; });
    CHECK(site.real[0].command({"GET", "redlock:{r}"}) == "somebody else");
}

TEST_CASE("an acquire that waits overcomes lost answers by itself") {
    half_real_site site(1, 2);
    site.lose_next_set();
    const acquisition_ptr got = site.me->acquire("r", waiting(25s, 30s));
    REQUIRE(*got);
    CHECK(got->why.attempts >= 2);
    CHECK(site.me->release(got->lock) == release_result::released);
    site.check_nothing_left();
}

TEST_CASE("an answer that comes half, and one that never comes, are lost alike") {
    half_real_site site(1, 2);
    SECTION("half") {
        site.lose_next_set(fake_action::close_mid_reply(2));
        CHECK(site.me->acquire("r", once(30s))->error == errc::no_quorum);
    }
    SECTION("never") {
        site.lose_next_set(fake_action::execute_then_hang());
        const acquisition_ptr got = site.me->acquire("r", once(30s));
        CHECK(got->error == errc::no_quorum);
        CHECK(count_votes(got->why, vote::timed_out) == 2);
        for (fake_master& fake : site.fakes) {
            fake.drop_connections();
        }
    }
    site.check_nothing_left();
}

TEST_CASE("a release whose answer is lost is repeated until it is known") {
    half_real_site site(2, 1);
    lock mine = site.me->take("r", once(30s));
    site.fakes[0].wait_for_command("SET");
    const auto removal = [](const received_command& one) { return one.name().starts_with("EVAL"); };
    site.fakes[0].when(removal, fake_action::close_before_reply(), 1);
    CHECK(site.me->release(mine) == release_result::released);
    site.check_nothing_left();
    run_until(site.io, [&] { return site.me->count().removals_repeated == 1; });
}

}} // namespace redlock::test
