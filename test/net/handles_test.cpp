// What every handle promises, whatever it holds and however it is taken: handle x promise. Masters
// in memory, and virtual time.
#include "two_processes.hpp"

#include <redlock/blocking_shared.hpp>
#include <redlock/election.hpp>

namespace redlock::test::in_memory { namespace {

struct handle {
    handle() = default;
    handle(const handle&) = delete;
    handle& operator=(const handle&) = delete;
    virtual ~handle() = default; // releases it
    virtual bool held() const = 0;
    virtual std::uint64_t fencing_token() const = 0;
    virtual std::stop_token lost() const = 0;
    virtual std::optional<release_result> release() = 0;
};
using handle_ptr = std::unique_ptr<handle>;

class async_handle final : public handle {
public:
    async_handle(blocking::manager& by, lock got) : by_(by), held_(std::move(got)) {
        held_.async_wait_lost([signal = lost_](error_code error, loss_reason) mutable {
            error ? false : signal.request_stop();
        });
    }
    bool held() const override { return held_.held(); }
    std::uint64_t fencing_token() const override { return held_.fencing_token(); }
    std::stop_token lost() const override { return lost_.get_token(); }
    std::optional<release_result> release() override {
        return by_.call([&](auto token) { return held_.async_release(std::move(token)); });
    }

private:
    blocking::manager& by_;
    std::stop_source lost_;
    lock held_;
};

class blocking_handle final : public handle {
public:
    explicit blocking_handle(blocking::lock got) : held_(std::move(got)) {}
    bool held() const override { return held_.held(); }
    std::uint64_t fencing_token() const override { return held_.fencing_token(); }
    std::stop_token lost() const override { return held_.lost(); }
    std::optional<release_result> release() override { return held_.release(); }

private:
    blocking::lock held_;
};

// A shared mutex as its readers lock it.
struct reader_side : blocking::shared_mutex {
    using blocking::shared_mutex::shared_mutex;
    void lock(std::stop_token stop) { lock_shared(std::move(stop)); }
    bool try_lock() { return try_lock_shared(); }
    void unlock() noexcept { unlock_shared(); }
};

template <typename Mutex>
class mutex_handle final : public handle {
public:
    mutex_handle(blocking::manager& by, const acquire_options& options, std::stop_token stop)
        : mutex_(by, "r", options) {
        if (options.wait != wait_for::none()) {
            mutex_.lock(std::move(stop));
        } else if (!mutex_.try_lock()) {
            throw boost::system::system_error(errc::contended);
        }
    }
    bool held() const override { return mutex_.held(); }
    std::uint64_t fencing_token() const override { return mutex_.fencing_token(); }
    std::stop_token lost() const override { return mutex_.lost(); }
    std::optional<release_result> release() override {
        mutex_.unlock();
        return mutex_.last_release();
    }

private:
    Mutex mutex_;
};

using taker = std::function<handle_ptr(blocking::manager&, acquire_options, std::stop_token)>;

taker lock_of(const target& what, lock_mode mode = lock_mode::exclusive) {
    return [=](blocking::manager& by, acquire_options options, std::stop_token stop) {
        options.mode = mode;
        return std::make_unique<async_handle>(
            by,
            by.call(
                [&](auto token) {
                    return by.async().async_acquire(what, options, std::move(token));
                },
                std::move(stop)));
    };
}

handle_ptr lead(blocking::manager& by, const acquire_options& options, std::stop_token stop) {
    election_options term;
    term.ttl = options.ttl;
    term.wait = options.wait;
    term.max_hold = options.max_hold;
    election candidate(by.async(), "r", term);
    return std::make_unique<async_handle>(
        by,
        by.call(
            [&](auto token) { return candidate.async_campaign(std::move(token)); },
            std::move(stop)));
}

handle_ptr
acquire_blocking(blocking::manager& by, const acquire_options& options, std::stop_token stop) {
    return std::make_unique<blocking_handle>(by.acquire("r", options, std::move(stop)));
}

template <typename Mutex>
handle_ptr locked(blocking::manager& by, const acquire_options& options, std::stop_token stop) {
    return std::make_unique<mutex_handle<Mutex>>(by, options, std::move(stop));
}

struct kind {
    const char* name;
    taker take;
    taker rival; // what excludes it
    bool fenced = true;
};

std::vector<kind> kinds() {
    const taker single = lock_of("r");
    const taker reader = lock_of("r", lock_mode::shared);
    return {
        {"lock", single, single},
        {"several resources", lock_of({"s", "r"}), lock_of("s")},
        {"reader", reader, single, false},
        {"writer", single, reader},
        {"slot", lock_of(slots("r", 1)), lock_of(slots("r", 1))},
        {"several slots", lock_of(slots("r", 2, 2)), lock_of(slots("r", 2))},
        {"term of a leader", lead, lead},
        {"blocking lock", acquire_blocking, single},
        {"blocking mutex", locked<blocking::mutex>, locked<blocking::mutex>},
        {"blocking shared mutex, writer", locked<blocking::shared_mutex>, locked<reader_side>},
        {"blocking shared mutex, reader",
         locked<reader_side>,
         locked<blocking::shared_mutex>,
         false},
    };
}

void for_each_kind(const std::function<void(const kind&, two_processes&)>& check) {
    for (const kind& one : kinds()) {
        INFO(one.name);
        two_processes site;
        check(one, site);
    }
}

TEST_CASE("handles: a wait that is stopped leaves no key, and the holder its lock") {
    for_each_kind([](const kind& one, two_processes& site) {
        handle_ptr rival = one.rival(site.theirs, once(), {});
        std::stop_source stop;
        std::size_t subscribed = 0;
        site.after(5s, [&] {
            subscribed = site.mine.async().get_metrics().subscriptions;
            stop.request_stop();
        });
        CHECK(
            error_of([&] { one.take(site.mine, waiting(), stop.get_token()); })
            == operation_aborted);
        CHECK(subscribed > 0);
        CHECK(site.mine.async().get_metrics().waiting == 0);
        CHECK(site.mine.async().get_metrics().subscriptions == 0);
        CHECK(rival->held());
        CHECK(rival->release() == release_result::released);
        CHECK(site.no_key_left());
        CHECK(one.take(site.mine, once(), {})->held());
    });
}

TEST_CASE(
    "handles: a stop at any moment gives the handle or nothing, and one before sends nothing") {
    for_each_kind([](const kind& one, two_processes& site) {
        std::stop_source before;
        before.request_stop();
        CHECK(
            error_of([&] { one.take(site.mine, waiting(), before.get_token()); })
            == operation_aborted);
        CHECK(site.mine.async().get_metrics().attempts == 0);
        std::size_t stopped = 0;
        std::size_t taken = 0;
        for (auto span = 0us; span < 5ms; span += 100us) {
            std::stop_source stop;
            site.after(span, [stop]() mutable { stop.request_stop(); });
            const error_code error = error_of([&] {
                const handle_ptr held = one.take(site.mine, waiting(), stop.get_token());
                CHECK(held->held());
                ++taken;
            });
            if (error) {
                CHECK(error == operation_aborted);
                ++stopped;
            }
            CHECK(site.no_key_left());
        }
        CHECK(stopped > 0);
        CHECK(taken > 0);
    });
}

TEST_CASE("handles: a waiter is notified of the release, and has it at once") {
    for_each_kind([](const kind& one, two_processes& site) {
        handle_ptr rival = one.rival(site.theirs, once(), {});
        const time_point before = site.quorum.now();
        site.after(5s, [&] { rival.reset(); });
        CHECK(one.take(site.mine, waiting(), {})->held());
        CHECK(site.quorum.now() - before < 5s + 100ms);
    });
}

TEST_CASE("handles: it is held for as long as it is renewed, and one attempt next to it fails") {
    for_each_kind([](const kind& one, two_processes& site) {
        const auto check = [&](const taker& take, const taker& other) {
            const handle_ptr held = take(site.mine, once(), {});
            site.quorum.advance(1min);
            CHECK(error_of([&] { other(site.theirs, once(), {}); }) == errc::contended);
            site.quorum.advance(30s);
            CHECK(held->held());
            const std::stop_token lost = held->lost();
            CHECK(held->release() == release_result::released);
            CHECK(!lost.stop_requested());
            CHECK(site.no_key_left());
        };
        check(one.take, one.rival);
        check(one.rival, one.take);
    });
}

TEST_CASE("handles: the loss is signalled before the lease ends") {
    for_each_kind([](const kind& one, two_processes& site) {
        const time_point begun = site.quorum.now(); // of a lease of 10 s
        const handle_ptr held = one.take(site.mine, once(), {});
        const std::stop_token lost = held->lost();
        site.quorum.master(0).kill();
        site.quorum.master(1).hang();
        REQUIRE(site.quorum.advance_until([&] { return lost.stop_requested(); }));
        CHECK(site.quorum.now() - begun < 9s + 100ms);
        CHECK(!held->held());
        site.quorum.master(1).resume();
        CHECK(held->release() != release_result::released);
    });
}

TEST_CASE("handles: what is lost keeps others out until its holder lets go, and was not released") {
    for (const bool drops : {false, true}) {
        for_each_kind([drops](const kind& one, two_processes& site) {
            acquire_options options = once();
            options.max_hold = 5s;
            handle_ptr held = one.take(site.mine, options, {});
            REQUIRE(site.quorum.advance_until([&] { return !held->held(); }));
            CHECK(error_of([&] { one.rival(site.theirs, once(), {}); }) == errc::contended);
            CHECK((drops || held->release() == release_result::expired));
            CHECK(held->lost().stop_requested()); // asked for the first time
            held.reset();
            CHECK(site.no_key_left());
            CHECK(site.mine.async().get_metrics().released[release_result::released] == 0);
        });
    }
}

TEST_CASE("handles: a late release, and one again, leaves the lock to the next owner") {
    for_each_kind([](const kind& one, two_processes& site) {
        handle_ptr held = one.take(site.mine, once(), {});
        site.remove_keys(); // as if it had expired in a pause
        const handle_ptr rival = one.rival(site.theirs, once(), {});
        const std::size_t keys = site.count_keys();
        CHECK(held->release() != release_result::released);
        held.reset();
        site.quorum.advance(30s);
        CHECK(rival->held());
        CHECK(site.count_keys() >= keys);
        CHECK(rival->release() == release_result::released);
    });
}

TEST_CASE("handles: what a manager had when it closed is lost, and released by its holder") {
    for_each_kind([](const kind& one, two_processes& site) {
        const handle_ptr held = one.take(site.mine, once(), {});
        const std::stop_token lost = held->lost();
        site.mine.async().async_close([](error_code) {});
        site.quorum.advance(0s);
        CHECK(!held->held());
        CHECK(lost.stop_requested());
        CHECK(site.count_keys() > 0);
        CHECK(error_of([&] { one.rival(site.theirs, once(), {}); }) == errc::contended);
        CHECK(held->release() != release_result::released);
        CHECK(site.no_key_left());
    });
}

TEST_CASE("handles: fencing tokens increase from owner to owner, and readers have none") {
    for_each_kind([](const kind& one, two_processes& site) {
        std::uint64_t last = 0;
        for (int i = 0; i < 4; ++i) {
            acquire_options options = once();
            options.fencing = one.fenced;
            const handle_ptr held = one.take(i % 2 == 0 ? site.mine : site.theirs, options, {});
            if (one.fenced) {
                CHECK(held->fencing_token() > last);
                last = held->fencing_token();
            } else {
                CHECK_THROWS_AS(held->fencing_token(), std::logic_error);
            }
        }
    });
}

TEST_CASE("an observer of an election that is not notified polls, and ends with its manager") {
    config settings;
    settings.release_notifications = false;
    two_processes site(settings);
    election_options options;
    options.poll = 20ms;
    election observed(site.theirs.async(), "r", options);
    std::vector<lock_status> seen;
    error_code last;
    const auto watch = [&] {
        observed.async_wait_change("", [&](error_code error, const lock_status& status) {
            seen.push_back(status);
            last = error;
        });
    };
    watch();
    site.quorum.advance(1s);
    CHECK(seen.empty());
    const blocking::lock term = site.mine.acquire("r", once()); // nothing is published of it
    REQUIRE(site.quorum.advance_until([&] { return seen.size() == 1; }, 100ms));
    CHECK(seen[0].owner_digest == term.async().owner_digest());
    site.remove_keys();
    watch();
    site.theirs.async().async_close([](error_code) {});
    REQUIRE(site.quorum.advance_until([&] { return seen.size() == 2; }));
    CHECK(last == errc::closed);
}

}} // namespace redlock::test::in_memory
