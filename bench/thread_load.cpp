// Threads that lock and unlock.
#include "thread_load.hpp"

#include "redlock_client.hpp"
#include "wire.hpp"

#include <redlock/blocking.hpp>

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace bench {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

result run_threads(const std::vector<address>& masters, const load& work) {
    require_valid(work);
    std::optional<redlock::blocking::manager> manager(std::in_place, make_config(masters, work));
    if (!manager->ready(5s)) {
        throw std::runtime_error("redlock: " + to_string(manager->async().get_health()));
    }
    const auto resources = resource_names(work.in_flight);
    redlock::acquire_options options;
    options.ttl = work.ttl;
    options.renew = false;

    result out;
    std::mutex guard; // of `out`
    std::atomic<bool> measured{false};
    std::atomic<bool> over{false};
    std::atomic<std::size_t> started{0};
    const auto run = [&](const std::string& resource) {
        redlock::blocking::mutex mutex(*manager, resource, options);
        std::vector<std::uint32_t> samples;
        std::uint64_t failures = 0;
        std::string failure;
        while (!over && (work.pairs_max == 0 || started++ < work.pairs_max)) {
            try {
                const auto began = clock::now();
                mutex.lock();
                const std::chrono::nanoseconds took = clock::now() - began;
                mutex.unlock();
                if (mutex.last_release() != redlock::release_result::released) {
                    throw std::runtime_error("a lock that was not released");
                }
                if (measured) {
                    samples.push_back(static_cast<std::uint32_t>(took.count()));
                }
            } catch (const std::exception& error) {
                ++failures;
                failure = error.what();
            }
        }
        const std::lock_guard lock(guard);
        out.pairs += samples.size();
        out.acquire_ns.insert(out.acquire_ns.end(), samples.begin(), samples.end());
        out.failures += failures;
        if (out.first_failure.empty()) {
            out.first_failure = std::move(failure);
        }
    };
    measured = work.warm_up == 0ms;
    std::vector<std::thread> threads;
    for (const auto& resource : resources) {
        threads.emplace_back(run, resource);
    }
    std::this_thread::sleep_for(work.warm_up);
    measured = true;
    const auto usage_before = read_usage(masters);
    const auto cpu_before = process_cpu_time();
    const auto began = clock::now();
    if (work.duration > 0ms) {
        std::this_thread::sleep_for(work.duration);
        over = true;
    }
    for (auto& thread : threads) {
        thread.join();
    }
    out.elapsed = clock::now() - began;
    out.cpu = process_cpu_time() - cpu_before;
    out.servers = read_usage(masters) - usage_before;
    manager.reset(); // the last removals to a minority may still be in flight
    if (work.check) {
        out.keys_left = count_lock_keys(masters, resources);
    }
    return out;
}

} // namespace bench
