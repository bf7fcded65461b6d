#include "worker.hpp"

#include "ledger.hpp"
#include "store.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <random>
#include <stdexcept>
#include <thread>

namespace redlock::soak {
namespace {

using namespace std::chrono_literals;

constexpr auto tick = 3ms;
constexpr int longest_work = 40; // ms

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
        next();
        io_.run();
        throw std::logic_error("the worker has run out of work");
    }

private:
    void next() {
        ledger_.note(entry::asked, 0, now());
        if (mine_.how == unsafe::no_lock) {
            enter(lock());
            return;
        }
        acquire_options options;
        options.ttl = times_.ttl;
        options.wait = times_.wait;
        options.fencing = true;
        manager_.async_acquire(resource, options, [this](error_code error, lock got) {
            if (error) {
                ledger_.note(entry::failed, 0, now());
                next(); // an outage that lasted for the whole wait, or others had the lock
            } else {
                enter(std::move(got));
            }
        });
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

    void enter(lock got) {
        held_ = std::move(got);
        token_ = token_now();
        if (!note_belief(entry::acquired)) {
            leave();
            return;
        }
        if (held_.valid()) {
            held_.async_wait_lost([this, token = token_](error_code error, loss_reason) {
                if (!error) {
                    ledger_.note(entry::lost, token, now());
                }
            });
        }
        number_ = store_.open(token_);
        if (!number_) {
            refused();
            leave();
            return;
        }
        note_belief(entry::believed);
        until_ = std::chrono::steady_clock::now()
                 + std::uniform_int_distribution(0, longest_work)(random_) * 1ms;
        wait(tick, [this] { go_on(); });
    }

    void go_on() {
        const bool mine = note_belief(entry::believed);
        if (mine && std::chrono::steady_clock::now() < until_) {
            wait(tick, [this] { go_on(); });
            return;
        }
        if (mine_.dawdles) {
            dawdle();
        }
        if (mine || mine_.careless) { // between the question and the write anything may happen
            write();
        }
        leave();
    }

    // What a garbage collector or a swapping machine does to a process: nothing in it goes on, the
    // renewal of its lease no more than its work.
    void dawdle() {
        if (std::uniform_int_distribution(0, 14)(random_) == 0) {
            std::this_thread::sleep_for(times_.ttl * 3 / 2);
        }
    }

    void write() {
        if (store_.write(token_, *number_ + 1)) {
            ledger_.note(entry::written, token_, now());
        } else {
            refused();
        }
    }

    // By the store's account there is a later owner. If we still have the lock after that, there
    // are two.
    void refused() {
        const bool wrongly = note_belief(entry::believed);
        ledger_.note(wrongly ? entry::wronged : entry::stale, token_, now());
    }

    void leave() {
        note_belief(entry::believed);
        const auto rest = [this] {
            ledger_.note(entry::left, token_, now());
            wait(std::uniform_int_distribution(0, 5)(random_) * 1ms, [this] { next(); });
        };
        if (!held_.valid()) {
            rest();
            return;
        }
        held_.async_release([this, rest](error_code, release_result) {
            held_ = lock();
            rest();
        });
    }

    template <typename Then>
    void wait(std::chrono::milliseconds time, Then then) {
        timer_.expires_after(time);
        timer_.async_wait([then](error_code) { then(); });
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
    std::optional<std::uint64_t> number_;
    std::chrono::steady_clock::time_point until_;
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
    result.reconnect_delay_min = 20ms;
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
        std::to_string(mine.careless),
        std::to_string(mine.dawdles),
        std::to_string(static_cast<int>(mine.how)),
    };
    words.insert(words.end(), mine.masters.begin(), mine.masters.end());
    return words;
}

} // namespace redlock::soak
