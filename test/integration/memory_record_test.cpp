// A master's own record of when its memory began: a master that may have lost leases is excluded
// until all of them have expired, for every client, whichever of them noticed the loss.
#include "guarded_quorum.hpp"
#include "relay.hpp"

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

    config settings() {
        config result = quarantining(masters, max_ttl);
        result.health_check_interval = 200ms;
        for (std::size_t i = 0; i < result.masters.size(); ++i) {
            result.masters[i].name = "m" + std::to_string(i);
        }
        return result;
    }

    // Whether a new client is refused by the masters that forgot, because they forgot.
    void refuses_a_newcomer(std::size_t forgetful, steady_clock::time_point forgot) {
        client newcomer(io, settings());
        newcomer.until_each(has_judged);
        refused(newcomer, forgetful, forgot, true);
    }

    // `judged`: it has asked each master for its record since.
    void refused(
        client& whom, std::size_t forgetful, steady_clock::time_point forgot, bool judged = false) {
        const acquisition_ptr got = whom.acquire("r", once_unrenewed(max_ttl));
        INFO(got->explained());
        // On a machine so slow that the quarantine is over, it may have the lock.
        const bool over = steady_clock::now() - forgot >= max_ttl;
        if (!over) {
            CHECK(got->error);
            CHECK(count_votes(got->why, vote::quarantined) == forgetful);
            for (const master_vote& one : got->why.votes) {
                if (one.vote == vote::quarantined) {
                    CHECK((one.time_left || !judged));
                    CHECK(one.time_left.value_or(1ms) > 0ms);
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
        REQUIRE(*got);
        CHECK(steady_clock::now() - forgot >= max_ttl);
        CHECK(whom.release(got->lock) == release_result::released);
    }

    asio::io_context io;
    quorum_of_masters masters;
    milliseconds max_ttl;
    std::optional<client> me;
};

// The words of a record.
struct record_of {
    explicit record_of(const master_process& master) {
        std::istringstream words(master.command({"GET", record_key}));
        words >> format >> run >> promoted_from >> born >> quarantine;
    }
    std::string format;
    std::string run;
    std::string promoted_from;
    long long born = 0;
    long long quarantine = 0;
};

TEST_CASE("after FLUSHALL on a majority no acquire succeeds before the lease has ended") {
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

TEST_CASE("after an eviction on a majority no acquire succeeds before the lease has ended") {
    quarantining_site site(2s);
    client old(site.io, site.settings()); // connected before
    old.until_admitted(3);
    const auto configure = [&](const std::string& memory, const std::string& policy) {
        for (const std::size_t i : {0U, 1U}) {
            site.masters[i].command({"CONFIG", "SET", "maxmemory-policy", policy});
            site.masters[i].command({"CONFIG", "SET", "maxmemory", memory});
        }
    };
    configure("64mb", "volatile-lru");
    for (const client* const each : {&*site.me, &old}) {
        run_until(site.io, [&] {
            return each->health().masters[0].state == master_state::ineligible
                   && each->health().masters[1].state == master_state::ineligible;
        });
    }
    CHECK(site.me->acquire("r", once_unrenewed(site.max_ttl))->error == errc::no_quorum);
    configure("64mb", "noeviction");
    old.until_admitted(3);
    site.me->until_admitted(3);
    // Keys go, and nobody has looked in between: the record tells newcomers.
    lock mine = site.me->take("r", once_unrenewed(site.max_ttl));
    configure("1", "volatile-lru");
    configure("64mb", "noeviction");
    const auto forgot = steady_clock::now();
    CHECK(site.masters[0].command({"EXISTS", lock_key("r")}) == "0");
    site.refuses_a_newcomer(2, forgot);
    site.opens_in_time(old, forgot);
}

TEST_CASE("a majority restarted empty during a lease is quarantined, for clients old and new") {
    quarantining_site site(2s);
    client old(site.io, site.settings(), 3);
    lock mine = site.me->take("r", with_token(once_unrenewed(site.max_ttl)));
    const auto forgot = steady_clock::now();
    site.masters[0].restart_empty();
    site.masters[1].restart_empty();
    site.refuses_a_newcomer(2, forgot);
    site.opens_in_time(old, forgot);
    CHECK_FALSE(mine.held());
}

TEST_CASE("a master restarted empty while no client was connected is quarantined") {
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

TEST_CASE("restarted with its data, a master is quarantined, whatever it fsyncs") {
    quarantining_site site(3s, fsyncing_always(), 1);
    const record_of before(site.masters[0]);
    CHECK(before.format == "4");
    site.me->take("r", once_unrenewed(1s)).abandon();
    const auto forgot = steady_clock::now();
    site.masters[0].restart();
    site.refuses_a_newcomer(1, forgot);
    const record_of after(site.masters[0]);
    CHECK(after.run != before.run);
    CHECK(after.born > before.born);
    CHECK(contains(site.masters[0].command({"INFO", "server"}), after.run));
    client newcomer(site.io, site.settings());
    site.opens_in_time(newcomer, forgot);
}

// A holds the lock on the first master and the third. Then the first dies, and another server
// answers under its address: B must not have the lock on that one and the second.
void hands_over_no_lock_with_the_address(quarantining_site& site, master_process& taker) {
    relay first(site.io, site.masters[0].port());
    relay second(site.io, site.masters[1].port());
    second.hold(); // A never reaches it
    config settings = site.settings();
    settings.masters[0] = endpoint(first.url() + "?name=m0");
    client b(site.io, settings, 3);
    settings.masters[1] = endpoint(second.url() + "?name=m1");
    client a(site.io, settings, 2);
    lock mine = a.take("r", once_unrenewed(site.max_ttl));
    const auto taken = steady_clock::now();
    taker.command({"REPLICAOF", "NO", "ONE"});
    first.turn_to(taker.port());
    site.masters[0].kill();
    run_until(site.io, [&] {
        const master_state now = b.health().masters[0].state;
        return b.count().masters[0].connects == 2
               && (now == master_state::admitted || now == master_state::quarantined);
    });
    const acquisition_ptr got = b.acquire("r", once_unrenewed(site.max_ttl));
    INFO(got->explained());
    CHECK(!(mine.held() && got->lock.held()));
    if (steady_clock::now() - taken < site.max_ttl) {
        CHECK(got->error);
        CHECK(got->why.votes[0].vote == vote::quarantined);
        CHECK(got->why.votes[1].vote == vote::granted);
        CHECK(got->why.votes[2].vote == vote::held);
    }
}

long uptime_of(const master_process& one) {
    const std::string info = one.command({"INFO", "server"});
    const std::string field = "uptime_in_seconds:";
    return std::stol(info.substr(info.find(field) + field.size()));
}

// The record comes with the replica, and says that every write is on disk.
TEST_CASE("a promoted replica that fsyncs every write grants nothing that its master had granted") {
    quarantining_site site(4s, fsyncing_always());
    master_process replica(fsyncing_always());
    replica.command({"REPLICAOF", "127.0.0.1", std::to_string(site.masters[0].port())});
    run_until(site.io, [&] { return exists(replica, record_key); });
    replica.command({"REPLICAOF", "127.0.0.1", "1"}); // the link is cut
    hands_over_no_lock_with_the_address(site, replica);
}

TEST_CASE("a server that was already up grants nothing that was granted under its address") {
    quarantining_site site(4s);
    master_process stranger;
    run_until(site.io, [&] { return uptime_of(stranger) > 6; });
    hands_over_no_lock_with_the_address(site, stranger);
}

// Its record is that of this very run: only what INFO says of replication tells.
TEST_CASE("a master that was the replica of a stale copy of itself is quarantined") {
    master_options options;
    options.extra = {"--repl-diskless-sync-delay", "0"};
    quarantining_site site(20s, options, 1);
    master_process& master = site.masters[0];
    master_process copy(options);
    copy.command({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
    run_until(site.io, [&] { return exists(copy, record_key); });
    copy.command({"REPLICAOF", "NO", "ONE"});
    lock mine = site.me->take("r", once_unrenewed(site.max_ttl));
    const auto forgot = steady_clock::now();
    const std::string run = record_of(master).run;
    master.command({"REPLICAOF", "127.0.0.1", std::to_string(copy.port())});
    run_until(site.io, [&] { return !exists(master, lock_key("r")); });
    master.command({"REPLICAOF", "NO", "ONE"});
    CHECK(record_of(master).run == run); // its own, as the copy had it
    site.refuses_a_newcomer(1, forgot);
    CHECK(record_of(master).promoted_from.size() == 40);
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
