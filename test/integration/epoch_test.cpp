// A master's own record of when its memory began: one that may have forgotten a lock is kept out
// for every client, whoever noticed it, until no forgotten lease can be left.
#include "guarded_quorum.hpp"

#include <algorithm>

using namespace redlock;
using namespace redlock::test;

namespace {

using std::chrono::steady_clock;

struct quarantining_site {
    explicit quarantining_site(milliseconds longest, master_options options = {}, std::size_t n = 3)
        : masters(n, std::move(options)),
          max_ttl(longest) {
        me.emplace(io, settings());
        me->until_admitted(masters.size());
    }

    config settings() {
        config result = config_for(masters.urls());
        guarded(result);
        result.quarantine = quarantine::on;
        result.max_ttl = max_ttl;
        result.clock_offset_bound = 0ms; // one machine, one clock
        result.health_check_interval = 200ms;
        return result;
    }

    // Whether a new client is refused by the masters that forgot, because they forgot.
    void refuses_a_newcomer(std::size_t forgetful, steady_clock::time_point forgot) {
        client newcomer(io, settings());
        run_until(io, [&] {
            const health now = newcomer.health();
            return std::none_of(now.masters.begin(), now.masters.end(), [](const auto& one) {
                return one.state == master_state::connecting || one.state == master_state::down;
            });
        });
        refused(newcomer, forgetful, forgot);
    }

    void refused(client& whom, std::size_t forgetful, steady_clock::time_point forgot) {
        const acquisition_ptr got = whom.acquire("r", once_unrenewed(max_ttl));
        INFO(got->explained());
        // On a machine so slow that the quarantine is over, it may have the lock.
        const bool over = steady_clock::now() - forgot >= max_ttl;
        if (!over) {
            CHECK(got->error);
            CHECK(count_votes(got->why, vote::quarantined) == forgetful);
            for (const master_vote& one : got->why.votes) {
                if (one.vote == vote::quarantined) {
                    REQUIRE(one.time_left);
                    CHECK(*one.time_left > 0ms);
                }
            }
        }
        if (!got->error) {
            whom.release(got->lock);
        }
    }

    // The next owner comes no sooner than no forgotten lease can be left, and does come.
    void opens_in_time(client& whom, steady_clock::time_point forgot) {
        const acquisition_ptr got = whom.acquire("r", waiting(25s, max_ttl));
        INFO(got->explained());
        REQUIRE(!got->error);
        CHECK(steady_clock::now() - forgot >= max_ttl);
        CHECK(whom.release(got->lock) == release_result::released);
    }

    asio::io_context io;
    quorum_of_masters masters;
    milliseconds max_ttl;
    std::optional<client> me;
};

std::string record(const master_process& master, const char* field) {
    return master.command({"HGET", epoch_key, field});
}

master_options appending(const char* fsync) {
    master_options options;
    options.appendonly = true;
    options.appendfsync = fsync;
    return options;
}

} // namespace

TEST_CASE("FLUSHALL on a majority under a holder lets nobody in before the lease is over") {
    quarantining_site site(2s);
    client old(site.io, site.settings()); // connected before
    old.until_admitted(3);
    lock mine = site.me->take("r", with_token(once_unrenewed(site.max_ttl)));
    const auto forgot = steady_clock::now();
    site.masters[0].command({"FLUSHALL"});
    site.masters[1].command({"FLUSHALL"});
    site.refused(old, 2, forgot);
    site.refuses_a_newcomer(2, forgot);
    site.opens_in_time(old, forgot);
    CHECK_FALSE(mine.held());
}

TEST_CASE("a record that is gone is noticed by the next grant, and then known to all") {
    quarantining_site site(2s);
    lock mine = site.me->take("r", once_unrenewed(site.max_ttl));
    mine.abandon();
    const auto forgot = steady_clock::now();
    for (std::size_t i = 0; i < 2; ++i) {
        site.masters[i].command({"DEL", epoch_key, lock_key("r")});
    }
    site.refused(*site.me, 2, forgot);
    site.refuses_a_newcomer(2, forgot);
    site.opens_in_time(*site.me, forgot);
}

