// Readers and writers in threads: the standard guards, what is shared, and what is lost together.
#include "blocking_site.hpp"
#include "guarded_quorum.hpp"

#include <redlock/blocking_shared.hpp>

#include <boost/asio/post.hpp>

#include <atomic>
#include <concepts>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <stop_token>

namespace redlock::test::blocking_use {

namespace {

using blocking::shared_mutex;

template <typename T>
concept shared_timed_lockable =
    requires(T it, std::chrono::nanoseconds span, std::chrono::system_clock::time_point end) {
    it.lock();
    it.lock_shared();
    { it.unlock() }
    noexcept;
    { it.unlock_shared() }
    noexcept;
    { it.try_lock() } -> std::same_as<bool>;
    { it.try_lock_for(span) } -> std::same_as<bool>;
    { it.try_lock_until(end) } -> std::same_as<bool>;
    { it.try_lock_shared() } -> std::same_as<bool>;
    { it.try_lock_shared_for(span) } -> std::same_as<bool>;
    { it.try_lock_shared_until(end) } -> std::same_as<bool>;
};
static_assert(shared_timed_lockable<shared_mutex>);
static_assert(!std::is_move_constructible_v<shared_mutex>);

struct readers_and_writers : site {
    explicit readers_and_writers(acquire_options options = patient())
        : site(3, guarded_and_brisk),
          one(client()),
          two(client()),
          mine(*one, "r", options),
          theirs(*two, "r", options) {}

    // An unlock does not wait for the slowest master.
    bool clean() {
        return soon([this] {
            return masters.total_keys(lock_key("r"))
                       + masters.total_keys(lock_key("r") + ":readers")
                   == 0;
        });
    }

    std::unique_ptr<blocking::manager> one;
    std::unique_ptr<blocking::manager> two;
    shared_mutex mine;
    shared_mutex theirs;
};

} // namespace

TEST_CASE("blocking shared mutex: the standard guards read together and write alone") {
    readers_and_writers here;
    {
        std::shared_lock first(here.mine);
        std::shared_lock second(here.mine, std::defer_lock);
        CHECK(second.try_lock_for(1s));
        const std::shared_lock third(here.theirs);
        CHECK(here.mine.held());
        CHECK(here.mine.remaining() > 1s);
        CHECK(here.mine.deadline() > clock::now());
        CHECK_THROWS_AS(here.mine.fencing_token(), std::logic_error);
        CHECK(!here.mine.try_lock());
        CHECK(contains(here.mine.last_attempt().message, "this thread"));
        CHECK(!here.theirs.try_lock_for(10ms));
        first.unlock();
        CHECK(here.mine.held());
        CHECK(here.mine.last_release() == release_result::released);
    }
    CHECK(!here.mine.held());
    CHECK(here.mine.deadline() == time_point::min());
    {
        std::unique_lock writer(here.mine, std::defer_lock);
        REQUIRE(writer.try_lock_until(std::chrono::system_clock::now() + 20s));
        CHECK(here.mine.held());
        CHECK(!here.mine.try_lock_shared());
        CHECK(!here.theirs.try_lock_shared_for(10ms));
        CHECK(!here.theirs.try_lock_shared()); // decided by votes, not by the end of a wait
        CHECK(count_votes(here.theirs.last_attempt(), vote::held) >= 2);
        here.mine.unlock_shared(); // nobody reads
        CHECK(here.mine.held());
    }
    here.mine.unlock();
    here.mine.unlock_shared();
    const std::scoped_lock again(here.theirs);
    CHECK(!here.mine.try_lock());
}

TEST_CASE("blocking shared mutex: a thread that would wait for itself gets an error at once") {
    readers_and_writers here;
    const auto deadlocks = [&](auto f) {
        const auto begun = std::chrono::steady_clock::now();
        CHECK(error_of(f) == std::errc::resource_deadlock_would_occur);
        CHECK(std::chrono::steady_clock::now() - begun < 30s);
    };
    here.mine.lock();
    deadlocks([&] { here.mine.lock(); });
    deadlocks([&] { here.mine.lock_shared(); });
    CHECK(!here.mine.try_lock_shared_for(60s));
    here.mine.unlock();
    here.mine.lock_shared();
    deadlocks([&] { here.mine.lock(); });
    CHECK(!here.mine.try_lock_for(60s));
    here.mine.lock_shared(); // no writer waits
    here.mine.unlock_shared();
    error_code ended = errc::closed;
    std::jthread writer([&] {
        ended = error_of([&] { here.mine.lock(); });
        here.mine.unlock();
    });
    bool waits = false;
    std::jthread([&] {
        waits = soon([&] {
            const std::shared_lock reader(here.mine, std::try_to_lock);
            return !reader.owns_lock();
        });
    }).join();
    CHECK(waits);
    deadlocks([&] { here.mine.lock_shared(); });
    CHECK(!here.mine.try_lock_shared_for(60s));
    here.mine.unlock_shared();
    writer.join();
    CHECK(!ended);
    CHECK(here.clean());
}

TEST_CASE("blocking shared mutex: readers and writers of many threads are never in together") {
    readers_and_writers here;
    std::atomic<int> reading = 0;
    std::atomic<int> writing = 0;
    std::atomic<int> together = 0;
    std::atomic<int> failures = 0;
    const auto work = [&](shared_mutex& mutex, bool writes) {
        for (int round = 0; round < 10; ++round) {
            try {
                if (writes) {
                    const std::unique_lock guard(mutex);
                    together += writing++ + reading;
                    std::this_thread::yield();
                    together += reading;
                    --writing;
                } else {
                    const std::shared_lock guard(mutex);
                    ++reading;
                    together += writing;
                    std::this_thread::yield();
                    together += writing;
                    --reading;
                }
            } catch (const std::exception&) {
                ++failures;
            }
        }
    };
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) {
        threads.emplace_back([&, i] { work(i % 2 == 0 ? here.mine : here.theirs, i % 3 == 0); });
    }
    threads.clear();
    CHECK(failures == 0);
    CHECK(together == 0);
    CHECK(here.clean());
}

