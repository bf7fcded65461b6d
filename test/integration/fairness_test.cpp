// The order of arrival between processes, with real masters. Each client here is a manager of its
// own, which is what a process is to the masters.
#include "guarded_quorum.hpp"

namespace redlock::test { namespace {

const milliseconds long_wait = 24h;

acquire_options in_order(milliseconds ttl = 10s) {
    acquire_options options = waiting(long_wait, ttl);
    options.order = fairness::fifo;
    return options;
}

// Waiters are woken, or look again so as to keep their places: they don't happen to ask.
void ordered(config& settings) {
    settings.retry_delay_min = 5ms;
    settings.retry_delay_max = 1h;
    settings.master_timeout = 400ms; // a place is kept for 2 s
}

struct fair_site : quorum_fixture {
    fair_site(
        std::size_t n, std::size_t clients, const std::function<void(config&)>& change = ordered)
        : quorum_fixture(n, change),
          settings(changed(change)) {
        for (std::size_t i = 0; i < clients; ++i) {
            others.push_back(std::make_unique<client>(io, changed(change)));
        }
        for (const auto& one : others) {
            one->until_admitted(n);
        }
    }

    // How many wait on that master, or on all of them.
    static std::size_t queue_on(const master_process& master) {
        return std::stoul(master.command({"ZCARD", lock_key("r") + ":queue"}));
    }
    std::size_t queue() {
        std::size_t all = 0;
        for (const master_process& master : masters) {
            all += queue_on(master);
        }
        return all;
    }
    // The master that keeps the queue while somebody waits.
    std::size_t queue_master() {
        for (std::size_t i = 0; i < masters.size(); ++i) {
            if (queue_on(masters[i]) > 0) {
                return i;
            }
        }
        return masters.size();
    }

    // Takes the lock, and returns when it has left the queue.
    lock hold() {
        lock held = me.take("r", in_order());
        REQUIRE(no_queue_left());
        return held;
    }

    // Begins to wait, and returns when it stands in the queue.
    acquisition_ptr enter(client& one, const acquire_options& options = in_order()) {
        const std::size_t before = queue();
        const acquisition_ptr waiter = one.begin("r", options);
        REQUIRE(eventually([&] { return queue() == before + 1; }));
        return waiter;
    }

    bool no_queue_left() {
        return eventually([this] { return masters.total_keys(lock_key("r") + ":queue*") == 0; });
    }

    config settings;
    std::vector<std::unique_ptr<client>> others;
};

// A process that takes a place and is never heard of again: nothing of it runs any more.
struct dying_client {
    explicit dying_client(fair_site& site) : me(io, site.settings) {
        me.until_admitted(site.masters.size());
        waiter = me.begin("r", in_order());
        run_until(io, [&] { return site.queue() == 1; });
    }

    asio::io_context io;
    client me;
    acquisition_ptr waiter;
};

void both_protocols(const std::function<void(const std::function<void(config&)>&)>& body) {
    body(ordered);
    body([](config& settings) {
        guarded(settings);
        ordered(settings);
    });
}

TEST_CASE("the order of arrival is the order of the owners, round after round") {
    both_protocols([](const auto& change) {
        constexpr std::size_t clients = 4;
        constexpr std::size_t rounds = 3;
        fair_site site(5, clients, change);
        lock held = site.hold();
        std::vector<acquisition_ptr> waiters;
        for (const auto& one : site.others) {
            waiters.push_back(site.enter(*one));
        }
        // After its turn a process joins the end of the queue again.
        for (std::size_t turn = 0; turn < rounds * clients; ++turn) {
            client& before = turn == 0 ? site.me : *site.others[(turn - 1) % clients];
            CHECK(before.release(held) == release_result::released);
            client& next = *site.others[turn % clients];
            const acquisition_ptr mine = waiters[turn % clients];
            next.finish(mine);
            REQUIRE(!mine->error);
            CHECK(
                std::count_if(
                    waiters.begin(),
                    waiters.end(),
                    [](const acquisition_ptr& one) { return one->done; })
                == 1);
            held = std::move(mine->lock);
            REQUIRE(site.eventually([&] { return site.queue() == clients - 1; }));
            waiters[turn % clients] = site.enter(next);
        }
        for (const acquisition_ptr& one : waiters) {
            one->cancel.emit(asio::cancellation_type::terminal);
        }
        CHECK(site.no_queue_left());
    });
}

TEST_CASE("a waiter that dies delays the others by its lease at most") {
    both_protocols([](const auto& change) {
        fair_site site(3, 1, change);
        lock held = site.hold();
        dying_client dead(site);
        CHECK(fair_site::queue_on(site.masters[site.queue_master()]) == 1);
        const acquisition_ptr waiter = site.enter(*site.others[0]);
        CHECK(site.me.release(held) == release_result::released);
        const auto began = std::chrono::steady_clock::now();
        site.others[0]->finish(waiter);
        CHECK(!waiter->error);
        CHECK(std::chrono::steady_clock::now() - began < 10s); // its lease is 2 s
        CHECK(site.others[0]->release(waiter->lock) == release_result::released);
        CHECK(site.no_queue_left());
    });
}

TEST_CASE("the queue's master dies, and all have the lock in the end") {
    both_protocols([](const auto& change) {
        fair_site site(5, 4, change);
        lock held = site.hold();
        std::vector<acquisition_ptr> waiters;
        for (const auto& one : site.others) {
            waiters.push_back(site.enter(*one));
        }
        const std::size_t queue_master = site.queue_master();
        REQUIRE(queue_master < 5);
        site.masters[queue_master].kill();
        CHECK(site.me.release(held) == release_result::released);
        for (std::size_t done = 0; done < waiters.size(); ++done) {
            const auto mine = [&] {
                return std::find_if(waiters.begin(), waiters.end(), [](const auto& one) {
                    return one->done && one->lock.held();
                });
            };
            run_until(site.io, [&] { return mine() != waiters.end(); });
            const auto at = static_cast<std::size_t>(mine() - waiters.begin());
            CHECK(!waiters[at]->error);
            CHECK(site.others[at]->release(waiters[at]->lock) == release_result::released);
        }
    });
}

TEST_CASE("something else where the queue should be is left alone") {
    fair_site site(3, 0);
    for (const std::string key : {":queue", ":queue:until"}) {
        site.everywhere({"SET", lock_key("r") + key, "theirs"});
        lock held = site.me.take("r", in_order());
        CHECK(site.me.release(held) == release_result::released);
        CHECK(site.masters.total_keys(lock_key("r") + ":queue*") == 3);
        site.everywhere({"DEL", lock_key("r") + key});
    }
}

}} // namespace redlock::test
