// The loops that acquire and release locks through the library.
#include "redlock_client.hpp"

#include "wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto admission_limit = 5s;
constexpr auto settle_time = 20ms;

} // namespace

redlock::config make_config(const std::vector<address>& masters, const load& work) {
    redlock::config made;
    made.protocol = work.who == side::plain ? redlock::protocol::plain : redlock::protocol::guarded;
    for (const auto& master : masters) {
        auto& endpoint = made.masters.emplace_back("redis://" + to_string(master));
        endpoint.username = master.username;
        endpoint.password = master.password;
        endpoint.name = master.name;
    }
    // The servers were just started, or hold no lock: there is nothing to lose.
    made.quarantine = false;
    made.max_ttl = std::max(made.max_ttl, work.ttl);
    made.master_timeout = work.master_timeout;
    return made;
}

void wait_until_admitted(
    boost::asio::io_context& io, const redlock::lock_manager& manager, std::size_t masters) {
    const auto give_up_at = clock::now() + admission_limit;
    while (manager.get_health().admitted < masters) {
        if (clock::now() >= give_up_at) {
            throw std::runtime_error("redlock: " + to_string(manager.get_health()));
        }
        io.restart();
        io.run_for(2ms);
    }
}

// What the loops of one run share.
struct redlock_client::run_state {
    boost::asio::io_context& io;
    redlock::lock_manager& manager;
    redlock::acquire_options options;
    result& outcome;
    clock::time_point stop_at = clock::time_point::max();
    std::size_t pairs_left = 0;
    bool unlimited_pairs = false;
    bool sampled = false;
    bool scoped = false;
    std::size_t busy_loops = 0;

    void note_failure(std::string text) {
        if (outcome.failures++ == 0) {
            outcome.first_failure = std::move(text);
        }
    }
};

// Acquires and releases one resource until the run is over.
class redlock_client::pair_loop {
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
        if (run_.scoped) {
            start_scope();
            return;
        }
        run_.manager.async_acquire(
            resource_, run_.options, [this](redlock::error_code error, redlock::lock acquired) {
                on_acquired(error, std::move(acquired));
            });
    }

private:
    void start_scope() {
        redlock::async_with_lock(
            run_.manager,
            resource_,
            run_.options,
            [this](redlock::lock&) -> boost::asio::awaitable<void> {
                sample();
                co_return;
            },
            [this](const std::exception_ptr& thrown) {
                if (thrown) {
                    run_.note_failure("a scope that threw");
                } else {
                    ++run_.outcome.pairs;
                }
                start();
            });
    }

    void sample() {
        if (run_.sampled) {
            const std::chrono::nanoseconds took = clock::now() - started_;
            run_.outcome.acquire_ns.push_back(static_cast<std::uint32_t>(took.count()));
        }
    }

    void on_acquired(redlock::error_code error, redlock::lock acquired) {
        if (error || !acquired.held()) {
            run_.note_failure("acquire: " + (error ? error.message() : "a lock that is not held"));
            start();
            return;
        }
        sample();
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

redlock_client::redlock_client(
    const std::vector<address>& masters, const load& work, std::size_t admitted)
    : manager_(io_.get_executor(), make_config(masters, work)),
      run_(std::make_unique<run_state>(run_state{io_, manager_, {}, outcome})) {
    run_->options.ttl = work.ttl;
    run_->options.wait = redlock::wait_for::none();
    run_->options.renew = false;
    run_->options.fencing = work.who == side::fenced;
    run_->scoped = work.who == side::scope;
    for (auto& resource : resource_names(work.in_flight)) {
        loops_.push_back(std::make_unique<pair_loop>(*run_, std::move(resource)));
    }
    manager_.async_run([](redlock::error_code) {});
    wait_until_admitted(io_, manager_, admitted);
    outcome.release_command = manager_.get_health().masters.front().compare_and_delete;
}

redlock_client::~redlock_client() {
    if (!closed_) {
        // After an exception: let the locks go, but for no longer than this.
        manager_.async_close([this](redlock::error_code) { io_.stop(); });
        io_.restart();
        io_.run_for(1s);
    }
}

void redlock_client::run(std::chrono::milliseconds duration, std::size_t pairs_max, bool sampled) {
    run_->pairs_left = pairs_max;
    run_->unlimited_pairs = pairs_max == 0;
    run_->sampled = sampled;
    run_->busy_loops = loops_.size();
    run_->stop_at = duration > 0ms ? clock::now() + duration : clock::time_point::max();
    io_.restart();
    for (auto& loop : loops_) {
        loop->start();
    }
    while (run_->busy_loops > 0 && io_.run() > 0) {
        // Stopped by the last loop only.
    }
    if (run_->busy_loops > 0) {
        throw std::runtime_error("redlock: the context ran out of work before the loops ended");
    }
}

void redlock_client::require_known_key(
    const std::vector<address>& masters, const std::string& resource) {
    redlock::lock held;
    redlock::error_code error;
    manager_.async_acquire(
        resource, run_->options, [&](redlock::error_code failed, redlock::lock acquired) {
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

redlock::error_code redlock_client::try_once(const std::string& resource) {
    redlock::error_code answer;
    redlock::lock taken;
    manager_.async_acquire(
        resource, run_->options, [&](redlock::error_code error, redlock::lock acquired) {
            answer = error;
            taken = std::move(acquired);
            io_.stop();
        });
    io_.restart();
    io_.run();
    if (taken.valid()) {
        taken.async_release([this](redlock::error_code, redlock::release_result) { io_.stop(); });
        io_.restart();
        io_.run();
    }
    return answer;
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

} // namespace bench
