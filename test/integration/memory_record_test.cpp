// A master's own record of when its memory began: a master that may have lost leases is excluded
// until all of them have expired, for every client, whichever of them noticed the loss.
#include "guarded_quorum.hpp"

#include <sstream>

namespace redlock::test { namespace {

using std::chrono::steady_clock;

struct quarantining_site {
    explicit quarantining_site(milliseconds longest, master_options options = {}, std::size_t n = 3)
        : masters(n, std::move(options)),
          max_ttl(longest) {
        for (const master_process& master : masters) {
            master.declare_new();
        }
        me.emplace(io, settings(), masters.size());
    }

    // On one machine, so with one clock.
    config settings() {
        config result = config_for(masters.urls());
        guarded(result);
        result.quarantine = true;
        result.max_ttl = max_ttl;
        result.clock_offset_bound = 0ms;
        result.health_check_interval = 200ms;
        for (std::size_t i = 0; i < result.masters.size(); ++i) {
            result.masters[i].name = "m" + std::to_string(i);
        }
        return result;
    }

    // Whether a new client is refused by the masters that forgot, because they forgot.
    void refuses_a_newcomer(
        std::size_t forgetful,
        steady_clock::time_point forgot,
        const std::optional<config>& how = std::nullopt) {
        client newcomer(io, how.value_or(settings()));
        newcomer.until_each(has_judged);
        const acquisition_ptr got = newcomer.acquire("r", once_unrenewed(max_ttl));
        INFO(got->explained());
        // On a machine so slow that the quarantine is over, it may have the lock.
        const bool over = steady_clock::now() - forgot >= max_ttl;
        if (!over) {
            CHECK(got->error);
            CHECK(count_votes(got->why, vote::quarantined) == forgetful);
            for (const master_vote& one : got->why.votes) {
                if (one.vote == vote::quarantined) {
                    CHECK(one.time_left.value_or(0ms) > 0ms);
                }
            }
        }
        if (!got->error) {
            newcomer.release(got->lock);
        }
    }

    asio::io_context io;
    quorum_of_masters masters;
    milliseconds max_ttl;
    std::optional<client> me;
};

TEST_CASE("a majority that may have lost a lease grants nothing before that has ended") {
    struct loss_of_data {
        const char* how;
        std::function<void(master_process&)> happens;
        master_options options = {};
    };
    const loss_of_data losses[] = {
        {"emptied", [](master_process& one) { one.command({"FLUSHALL"}); }},
        {"restarted empty", [](master_process& one) { one.restart_empty(); }},
        {"restarted with what it had",
         [](master_process& one) { one.restart(); },
         fsyncing_always()},
        {"evicted, and nobody looked in between",
         [](master_process& one) {
             one.command({"CONFIG", "SET", "maxmemory-policy", "volatile-lru"});
             one.command({"CONFIG", "SET", "maxmemory", "1"});
             one.command({"CONFIG", "SET", "maxmemory", "64mb"});
             one.command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
             CHECK_FALSE(exists(one, lock_key("r")));
         }},
    };
    for (const loss_of_data& loss : losses) {
        INFO(loss.how);
        quarantining_site site(2s, loss.options);
        client old(site.io, site.settings(), 3); // connected before
        lock mine = site.me->take("r", with_token(once_unrenewed(site.max_ttl)));
        run_until(site.io, [&] { return site.masters.total_keys(lock_key("r")) == 3; });
        const auto forgot = steady_clock::now();
        loss.happens(site.masters[0]);
        loss.happens(site.masters[1]);
        site.refuses_a_newcomer(2, forgot);
        // The next owner comes no sooner than no forgotten lease can be left, and does come.
        const acquisition_ptr next = old.acquire("r", waiting(25s, site.max_ttl));
        REQUIRE(*next);
        CHECK(steady_clock::now() - forgot >= site.max_ttl);
        CHECK_FALSE(mine.held());
    }
}

// The record comes with the replica, and says that every write is on disk.
TEST_CASE("a promoted replica in the place of its master is quarantined, even if it fsyncs") {
    quarantining_site site(20s, fsyncing_always(), 1);
    master_process replica(fsyncing_always());
    replica.command({"REPLICAOF", "127.0.0.1", std::to_string(site.masters[0].port())});
    run_until(site.io, [&] { return exists(replica, record_key); });
    replica.command({"REPLICAOF", "127.0.0.1", "1"}); // the link is cut
    lock mine = site.me->take("r", once_unrenewed(site.max_ttl));
    const auto forgot = steady_clock::now();
    replica.command({"REPLICAOF", "NO", "ONE"});
    CHECK_FALSE(exists(replica, lock_key("r")));
    config settings = site.settings();
    settings.masters[0] = endpoint(replica.url() + "?name=m0");
    site.refuses_a_newcomer(1, forgot, settings);
}

// Its record is that of this very run: only what INFO says of replication tells.
TEST_CASE("a master that was the replica of a stale copy of itself is quarantined") {
    master_options options;
    options.extra = {"--repl-diskless-sync-delay", "0"};
    quarantining_site site(20s, options, 1);
    master_process& master = site.masters[0];
    const auto word_of_record = [&](std::size_t number) {
        std::istringstream words(master.command({"GET", record_key}));
        std::string word;
        while (words >> word && number-- > 0) {
        }
        return word;
    };
    master_process copy(options);
    copy.command({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
    run_until(site.io, [&] { return exists(copy, record_key); });
    copy.command({"REPLICAOF", "NO", "ONE"});
    lock mine = site.me->take("r", once_unrenewed(site.max_ttl));
    const auto forgot = steady_clock::now();
    const std::string run = word_of_record(1);
    master.command({"REPLICAOF", "127.0.0.1", std::to_string(copy.port())});
    run_until(site.io, [&] { return !exists(master, lock_key("r")); });
    master.command({"REPLICAOF", "NO", "ONE"});
    CHECK(word_of_record(1) == run); // its own, as the copy had it
    site.refuses_a_newcomer(1, forgot);
    CHECK(word_of_record(2).size() == 40); // what it was promoted from
}

TEST_CASE("with every write on disk a holder keeps its lock over the restart of a majority") {
    quarantining_site site(20s, fsyncing_always());
    lock mine = site.me->take("r", once(10s));
    run_until(site.io, [&] { return site.masters.total_keys(lock_key("r")) == 3; });
    for (std::size_t i = 0; i < 2; ++i) {
        site.masters[i].restart();
        until_state(site.io, *site.me, i, master_state::quarantined);
    }
    CHECK(site.me->extend(mine, 10s) == error_code());
    CHECK(mine.held());
    CHECK(site.me->acquire("s", once(10s))->error == errc::no_quorum); // new ones wait
    CHECK(site.me->release(mine) == release_result::released);
}

}} // namespace redlock::test
