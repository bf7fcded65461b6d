// One run of the library, from connecting to looking for what was left.
#include "redlock_load.hpp"

#include "redlock_client.hpp"
#include "wire.hpp"

#include <chrono>
#include <utility>

namespace bench {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

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
