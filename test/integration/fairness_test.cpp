// The order of arrival between processes, with real masters. Each client here is a manager of its
// own, which is what a process is to the masters.
#include "guarded_quorum.hpp"

namespace redlock::test { namespace {

const milliseconds endless_wait = 24h;

acquire_options in_order(milliseconds ttl = 10s) {
    acquire_options options = waiting(endless_wait, ttl);
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

void each_protocol(const std::function<void(const std::function<void(config&)>&)>& body) {
    body(ordered);
    body([](config& settings) {
        guarded(settings);
        ordered(settings);
    });
}

TEST_CASE("in a fair queue processes own the lock in the order of their arrival") {
    each_protocol([](const auto& change) {
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

TEST_CASE("a key of another type in place of the fair queue is left unchanged") {
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