TEST_CASE("blocking shared mutex: readers that always overlap do not starve a writer") {
    readers_and_writers here;
    std::atomic<bool> over = false;
    std::atomic<int> failures = 0;
    std::promise<void> both_read;
    std::atomic<int> reads = 0;
    const auto read = [&] {
        while (!over) {
            try {
                const std::shared_lock guard(here.mine);
                const int mine = ++reads;
                if (mine == 2) {
                    both_read.set_value();
                }
                // Until another has come in, or is kept out: there is always somebody in.
                const auto end = std::chrono::steady_clock::now() + 300ms;
                while (!over && reads == mine && std::chrono::steady_clock::now() < end) {
                    std::this_thread::sleep_for(1ms);
                }
            } catch (const std::exception&) {
                ++failures;
            }
        }
    };
    std::jthread first(read);
    std::jthread second(read);
    both_read.get_future().get();
    const bool got = here.theirs.try_lock_for(60s); // elsewhere
    here.theirs.unlock();
    const bool here_too = here.mine.try_lock_for(60s); // and in the same object
    over = true;
    here.mine.unlock();
    first.join();
    second.join();
    CHECK(got);
    CHECK(here_too);
    CHECK(failures == 0);
}

TEST_CASE("blocking shared mutex: readers rely on the lease that lasts longest") {
    acquire_options options = patient();
    options.ttl = 1s;
    options.renew = renewal::off;
    readers_and_writers here(options);
    here.mine.lock_shared();
    const std::stop_token lost = here.mine.lost();
    const time_point first = here.mine.deadline();
    while (clock::now() < first - 500ms) {
        std::this_thread::sleep_for(1ms);
    }
    here.mine.lock_shared();
    const time_point second = here.mine.deadline();
    CHECK(second > first);
    CHECK(here.mine.lost() == lost);
    here.mine.unlock_shared(); // gives the lease back that would end first
    CHECK(here.mine.deadline() == second);
    CHECK(here.theirs.try_lock_for(20s)); // waits for its end
    CHECK(clock::now() >= second);
    CHECK(lost.stop_requested());
    CHECK(!here.mine.held());
    // A reader that has lost the lock does not share the object with others before it has unlocked.
    CHECK(!here.mine.try_lock_shared());
    here.theirs.unlock();
    CHECK(!here.mine.try_lock_shared());
    CHECK(!here.mine.try_lock());
    here.mine.unlock_shared();
    CHECK(here.mine.last_release().has_value());
    CHECK(here.mine.try_lock_shared());
    CHECK(!here.mine.lost().stop_requested());
    here.mine.unlock_shared();
    CHECK(!here.mine.lost().stop_requested()); // it was released
}

