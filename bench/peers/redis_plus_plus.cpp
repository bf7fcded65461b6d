// One round of `RedLock<RedLockMutex>` of redis-plus-plus: K threads in one process, each acquires
// and releases a resource of its own without pause. What to do comes as JSON in the only argument,
// what was measured leaves as one line of JSON. bench/peers/run compiles it, against an installed
// redis-plus-plus or that of --redis-plus-plus.

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <sw/redis++/patterns/redlock.h>
#include <thread>
#include <vector>

using std::chrono::steady_clock;
using masters = std::vector<std::shared_ptr<sw::redis::Redis>>;

struct seen {
    std::vector<double> acquire_us;
    int failures = 0;
    std::string first_failure;
};

void loop(
    const masters& all,
    const std::string& name,
    std::chrono::milliseconds ttl,
    steady_clock::time_point until,
    seen& here) {
    sw::redis::RedLockMutex mutex(all.begin(), all.end(), name);
    while (steady_clock::now() < until) {
        try {
            sw::redis::RedLock<sw::redis::RedLockMutex> lock(mutex, std::defer_lock);
            const auto started = steady_clock::now();
            if (!lock.try_lock(ttl)) {
                throw sw::redis::Error("not acquired");
            }
            const std::chrono::duration<double, std::micro> took = steady_clock::now() - started;
            lock.unlock();
            here.acquire_us.push_back(took.count());
        } catch (const sw::redis::Error& error) {
            ++here.failures;
            here.first_failure = error.what();
        }
    }
}

nlohmann::json run(const masters& all, const nlohmann::json& asked, double seconds) {
    std::vector<seen> each(asked["in_flight"].get<std::size_t>());
    std::vector<std::thread> threads;
    const auto cpu = std::clock();
    const auto started = steady_clock::now();
    const auto until = started + std::chrono::nanoseconds(std::llround(seconds * 1e9));
    for (std::size_t i = 0; i != each.size(); ++i) {
        threads.emplace_back(
            loop,
            std::cref(all),
            asked["prefix"].get<std::string>() + std::to_string(i),
            std::chrono::milliseconds(asked["ttl_ms"].get<int>()),
            until,
            std::ref(each[i]));
    }
    seen total;
    for (std::size_t i = 0; i != each.size(); ++i) {
        threads[i].join();
        total.acquire_us.insert(
            total.acquire_us.end(), each[i].acquire_us.begin(), each[i].acquire_us.end());
        total.failures += each[i].failures;
        total.first_failure =
            total.first_failure.empty() ? each[i].first_failure : total.first_failure;
    }
    const std::chrono::duration<double> elapsed = steady_clock::now() - started;
    const double used_us = 1e6 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
    std::sort(total.acquire_us.begin(), total.acquire_us.end());
    const auto pairs = total.acquire_us.size();
    // The same rank as in quorum_bench.
    const auto percentile = [&](double rank) -> nlohmann::json {
        const auto at = std::max(std::ceil(rank * static_cast<double>(pairs)), 1.0);
        return pairs ? nlohmann::json(total.acquire_us[static_cast<std::size_t>(at) - 1]) : nullptr;
    };
    return {
        {"failures", total.failures},
        {"first_failure", total.first_failure},
        {"acquire_p50_us", percentile(0.5)},
        {"acquire_p99_us", percentile(0.99)},
        {"pairs_per_second", static_cast<double>(pairs) / elapsed.count()},
        {"client_cpu_us_per_pair", pairs ? used_us / static_cast<double>(pairs) : 0.0},
    };
}

int main(int, char** argv) try {
    const auto asked = nlohmann::json::parse(argv[1]);
    masters all;
    for (const std::string master : asked["masters"]) {
        sw::redis::ConnectionOptions where;
        where.host = master.substr(0, master.rfind(':'));
        where.port = std::stoi(master.substr(master.rfind(':') + 1));
        sw::redis::ConnectionPoolOptions pool;
        pool.size = asked["in_flight"]; // its default is one, for all threads
        all.push_back(std::make_shared<sw::redis::Redis>(where, pool));
    }
    const auto warm = run(all, asked, asked["warm_up"]);
    auto found = run(all, asked, asked["seconds"]);
    if (warm["failures"] != 0 && found["failures"] == 0) {
        found["first_failure"] = warm["first_failure"];
    }
    found["failures"] = found["failures"].get<int>() + warm["failures"].get<int>();
    std::cout << found << '\n';
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
