// The loops that take and give back locks through the library.
#include "redlock_load.hpp"

#include "wire.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
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

redlock::config make_config(const std::vector<address>& masters, const load& work) {
    redlock::config made;
    made.protocol = work.who == side::plain ? redlock::protocol::plain : redlock::protocol::guarded;
    for (const auto& master : masters) {
        made.masters.emplace_back("redis://" + to_string(master));
    }
    // The servers were just started, or hold no lock of anybody: nothing to forget.
    made.quarantine = redlock::quarantine::off;
    made.max_ttl = std::max(made.max_ttl, work.ttl);
    return made;
}

// What the loops of one run share.
struct run_state {
    boost::asio::io_context& io;
    redlock::lock_manager& manager;
    redlock::acquire_options options;
    result& outcome;
    clock::time_point stop_at = clock::time_point::max();
    std::size_t pairs_left = 0;
    bool unlimited_pairs = false;
    bool sampled = false;
    std::size_t busy_loops = 0;

    void note_failure(std::string text) {
        if (outcome.failures++ == 0) {
            outcome.first_failure = std::move(text);
        }
    }
};

// Acquires and releases one resource until the run is over.
class pair_loop {
public:
    pair_loop(run_state& run, std::string resource) : run_(run), resource_(std::move(resource)) {}

    void start() {
        started_ = clock::now();
        if ((!run_.unlimited_pairs && run_.pairs_left == 0) || started_ >= run_.stop_at) {
            if (--run_.busy_loops == 0) {
                run_.io.stop();
            }
            return;
        }
        --run_.pairs_left;
        run_.manager.async_acquire(
            resource_, run_.options, [this](redlock::error_code error, redlock::lock acquired) {
                on_acquired(error, std::move(acquired));
            });
    }

private:
    void on_acquired(redlock::error_code error, redlock::lock acquired) {
        const std::chrono::nanoseconds took = clock::now() - started_;
        if (error || !acquired.held()) {
            run_.note_failure("acquire: " + (error ? error.message() : "a lock that is not held"));
            start();
            return;
        }
        if (run_.sampled) {
            run_.outcome.acquire_ns.push_back(static_cast<std::uint32_t>(took.count()));
        }
        lock_ = std::move(acquired);
        lock_.async_release([this](redlock::error_code failed, redlock::release_result found) {
            on_released(failed, found);
        });
    }

    void on_released(redlock::error_code error, redlock::release_result found) {
        if (error || found != redlock::release_result::released) {
            run_.note_failure(fmt::format(
                "release: {}", error ? error.message() : std::string(redlock::to_string(found))));
        } else {
            ++run_.outcome.pairs;
        }
        start();
    }

    run_state& run_;
    std::string resource_;
    redlock::lock lock_;
    clock::time_point started_{};
};

class redlock_client {
public:
    redlock_client(const std::vector<address>& masters, const load& work);
    ~redlock_client();

    // Starts pairs for so long, or so many, and returns when the last one is over.
    void run(std::chrono::milliseconds duration, std::size_t pairs_max, bool sampled);
    // Takes one lock and looks for its key with another client: `check` would find nothing left
    // behind if it looked in the wrong place.
    void require_known_key(const std::vector<address>& masters, const std::string& resource);
    // Lets the stragglers' replies come in.
    void settle();
    std::uint64_t raised() const { return manager_.get_metrics().raised; }
    void close();

    result outcome;

private:
    void wait_until_admitted(std::size_t masters);

    boost::asio::io_context io_{1};
    redlock::lock_manager manager_;
    run_state run_;
    std::vector<std::unique_ptr<pair_loop>> loops_;
    bool closed_ = false;
};

redlock_client::redlock_client(const std::vector<address>& masters, const load& work)
    : manager_(io_.get_executor(), make_config(masters, work)),
      run_{io_, manager_, {}, outcome} {
    run_.options.ttl = work.ttl;
    run_.options.wait = redlock::wait_for::none();
    run_.options.renew = redlock::renewal::off;
    run_.options.fencing = work.who == side::fenced;
    for (auto& resource : resource_names(work.in_flight)) {
        loops_.push_back(std::make_unique<pair_loop>(run_, std::move(resource)));
    }
    manager_.async_run([](redlock::error_code) {});
    wait_until_admitted(masters.size());
}