TEST_CASE("blocking shared mutex: a loss is signalled while the lease lasts, also to writers") {
    acquire_options options = with_token(patient());
    options.ttl = 2s;
    options.renew = renewal::off;
    options.stop_margin = 1500ms;
    readers_and_writers here(options);
    here.mine.lock();
    CHECK(here.mine.fencing_token() > 0);
    const time_point deadline = here.mine.deadline();
    std::promise<time_point> when;
    const std::stop_callback told(here.mine.lost(), [&] { when.set_value(clock::now()); });
    CHECK(when.get_future().get() < deadline);
    CHECK(!here.mine.held());
    CHECK(here.mine.remaining() == 0ns);
    here.mine.unlock();
    CHECK_THROWS_AS(here.mine.fencing_token(), std::logic_error);
    here.mine.lock_shared();
    std::promise<void> again;
    const std::stop_callback heard(here.mine.lost(), [&] { again.set_value(); });
    again.get_future().get();
    here.mine.unlock_shared();
}

TEST_CASE("blocking shared mutex: a wait that is stopped leaves no keys") {
    readers_and_writers here;
    const auto stopped = [&](auto&& wait) {
        std::stop_source stop;
        std::promise<error_code> ended;
        const std::uint64_t before = here.two->async().get_metrics().attempts;
        std::jthread waiter(
            [&] { ended.set_value(error_of([&] { wait(here.theirs, stop.get_token()); })); });
        while (here.two->async().get_metrics().attempts == before) {
            std::this_thread::yield();
        }
        stop.request_stop();
        return ended.get_future().get();
    };
    here.mine.lock();
    CHECK(
        stopped([](shared_mutex& m, std::stop_token stop) { m.lock_shared(stop); })
        == asio::error::operation_aborted);
    here.mine.unlock();
    here.mine.lock_shared();
    CHECK(
        stopped([](shared_mutex& m, std::stop_token stop) { m.lock(stop); })
        == asio::error::operation_aborted);
    // A writer of the same object waits for its readers, and keeps new ones out, while it waits.
    std::stop_source stop;
    std::promise<error_code> ended;
    std::jthread writer(
        [&] { ended.set_value(error_of([&] { here.mine.lock(stop.get_token()); })); });
    stop.request_stop();
    CHECK(ended.get_future().get() == asio::error::operation_aborted);
    CHECK(here.mine.try_lock_shared_for(20s)); // the word that the other writer left ends
    here.mine.unlock_shared();
    here.mine.unlock_shared();
    CHECK(here.clean());
}

TEST_CASE("blocking shared mutex: not on the manager's own thread, and not in the plain protocol") {
    readers_and_writers here;
    std::promise<std::pair<error_code, error_code>> seen;
    here.mine.lock_shared();
    asio::post(here.one->async().get_executor(), [&] {
        here.mine.unlock_shared(); // does not wait, and does not fail
        const error_code reading = error_of([&] { here.mine.lock_shared(); });
        seen.set_value({reading, error_of([&] { static_cast<void>(here.mine.try_lock()); })});
    });
    const auto [reading, writing] = seen.get_future().get();
    CHECK(reading == errc::would_deadlock);
    CHECK(writing == errc::would_deadlock);
    CHECK(!here.mine.last_release());

    config settings = here.settings;
    settings.protocol = protocol::plain;
    blocking::manager plain(settings);
    CHECK_THROWS_AS(shared_mutex(plain, "r", once()), std::invalid_argument);
}

TEST_CASE("blocking shared mutex: what is locked when the object goes is released") {
    readers_and_writers here;
    {
        shared_mutex gone(*here.one, "r", patient());
        gone.lock_shared();
        gone.lock_shared();
    }
    CHECK(here.theirs.try_lock_for(20s));
    here.theirs.unlock();
    CHECK(here.clean());
}

TEST_CASE("a stop token that was requested before makes readers and writers send nothing") {
    readers_and_writers it;
    std::stop_source stopped;
    stopped.request_stop();
    const auto scripts = [&] {
        std::uint64_t sum = 0;
        for (const master_process& master : it.masters) {
            sum += calls_of(master, "eval") + calls_of(master, "evalsha") + calls_of(master, "set");
        }
        return sum;
    };
    const std::uint64_t before = scripts();
    for (int i = 0; i < 3; ++i) {
        CHECK(
            error_of([&] { it.mine.lock(stopped.get_token()); }) == asio::error::operation_aborted);
        CHECK(
            error_of([&] { it.mine.lock_shared(stopped.get_token()); })
            == asio::error::operation_aborted);
    }
    CHECK(scripts() == before);
    CHECK(it.clean());
}

} // namespace redlock::test::blocking_use