TEST_CASE("a majority restarted empty under a holder is kept out, for clients old and new") {
    quarantining_site site(2s);
    client old(site.io, site.settings());
    old.until_admitted(3);
    lock mine = site.me->take("r", with_token(once_unrenewed(site.max_ttl)));
    const auto forgot = steady_clock::now();
    site.masters[0].restart_empty();
    site.masters[1].restart_empty();
    site.refuses_a_newcomer(2, forgot);
    site.opens_in_time(old, forgot);
    CHECK_FALSE(mine.held());
}

TEST_CASE("a master restarted empty keeps a newcomer out also when nobody was connected") {
    quarantining_site site(2s);
    site.me->take("r", once_unrenewed(site.max_ttl)).abandon();
    site.me.reset();
    const auto forgot = steady_clock::now();
    for (master_process& master : site.masters) {
        master.restart_empty();
    }
    site.refuses_a_newcomer(3, forgot);
    client newcomer(site.io, site.settings());
    site.opens_in_time(newcomer, forgot);
}

TEST_CASE("restarted with every write fsynced, a master votes at once and has not forgotten") {
    quarantining_site site(4s, appending("always"), 1);
    const std::string born = record(site.masters[0], "born");
    const std::string run = record(site.masters[0], "run");
    lock mine = site.me->take("r", with_token(once(3s)));
    const std::string token(mine.token());
    site.masters[0].restart();
    run_until(site.io, [&] {
        return site.me->count().masters[0].connects == 2 && site.me->health().admitted == 1;
    });
    CHECK(record(site.masters[0], "born") == born);
    CHECK(record(site.masters[0], "run") != run); // the record was kept, not just not looked at
    CHECK(site.masters[0].command({"GET", lock_key("r")}) == token);
    CHECK(mine.held());
    CHECK(site.me->release(mine) == release_result::released);
    client newcomer(site.io, site.settings());
    newcomer.until_admitted(1);
    CHECK(!newcomer.acquire("r", with_token(once(3s)))->error);
}

TEST_CASE("restarted with writes fsynced every second, a master is quarantined") {
    quarantining_site site(3s, appending("everysec"), 1);
    const std::string born = record(site.masters[0], "born");
    site.me->take("r", once_unrenewed(1s)).abandon();
    const auto forgot = steady_clock::now();
    site.masters[0].restart();
    site.refuses_a_newcomer(1, forgot);
    CHECK(record(site.masters[0], "born") != born);
    client newcomer(site.io, site.settings());
    site.opens_in_time(newcomer, forgot);
}

TEST_CASE("durability claimed on one side of a restart only is not believed") {
    quarantining_site site(3s, appending("everysec"), 1);
    // Set after the client has written down that it was not so: what is lost, is lost.
    site.masters[0].command({"CONFIG", "SET", "appendfsync", "always"});
    const auto forgot = steady_clock::now();
    site.masters[0].restart();
    site.masters[0].command({"CONFIG", "SET", "appendfsync", "always"});
    site.refuses_a_newcomer(1, forgot);
}

TEST_CASE("the longest quarantine that any client asked for is in force for all") {
    quarantining_site site(2s, appending("everysec"), 1);
    config careful = site.settings();
    careful.max_ttl = 1h;
    client other(site.io, careful);
    run_until(site.io, [&] {
        return std::stoll(record(site.masters[0], "q"))
               > std::chrono::microseconds(careful.max_ttl).count();
    });
    other.close();
    site.masters[0].restart();
    client careless(site.io, site.settings());
    until_state(site.io, careless, 0, master_state::quarantined);
    const acquisition_ptr got = careless.acquire("r", once(1s));
    CHECK(got->error == errc::no_quorum);
    REQUIRE(got->why.votes[0].time_left);
    CHECK(*got->why.votes[0].time_left > site.max_ttl);
}

TEST_CASE("a master that is quarantined does not end the lock of who has a majority without it") {
    quarantining_site site(2s);
    lock mine = site.me->take("r", with_token(once(site.max_ttl)));
    site.masters[2].restart_empty();
    const std::uint64_t renewed = site.me->count().renewed;
    run_until(site.io, [&] { return site.me->count().renewed >= renewed + 4; });
    CHECK(mine.held());
    CHECK(site.me->release(mine) == release_result::released);
}
