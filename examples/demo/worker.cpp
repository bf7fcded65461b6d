#include "worker.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <exception>

namespace demo {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio::experimental::awaitable_operators::operator||;

constexpr auto stop_poll = 20ms;

} // namespace

std::string counter_name(std::size_t index) {
    return fmt::format("counter-{}", index + 1);
}

worker::worker(
    board& shared, std::size_t index, const settings& chosen, const std::vector<std::string>& urls)
    : board_(shared),
      slot_(shared.workers.at(index)),
      index_(index),
      unlocked_(chosen.unlocked),
      manager_(io_.get_executor(), quorum_config(urls, fmt::format("demo-worker-{}", index + 1))),
      random_(chosen.seed + index) {
    options_.ttl = ttl;
    options_.wait = wait_limit;
    options_.stop_margin = stop_margin;
}

int worker::run() {
    int status = 0;
    manager_.async_run(asio::detached);
    asio::co_spawn(io_, work(), [this, &status](const std::exception_ptr& error) {
        try {
            if (error) {
                std::rethrow_exception(error);
            }
        } catch (const std::exception& failure) {
            fmt::format_to_n(slot_.failure.data(), slot_.failure.size() - 1, "{}", failure.what());
            status = 1;
            io_.stop();
        }
    });
    io_.run();
    slot_.begin(activity::ended);
    return status;
}

asio::awaitable<void> worker::work() {
    slot_.begin(activity::starting);
    co_await (manager_.async_ready(asio::use_awaitable) || stop_requested());
    while (!board_.stop) {
        co_await turn();
        slot_.begin(activity::resting);
        co_await sleep(between(0us, 5ms));
    }
    co_await manager_.async_close(asio::use_awaitable);
}

asio::awaitable<void> worker::turn() {
    const auto which = static_cast<std::size_t>(random_() % counters_max);
    slot_.counter = which;
    slot_.begin(activity::waiting);
    if (unlocked_) {
        redlock::lock none;
        co_await increment(none, board_.counters[which]);
        co_return;
    }

    redlock::diagnostics diagnostics;
    const auto begin = redlock::clock::now();
    // Bound to a name first: g++ 15 leaks structured bindings that are made of co_await directly.
    auto outcome = co_await manager_.async_acquire(
        counter_name(which),
        options_,
        redlock::with_diagnostics(diagnostics, asio::as_tuple(asio::use_awaitable)));
    auto& [error, lock] = outcome;
    publish(error, diagnostics);
    if (error) {
        co_return;
    }
    slot_.add_sample(redlock::clock::now() - begin);
    co_await increment(lock, board_.counters[which]);
    // Its result is data, not an error: for example "expired" after this process was stopped.
    co_await lock.async_release(asio::as_tuple(asio::use_awaitable));
}

asio::awaitable<void> worker::increment(redlock::lock& lock, guarded_counter& counter) {
    counter.enter(index_, unlocked_ ? redlock::clock::now() + ttl : lock.deadline());
    const auto value = counter.read();
    slot_.begin(activity::working);
    co_await sleep(work_time());

    slot_.begin(activity::writing);
    // The last moment to ask. Whether the lock is lost is known without asking anybody: the
    // deadline has passed on a clock that also counts while this process does not run.
    if (unlocked_ || lock.held()) {
        counter.write(value + 1);
        ++slot_.written;
    } else {
        ++slot_.lost;
    }
    counter.leave(index_, [&] { return unlocked_ || lock.held(); });
}

asio::awaitable<void> worker::sleep(std::chrono::microseconds duration) {
    asio::steady_timer timer(io_, duration);
    co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> worker::stop_requested() {
    while (!board_.stop) {
        co_await sleep(stop_poll);
    }
}

void worker::publish(const redlock::error_code& error, const redlock::diagnostics& diagnostics) {
    auto last = result::granted;
    if (!error) {
        ++slot_.acquired;
    } else if (error == redlock::errc::no_quorum) {
        ++slot_.no_quorum;
        last = result::no_quorum;
    } else if (error == redlock::condition::not_acquired) {
        ++slot_.contended;
        last = result::contended;
    } else {
        ++slot_.other_failures;
        last = result::other;
    }
    slot_.last_result = last;
    slot_.last_attempts = diagnostics.attempts;
    for (std::size_t i = 0; i < std::min(diagnostics.votes.size(), masters_max); ++i) {
        slot_.last_votes[i] = diagnostics.votes[i].vote;
    }

    const auto counters = manager_.get_metrics();
    slot_.attempts = counters.attempts;
    slot_.renewed = counters.renewed;
    for (std::size_t i = 0; i < std::min(counters.masters.size(), masters_max); ++i) {
        slot_.votes[i].granted = counters.masters[i].granted;
        slot_.votes[i].held = counters.masters[i].held;
        slot_.votes[i].failed = counters.masters[i].failed;
    }
}

std::chrono::microseconds
worker::between(std::chrono::microseconds low, std::chrono::microseconds high) {
    std::uniform_int_distribution<std::int64_t> range(low.count(), high.count());
    return std::chrono::microseconds(range(random_));
}

// Mostly short, for many changes of the holder; now and then long enough for a renewal.
std::chrono::microseconds worker::work_time() {
    return random_() % 10 == 0 ? between(100ms, 450ms) : between(2ms, 12ms);
}

} // namespace demo
