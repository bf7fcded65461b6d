#include "sharded_load.hpp"

#include "wire.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace bench {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto admission_limit = 5s;
constexpr auto settle_time = 20ms;

redlock::sharded_config
make_config(const std::vector<std::vector<address>>& quorums, const load& work) {
    redlock::sharded_config made;
    for (const auto& masters : quorums) {
        auto& one = made.quorums.emplace_back();
        one.name = fmt::format("q{}", made.quorums.size());
        for (const auto& master : masters) {
            one.config.masters.emplace_back("redis://" + to_string(master));
        }
        one.config.protocol =
            work.who == side::plain ? redlock::protocol::plain : redlock::protocol::guarded;
        // The servers were just started: nothing to forget.
        one.config.quarantine = redlock::quarantine::off;
        // A master that waits for a core is slow, not gone.
        one.config.master_timeout = 2s;
        one.config.max_ttl = std::max(one.config.max_ttl, work.ttl);
    }
    return made;
}

struct run_state {
    redlock::sharded_manager& manager;
    redlock::acquire_options options;
    sharded_result& outcome;
    clock::time_point stop_at;
    std::size_t busy_loops = 0;

    void note_failure(const std::string& text) {
        if (outcome.failures++ == 0) {
            outcome.first_failure = text;
        }
    }
};

// Acquires and releases one resource until the time is over.
class pair_loop {
public:
    pair_loop(run_state& run, std::string resource) : run_(run), resource_(std::move(resource)) {}

    void start() {
        if (clock::now() >= run_.stop_at) {
            --run_.busy_loops;
            return;
        }
        run_.manager.async_acquire(
            resource_, run_.options, [this](redlock::error_code error, redlock::lock acquired) {
                on_acquired(error, std::move(acquired));
            });
    }

private:
    void on_acquired(redlock::error_code error, redlock::lock acquired) {
        if (error) {
            run_.note_failure("acquire: " + error.message());
            start();
            return;
        }
        lock_ = std::move(acquired);
        lock_.async_release([this](redlock::error_code, redlock::release_result found) {
            if (found == redlock::release_result::released) {
                ++run_.outcome.pairs;
            } else {
                run_.note_failure("release: " + std::string(redlock::to_string(found)));
            }
            start();
        });
    }

    run_state& run_;
    std::string resource_;
    redlock::lock lock_;
};

// Runs the context until `done` says so. The manager's connections keep it busy.
template <typename Done>
void run_until(boost::asio::io_context& io, Done done) {
    io.restart();
    while (!done()) {
        if (io.run_one() == 0) {
            throw std::runtime_error("redlock: the context ran out of work");
        }
    }
}

void wait_until_admitted(
    boost::asio::io_context& io, const redlock::sharded_manager& manager, std::size_t masters) {
    const auto give_up_at = clock::now() + admission_limit;
    const auto admitted = [&] {
        std::size_t sum = 0;
        for (const auto& one : manager.get_health().quorums) {
            sum += one.health.admitted;
        }
        return sum;
    };
    while (admitted() < masters) {
        if (clock::now() >= give_up_at) {
            throw std::runtime_error("redlock: " + to_string(manager.get_health()));
        }
        io.restart();
        io.run_for(2ms);
    }
}

std::vector<server_usage> usage_of_each(const std::vector<address>& masters) {
    std::vector<server_usage> out;
    for (const auto& master : masters) {
        out.push_back(read_usage({master}));
    }
    return out;
}

void add_usage(
    sharded_result& outcome,
    const std::vector<server_usage>& before,
    const std::vector<server_usage>& after) {
    for (std::size_t i = 0; i < before.size(); ++i) {
        const auto spent = after[i] - before[i];
        outcome.servers_cpu += spent.cpu;
        outcome.busiest_cpu = std::max(outcome.busiest_cpu, spent.cpu);
        outcome.busiest_commands = std::max(outcome.busiest_commands, spent.commands);
    }
}

} // namespace

sharded_result run_sharded(const std::vector<std::vector<address>>& quorums, const load& work) {
    require_valid(work);
    std::vector<address> masters;
    for (const auto& quorum : quorums) {
        masters.insert(masters.end(), quorum.begin(), quorum.end());
    }
    const auto resources = resource_names(work.in_flight);
    sharded_result outcome;
    boost::asio::io_context io{1};
    redlock::sharded_manager manager(io.get_executor(), make_config(quorums, work));
    run_state run{manager, {}, outcome, {}};
    run.options.ttl = work.ttl;
    run.options.wait = redlock::wait_for::none();
    run.options.renew = redlock::renewal::off;
    run.options.fencing = work.who == side::fenced;
    std::vector<std::unique_ptr<pair_loop>> loops;
    for (const auto& resource : resources) {
        loops.push_back(std::make_unique<pair_loop>(run, resource));
    }
    manager.async_run([](redlock::error_code) {});
    wait_until_admitted(io, manager, masters.size());
    const auto run_for = [&](std::chrono::milliseconds duration) {
        run.stop_at = clock::now() + duration;
        run.busy_loops = loops.size();
        for (auto& loop : loops) {
            loop->start();
        }
        run_until(io, [&] { return run.busy_loops == 0; });
    };
    run_for(work.warm_up);
    outcome.pairs = 0; // failures of the warm-up stay: they are failures
    const auto before = usage_of_each(masters);
    const auto cpu_before = process_cpu_time();
    const auto started = clock::now();
    run_for(work.duration);
    outcome.elapsed = clock::now() - started;
    outcome.cpu = process_cpu_time() - cpu_before;
    io.restart();
    io.run_for(settle_time); // the stragglers' replies
    add_usage(outcome, before, usage_of_each(masters));
    bool closed = false;
    manager.async_close([&](redlock::error_code) { closed = true; });
    run_until(io, [&] { return closed; });
    if (const auto left = count_lock_keys(masters, resources); left > 0) {
        run.note_failure(fmt::format("{} keys were left", left));
    }
    return outcome;
}

} // namespace bench
