// Acquires that begin by the clock, and how busy that keeps everybody.
#include "sizing.hpp"

#include "redlock_client.hpp"
#include "wire.hpp"

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace bench {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

// What is due is begun this often: a load of some thousands a second comes in small groups.
constexpr auto tick = 1ms;
constexpr auto drain_limit = 10s;

struct load_figures {
    // From when the acquire was due, so that one who cannot keep up is seen.
    std::vector<std::uint32_t> acquire_ns;
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    std::uint64_t failed = 0;
    std::string first_failure;
};

// Starts acquires at a rate, holds each lock for a time, and releases it.
class arrivals {
public:
    arrivals(redlock_client& client, const plan& asked, side who, double rate)
        : io_(client.context()),
          manager_(client.manager()),
          hold_(asked.hold),
          rate_(rate),
          ticker_(io_) {
        options_.ttl = asked.ttl;
        options_.wait = redlock::wait_for::none();
        options_.fencing = who == side::fenced;
    }

    load_figures run(std::chrono::milliseconds duration) {
        started_ = clock::now();
        due_max_ =
            static_cast<std::uint64_t>(rate_ * std::chrono::duration<double>(duration).count());
        begin_due();
        io_.restart();
        const auto give_up_at = started_ + duration + hold_ + drain_limit;
        while (found_.begun < due_max_ || found_.ended < found_.begun) {
            io_.run_one_until(give_up_at);
            if (clock::now() >= give_up_at) {
                note_failure(fmt::format("{} never ended", found_.begun - found_.ended));
                break;
            }
        }
        return std::move(found_);
    }

private:
    clock::time_point due_at(std::uint64_t number) const {
        return started_
               + std::chrono::nanoseconds(
                   static_cast<std::int64_t>(static_cast<double>(number) * 1e9 / rate_));
    }

    void begin_due() {
        const auto now = clock::now();
        while (found_.begun < due_max_ && due_at(found_.begun) <= now) {
            begin(found_.begun++);
        }
        if (found_.begun < due_max_) {
            ticker_.expires_at(std::max(due_at(found_.begun), now + tick));
            ticker_.async_wait([this](boost::system::error_code) { begin_due(); });
        }
    }

    void begin(std::uint64_t number) {
        manager_.async_acquire(
            fmt::format("bench-load-{}-{}", ::getpid(), number),
            options_,
            [this, due = due_at(number)](redlock::error_code error, redlock::lock acquired) {
                if (error) {
                    note_failure("acquire: " + error.message());
                    ++found_.ended;
                    return;
                }
                const std::chrono::nanoseconds took = clock::now() - due;
                found_.acquire_ns.push_back(
                    static_cast<std::uint32_t>(std::min<std::int64_t>(took.count(), UINT32_MAX)));
                hold(std::move(acquired));
            });
    }

    void hold(redlock::lock acquired) {
        auto until = std::make_shared<boost::asio::steady_timer>(io_, hold_);
        auto& timer = *until;
        timer.async_wait([this, until = std::move(until), held = std::move(acquired)](
                             boost::system::error_code) mutable { release(std::move(held)); });
    }

    void release(redlock::lock acquired) {
        auto held = std::make_shared<redlock::lock>(std::move(acquired));
        auto& giving = *held;
        giving.async_release([this, held = std::move(held)](
                                 redlock::error_code error, redlock::release_result result) {
            if (error || result != redlock::release_result::released) {
                note_failure(fmt::format(
                    "release: {}",
                    error ? error.message() : std::string(redlock::to_string(result))));
            }
            ++found_.ended;
        });
    }

    void note_failure(std::string text) {
        if (found_.failed++ == 0) {
            found_.first_failure = std::move(text);
        }
    }

    boost::asio::io_context& io_;
    redlock::lock_manager& manager_;
    redlock::acquire_options options_;
    std::chrono::milliseconds hold_;
    double rate_;
    boost::asio::steady_timer ticker_;
    clock::time_point started_{};
    std::uint64_t due_max_ = 0;
    load_figures found_;
};

std::vector<server_usage> usage_of_each(const std::vector<address>& masters) {
    std::vector<server_usage> found;
    for (const auto& master : masters) {
        found.push_back(read_usage({master}));
    }
    return found;
}

void measure(const plan& asked, side who, std::size_t rate, row& into, report& all) {
    redlock_client client(asked.masters, asked.make_load(who, 1));
    const auto servers_before = usage_of_each(asked.masters);
    const auto cpu_before = process_cpu_time();
    const auto started = clock::now();
    auto found = arrivals(client, asked, who, static_cast<double>(rate)).run(asked.duration);
    const std::chrono::duration<double> elapsed = clock::now() - started;
    const std::chrono::duration<double> cpu = process_cpu_time() - cpu_before;
    const auto servers_after = usage_of_each(asked.masters);
    client.close();
    std::chrono::duration<double> busiest{0};
    for (std::size_t i = 0; i < servers_after.size(); ++i) {
        busiest = std::max<std::chrono::duration<double>>(
            busiest, (servers_after[i] - servers_before[i]).cpu);
    }
    into.add("acquired_per_second", static_cast<double>(found.acquire_ns.size()) / elapsed.count());
    into.add("acquire_p50_us", percentile(found.acquire_ns, 0.50) / 1e3);
    into.add("acquire_p99_us", percentile(found.acquire_ns, 0.99) / 1e3);
    into.add("acquire_p999_us", percentile(found.acquire_ns, 0.999) / 1e3);
    into.add("failed_share", static_cast<double>(found.failed) / static_cast<double>(found.begun));
    into.add("client_cpu_share", cpu.count() / elapsed.count());
    into.add("busiest_server_cpu_share", busiest.count() / elapsed.count());
    if (found.failed > 0) {
        all.failures.push_back(fmt::format(
            "load, {} a second, {}: {} failures, the first: {}",
            rate,
            to_string(who),
            found.failed,
            found.first_failure));
    }
}

} // namespace

void run_load(const plan& asked, report& into) {
    if (asked.protocols().empty()) {
        return;
    }
    auto& made = into.tables.emplace_back(table{
        "load",
        fmt::format(
            "Load: acquires that begin by the clock, locks held for {} ms", asked.hold.count()),
        "The given number of acquires begin each second, each on a resource of its own, whatever "
        "became of those before; each lock is held for a time and released. An acquire counts "
        "from the moment when it was due, so a quorum that cannot keep up is seen. A share of 1 is "
        "one processor; a server uses one for commands, and has no more to give near 1.",
        {"rate", "side"},
        {{"acquired_per_second", "acquired/s", 0},
         {"acquire_p50_us", "acquire p50, us", 1},
         {"acquire_p99_us", "acquire p99, us", 1},
         {"failed_share", "failed", 4},
         {"client_cpu_share", "client CPU", 3},
         {"busiest_server_cpu_share", "busiest server's CPU", 3}},
        {}});
    for (const auto rate : asked.rates) {
        for (std::size_t round = 1; round <= asked.rounds; ++round) {
            for (const auto who : asked.protocols()) {
                const std::string name(to_string(who));
                asked.progress(fmt::format(
                    "load, {} a second, {}, round {} of {}", rate, name, round, asked.rounds));
                auto& row = made.at({static_cast<std::int64_t>(rate), name});
                measure(asked, who, rate, row, into);
            }
        }
    }
}

} // namespace bench