redlock_client::~redlock_client() {
    if (!closed_) {
        // After an exception: let the locks go, but for no longer than this.
        manager_.async_close([this](redlock::error_code) { io_.stop(); });
        io_.restart();
        io_.run_for(1s);
    }
}

void redlock_client::wait_until_admitted(std::size_t masters) {
    const auto give_up_at = clock::now() + admission_limit;
    while (manager_.get_health().admitted < masters) {
        if (clock::now() >= give_up_at) {
            throw std::runtime_error("redlock: " + to_string(manager_.get_health()));
        }
        io_.restart();
        io_.run_for(2ms);
    }
    outcome.release_command = manager_.get_health().masters.front().compare_and_delete;
}

void redlock_client::run(std::chrono::milliseconds duration, std::size_t pairs_max, bool sampled) {
    run_.pairs_left = pairs_max;
    run_.unlimited_pairs = pairs_max == 0;
    run_.sampled = sampled;
    run_.busy_loops = loops_.size();
    run_.stop_at = duration > 0ms ? clock::now() + duration : clock::time_point::max();
    io_.restart();
    for (auto& loop : loops_) {
        loop->start();
    }
    while (run_.busy_loops > 0 && io_.run() > 0) {
        // Stopped by the last loop only.
    }
    if (run_.busy_loops > 0) {
        throw std::runtime_error("redlock: the context ran out of work before the loops ended");
    }
}

void redlock_client::require_known_key(
    const std::vector<address>& masters, const std::string& resource) {
    redlock::lock held;
    redlock::error_code error;
    manager_.async_acquire(
        resource, run_.options, [&](redlock::error_code failed, redlock::lock acquired) {
            error = failed;
            held = std::move(acquired);
            io_.stop();
        });
    io_.restart();
    io_.run();
    if (error) {
        throw std::runtime_error("redlock: the first acquire: " + error.message());
    }
    const auto seen = count_lock_keys(masters, {resource});
    held.async_release([this](redlock::error_code, redlock::release_result) { io_.stop(); });
    io_.restart();
    io_.run();
    if (seen <= masters.size() / 2) {
        throw std::runtime_error(fmt::format(
            "redlock: the key '{}' of a held lock is on {} of {} masters",
            lock_key(resource),
            seen,
            masters.size()));
    }
}

void redlock_client::settle() {
    io_.restart();
    io_.run_for(settle_time);
}

void redlock_client::close() {
    manager_.async_close([this](redlock::error_code) { io_.stop(); });
    io_.restart();
    io_.run();
    closed_ = true;
}

} // namespace

result run_redlock(const std::vector<address>& masters, const load& work) {
    require_valid(work);
    const auto resources = resource_names(work.in_flight);
    redlock_client client(masters, work);
    if (work.check) {
        client.require_known_key(masters, resources.front());
    }
    if (work.warm_up > 0ms) {
        client.run(work.warm_up, 0, false);
    }
    // Failures of the warm-up stay: they are failures.
    client.outcome.pairs = 0;
    client.outcome.acquire_ns.reserve(1 << 20);
    const auto usage_before = read_usage(masters);
    const auto raised_before = client.raised();
    const auto cpu_before = process_cpu_time();
    const auto started = clock::now();
    client.run(work.duration, work.pairs_max, true);
    client.outcome.elapsed = clock::now() - started;
    client.outcome.cpu = process_cpu_time() - cpu_before;
    client.outcome.raised = client.raised() - raised_before;
    client.settle();
    client.outcome.servers = read_usage(masters) - usage_before;
    client.close();
    if (work.check) {
        client.outcome.keys_left = count_lock_keys(masters, resources);
    }
    return std::move(client.outcome);
}

} // namespace bench
