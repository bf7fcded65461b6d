// The same load with some of the masters disturbed.
#include "faults.hpp"

#include "disturbance.hpp"
#include "redlock_client.hpp"
#include "wire.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <optional>
#include <utility>

namespace bench {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto debts_limit = 5s;
constexpr std::size_t outages_per_round = 4;
constexpr std::size_t errors_per_outage = 25;

// A hung master executes what it received once it continues; the rest is sent to it then.
std::uint64_t keys_left_after_debts(redlock_client& client, const plan& asked) {
    const auto give_up_at = clock::now() + debts_limit;
    for (;;) {
        client.settle();
        const auto left = count_lock_keys(asked.masters, resource_names(1));
        if (left == 0 || clock::now() >= give_up_at) {
            return left;
        }
    }
}

result run_disturbed(const plan& asked, side who, fault wanted) {
    disturbance quorum(asked, wanted);
    const auto work = asked.make_load(who, 1);
    redlock_client client(quorum.masters(), work, quorum.admitted());
    client.run(work.warm_up, 0, false);
    client.outcome.pairs = 0;
    quorum.begin();
    const auto started = clock::now();
    client.run(work.duration, 0, true);
    client.outcome.elapsed = clock::now() - started;
    quorum.end();
    client.outcome.keys_left = keys_left_after_debts(client, asked);
    client.close();
    return std::move(client.outcome);
}

struct outage_times {
    std::vector<std::uint32_t> first_ns;
    std::vector<std::uint32_t> later_ns;
    std::optional<std::string> failure;
};

outage_times run_outage(const plan& asked, side who, fault wanted) {
    disturbance quorum(asked, wanted);
    const auto work = asked.make_load(who, 1);
    redlock_client client(quorum.masters(), work, quorum.admitted());
    if (wanted.kind == fault_kind::hung) {
        client.run(work.warm_up, 0, false);
    }
    outage_times found;
    for (std::size_t outage = 0; outage < outages_per_round; ++outage) {
        // A name that no hung master keeps from the last time.
        const auto resource = fmt::format("bench-outage-{}-{}", ::getpid(), outage);
        quorum.begin();
        for (std::size_t i = 0; i < errors_per_outage; ++i) {
            const auto started = clock::now();
            const auto error = client.try_once(resource);
            const std::chrono::nanoseconds took = clock::now() - started;
            (i == 0 ? found.first_ns : found.later_ns)
                .push_back(static_cast<std::uint32_t>(took.count()));
            if (error != redlock::errc::no_quorum) {
                found.failure = error ? error.message() : "a lock was granted";
            }
        }
        quorum.end();
        wait_until_admitted(client.context(), client.manager(), quorum.admitted());
    }
    client.close();
    return found;
}

std::vector<fault> minorities(std::size_t masters) {
    std::vector<fault> faults{{fault_kind::none, 0}};
    for (const auto kind : {fault_kind::hung, fault_kind::refused, fault_kind::slow}) {
        for (std::size_t count = 1; count <= (masters - 1) / 2; ++count) {
            faults.push_back({kind, count});
        }
    }
    return faults;
}

void measure_minorities(const plan& asked, table& into, report& all) {
    const auto faults = minorities(asked.masters.size());
    for (std::size_t round = 1; round <= asked.rounds; ++round) {
        for (const auto who : asked.protocols()) {
            for (const auto& wanted : faults) {
                const std::string name(to_string(who));
                const auto where = fmt::format("{}, {}, {}", into.id, wanted.name(), name);
                asked.progress(fmt::format("{}, round {} of {}", where, round, asked.rounds));
                auto found = run_disturbed(asked, who, wanted);
                note_failure(all, where, found);
                auto& made = into.at({wanted.name(), name});
                made.add("acquire_p50_us", percentile(found.acquire_ns, 0.50) / 1e3);
                made.add("acquire_p99_us", percentile(found.acquire_ns, 0.99) / 1e3);
                made.add(
                    "pairs_per_second",
                    static_cast<double>(found.pairs) * 1e9
                        / static_cast<double>(found.elapsed.count()));
            }
        }
    }
    for (auto& each : into.rows) {
        const auto healthy = fault{}.name();
        if (to_string(each.at().front()) != healthy) {
            for (const auto& [metric, values] : each.metrics()) {
                each.compare(metric, *into.find({healthy, each.at().back()}), healthy);
            }
        }
    }
}

void measure_outages(const plan& asked, table& into, report& all) {
    const auto majority = asked.masters.size() / 2 + 1;
    for (std::size_t round = 1; round <= asked.rounds; ++round) {
        for (const auto who : asked.protocols()) {
            for (const auto kind : {fault_kind::hung, fault_kind::refused}) {
                const fault wanted{kind, majority};
                const std::string name(to_string(who));
                const auto where = fmt::format("{}, {}, {}", into.id, wanted.name(), name);
                asked.progress(fmt::format("{}, round {} of {}", where, round, asked.rounds));
                auto found = run_outage(asked, who, wanted);
                if (found.failure) {
                    all.failures.push_back(fmt::format(
                        "{}: an acquire ended with '{}', not for want of a quorum",
                        where,
                        *found.failure));
                }
                auto& made = into.at({wanted.name(), name});
                made.add("first_error_ms", percentile(found.first_ns, 1) / 1e6);
                made.add("error_p50_ms", percentile(found.later_ns, 0.50) / 1e6);
                made.add("error_p99_ms", percentile(found.later_ns, 0.99) / 1e6);
            }
        }
    }
}

} // namespace

void run_faults(const plan& asked, report& into) {
    if (asked.own == nullptr || asked.masters.size() < 3 || asked.protocols().empty()) {
        return;
    }
    auto& disturbed = into.tables.emplace_back(table{
        "faults",
        fmt::format("Faults: one or more of {} masters disturbed", asked.masters.size()),
        fmt::format(
            "One loop acquires and releases. Hung: the server is stopped (SIGSTOP) while the "
            "client is connected, when the measured time begins. Slow: likewise, but it runs "
            "for {} ms of every {}. Refused: nobody listens, from the start. Every key must be "
            "gone after the masters go on.",
            slow_running.count(),
            (slow_running + slow_stopped).count()),
        {"fault", "side"},
        {{"acquire_p50_us", "acquire p50, us", 1},
         {"acquire_p99_us", "acquire p99, us", 1},
         {"pairs_per_second", "pairs/s", 0}},
        {}});
    measure_minorities(asked, disturbed, into);
    auto& outage = into.tables.emplace_back(table{
        "outage",
        "Outage: time to the error when a majority is gone",
        "One attempt after another, without waiting. The first one after the masters hang "
        "waits for them until master_timeout; the later ones know. The first is the longest of "
        "those of a round.",
        {"fault", "side"},
        {{"first_error_ms", "first error, ms", 3},
         {"error_p50_ms", "later p50, ms", 3},
         {"error_p99_ms", "later p99, ms", 3}},
        {}});
    measure_outages(asked, outage, into);
}

} // namespace bench
