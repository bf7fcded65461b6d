#include "worker.hpp"

#include "ledger.hpp"
#include "store.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <random>
#include <stdexcept>
#include <thread>

namespace redlock::soak {
namespace {

using namespace std::chrono_literals;

constexpr auto tick = 3ms;
constexpr int longest_work = 40; // ms
constexpr auto as_result = boost::asio::as_tuple(boost::asio::use_awaitable);

class worker {
public:
    explicit worker(const worker_settings& settings)
        : mine_(settings),
          times_(pace_of(settings.slow)),
          random_(settings.seed),
          ledger_(settings.ledger),
          store_(settings.store),
          timer_(io_),
          manager_(io_.get_executor(), quorum_config(settings.masters, times_)) {}

    [[noreturn]] void run() {
        manager_.async_run([](error_code) {});
        boost::asio::co_spawn(io_, take_turns(), [](const std::exception_ptr& error) {
            std::rethrow_exception(error);
        });
        io_.run();
        throw std::logic_error("the worker has run out of work");
    }

private:
    boost::asio::awaitable<void> take_turns() {
        acquire_options options;
        options.ttl = times_.ttl;
        options.wait = times_.wait;
        options.fencing = true;
        for (;;) {
            ledger_.note(entry::asked, 0, now());
            if (mine_.how != unsafe::no_lock) {
                auto [error, got] = co_await manager_.async_acquire(resource, options, as_result);
                if (error) { // no quorum, or others had the lock for the whole wait
                    ledger_.note(entry::failed, 0, now());
                    co_await pause(tick);
                    continue;
                }
                held_ = std::move(got);
            }
            token_ = token_now();
            if (note_belief(entry::acquired)) {
                co_await work();
            }
            note_belief(entry::believed);
            if (held_.valid()) {
                co_await held_.async_release(as_result);
                held_ = lock();
            }
            ledger_.note(entry::left, token_, now());
            co_await pause(at_most(5) * 1ms);
        }
    }

    std::uint64_t token_now() const {
        switch (mine_.how) {
        case unsafe::no_lock:
            return static_cast<std::uint64_t>(
                std::chrono::duration_cast<std::chrono::microseconds>(now()).count());
        case unsafe::one_token:
            return 1;
        default:
            return held_.fencing_token();
        }
    }

    bool believes() const { return mine_.how == unsafe::no_lock || held_.held(); }

    // The clock is read before `held()` is asked: see ledger.hpp.
    bool note_belief(entry what) {
        const moment at = now();
        if (!believes()) {
            return false;
        }
        ledger_.note(what, token_, at);
        return true;
    }

    boost::asio::awaitable<void> work() {
        if (held_.valid()) {
            held_.async_wait_lost([this, token = token_](error_code error, loss_reason) {
                if (!error) {
                    ledger_.note(entry::lost, token, now());
                }
            });
        }
        const auto number = store_.open(token_);
        if (!number) {
            refused();
            co_return;
        }
        const auto until = std::chrono::steady_clock::now() + at_most(longest_work) * 1ms;
        bool mine = note_belief(entry::believed);
        do {
            co_await pause(tick);
            mine = note_belief(entry::believed);
        } while (mine && std::chrono::steady_clock::now() < until);
        // What a garbage collector or a swapping machine does to a process: nothing in it goes on,
        // the renewal of its lease no more than its work.
        if (mine_.dawdles && at_most(14) == 0) {
            std::this_thread::sleep_for(times_.ttl * 3 / 2);
        }
        // Between the question and the write anything may happen.
        if (mine || mine_.dawdles || mine_.slow) {
            if (store_.write(token_, *number + 1)) {
                ledger_.note(entry::written, token_, now());
            } else {
                refused();
            }
        }
    }

    // By the store's account there is a later owner. If we still have the lock after that, there
    // are two.
    void refused() {
        const bool wrongly = note_belief(entry::believed);
        ledger_.note(wrongly ? entry::wronged : entry::stale, token_, now());
    }

    int at_most(int highest) { return std::uniform_int_distribution(0, highest)(random_); }

    boost::asio::awaitable<void> pause(std::chrono::milliseconds time) {
        timer_.expires_after(time);
        co_await timer_.async_wait(boost::asio::use_awaitable);
    }

    worker_settings mine_;
    pace times_;
    std::mt19937_64 random_;
    ledger ledger_;
    store store_;
    boost::asio::io_context io_{1};
    boost::asio::steady_timer timer_;
    lock_manager manager_;
    lock held_;
    std::uint64_t token_ = 0;
};

} // namespace

config quorum_config(const std::vector<std::string>& masters, const pace& times) {
    config result;
    result.masters.assign(masters.begin(), masters.end());
    result.max_ttl = times.max_ttl;
    result.clock_offset_bound = 0ms; // one machine, one clock
    result.master_timeout = 100ms;
    result.connect_timeout = 500ms;
    result.health_check_interval = 200ms;
    result.reconnect_delay_max = 200ms;
    result.retry_delay_max = 50ms;
    return result;
}

void work(const worker_settings& settings) {
    worker(settings).run();
}

std::vector<std::string> command_line(const worker_settings& mine) {
    std::vector<std::string> words = {
        "worker",
        mine.store,
        mine.ledger,
        std::to_string(mine.seed),
        std::to_string(mine.slow),
        std::to_string(mine.dawdles),
        std::to_string(static_cast<int>(mine.how)),
    };
    words.insert(words.end(), mine.masters.begin(), mine.masters.end());
    return words;
}

} // namespace redlock::soak
