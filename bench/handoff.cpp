// Starting the workers, and figures from what they and the masters counted.
#include "handoff.hpp"

#include "comparison.hpp"
#include "handoff_worker.hpp"
#include "holdings.hpp"
#include "push_time.hpp"
#include "worker_process.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 20s;
constexpr std::size_t processes_max = 4;
constexpr std::size_t pushes = 500;
constexpr std::array holds{0ms, 1ms, 30ms};

// The commands that carry the protocol, by what comes over the wire: a script's own calls are
// counted under their names as well, so those which scripts make are left out.
std::vector<std::string_view> commands_of(side who) {
    std::vector<std::string_view> names{"eval", "evalsha", "subscribe", "unsubscribe"};
    if (who == side::plain) {
        names.push_back("set");
    }
    return names;
}

struct crowd {
    std::size_t waiters = 0;
    std::size_t processes = 0;
    side who = side::guarded;
    std::chrono::milliseconds duration{0};
    std::chrono::milliseconds hold{0};
};

struct crowd_result {
    handoff_figures figures;
    handoff_answer counted;
    std::uint64_t commands = 0;
};

void add(handoff_answer& sum, const handoff_answer& one) {
    sum.local += one.local;
    sum.failures += one.failures;
    if (sum.first_failure.empty()) {
        sum.first_failure = one.first_failure;
    }
}

crowd_result run_crowd(const plan& asked, const crowd& of) {
    handoff_task task;
    task.masters = asked.masters;
    task.work = asked.make_load(of.who, of.waiters);
    task.work.duration = of.duration;
    task.hold = of.hold;
    task.resource = fmt::format("bench-crowd-{}", ::getpid());
    std::vector<handoff_log> logs;
    std::vector<worker_process> workers;
    for (std::size_t i = 0; i < of.processes; ++i) {
        task.process = static_cast<std::uint32_t>(i);
        task.first_waiter += task.waiters;
        task.waiters =
            static_cast<std::uint32_t>((of.waiters + of.processes - 1 - i) / of.processes);
        task.log = logs.emplace_back().fd();
        workers.emplace_back(handoff_worker_name).write_line(nlohmann::json(task).dump());
    }
    for (auto& worker : workers) {
        worker.read_line(patience);
    }
    const auto commands = commands_of(of.who);
    const auto before = count_calls(asked.masters, commands);
    for (auto& worker : workers) {
        worker.write_line("go");
    }
    crowd_result found;
    std::vector<holding> holdings;
    for (std::size_t i = 0; i < workers.size(); ++i) {
        const auto line = workers[i].read_line(of.duration + patience);
        const auto answer = nlohmann::json::parse(line).get<handoff_answer>();
        add(found.counted, answer);
        const auto used = logs[i].holdings().first(answer.holdings);
        holdings.insert(holdings.end(), used.begin(), used.end());
    }
    found.commands = count_calls(asked.masters, commands) - before;
    found.figures = figures_of(std::move(holdings), of.waiters, of.duration);
    return found;
}

void note_failures(report& into, const std::string& where, const crowd_result& found) {
    if (found.counted.failures > 0) {
        into.failures.push_back(fmt::format(
            "{}: {} failures, the first: {}",
            where,
            found.counted.failures,
            found.counted.first_failure));
    }
    if (found.figures.overlaps > 0) {
        into.failures.push_back(
            fmt::format("{}: {} times two had the lock", where, found.figures.overlaps));
    }
}

void add_row(row& into, crowd_result& found, std::size_t masters) {
    auto& figures = found.figures;
    const auto milliseconds = [](std::chrono::nanoseconds time) {
        return std::chrono::duration<double, std::milli>(time).count();
    };
    const auto handoffs = figures.handoffs > 0 ? static_cast<double>(figures.handoffs)
                                               : std::numeric_limits<double>::quiet_NaN();
    // An acquire and a release on each master; none where the lock stayed in the process.
    const auto needed = 2.0 * static_cast<double>(masters)
                        * std::max(0.0, handoffs - static_cast<double>(found.counted.local));
    const auto commands = static_cast<double>(found.commands);
    into.add("handoffs_per_second", figures.per_second);
    into.add("remote_p50_us", percentile(figures.remote_ns, 0.50) / 1e3);
    into.add("remote_p99_us", percentile(figures.remote_ns, 0.99) / 1e3);
    into.add("local_p50_us", percentile(figures.local_ns, 0.50) / 1e3);
    into.add("local_p99_us", percentile(figures.local_ns, 0.99) / 1e3);
    into.add("remote_share", static_cast<double>(figures.remote_ns.size()) / handoffs);
    into.add("commands_per_handoff", commands / handoffs);
    into.add("wasted_commands_per_handoff", std::max(0.0, commands - needed) / handoffs);
    into.add("jain_index", figures.jain_index);
    into.add("longest_gap_ms", milliseconds(figures.longest_gap));
    into.add("longest_wait_ms", milliseconds(figures.longest_wait));
}

// The parts that every handoff to another process needs, in the same round.
void measure_basis(const plan& asked, side who, row& into, report& all) {
    auto acquires = run_side(asked.masters, asked.make_load(who, 1));
    note_failure(all, fmt::format("handoff_basis, {}", to_string(who)), acquires);
    auto messages = push_times(asked.masters, pushes);
    const auto acquire = percentile(acquires.acquire_ns, 0.50) / 1e3;
    const auto push = percentile(messages, 0.50) / 1e3;
    into.add("acquire_p50_us", acquire);
    into.add("push_p50_us", push);
    // So that the ratio can be taken round by round.
    into.add("remote_p50_us", acquire + push);
}

table& add_basis_table(report& into) {
    return into.tables.emplace_back(table{
        "handoff_basis",
        "What a handoff is measured against",
        "An acquire of a lock that is free, by one loop alone; a message from PUBLISH on one "
        "bare socket to a subscribed other one through a master. `remote_p50_us` is their sum: "
        "no process can learn of a release sooner, nor acquire the lock faster.",
        {"side"},
        {{"acquire_p50_us", "acquire p50, us", 1},
         {"push_p50_us", "push p50, us", 1},
         {"remote_p50_us", "sum, us", 1}},
        {}});
}

table& add_handoff_table(report& into) {
    return into.tables.emplace_back(table{
        "handoff",
        "Handoff: waiters for one lock, in one or more processes",
        "Each waiter acquires one and the same lock, releases it at once and acquires it again. A "
        "handoff is counted from just before the release is started until just after the "
        "next holder has the lock, by CLOCK_MONOTONIC; remote: the next holder is in another "
        "process. Commands are those that the masters counted, scripts as one each; wasted are "
        "those beyond an acquire and a release per master for each handoff through the "
        "masters. The longest gap is without a holder, the longest wait that of one "
        "waiter.",
        {"waiters", "processes", "side"},
        {{"handoffs_per_second", "handoffs/s", 0},
         {"remote_p50_us", "remote p50, us", 1},
         {"remote_p99_us", "remote p99, us", 1},
         {"local_p50_us", "local p50, us", 1},
         {"wasted_commands_per_handoff", "wasted commands", 2},
         {"jain_index", "Jain", 3},
         {"longest_gap_ms", "longest gap, ms", 1},
         {"longest_wait_ms", "longest wait, ms", 1}},
        {}});
}

void run_crowds(const plan& asked, table& basis, table& into, report& all) {
    for (std::size_t round = 1; round <= asked.rounds; ++round) {
        for (const auto who : asked.protocols()) {
            const std::string name(to_string(who));
            asked.progress(
                fmt::format("{}, {}, round {} of {}", basis.id, name, round, asked.rounds));
            measure_basis(asked, who, basis.at({name}), all);
            for (const auto waiters : asked.waiters) {
                for (const std::size_t processes : {std::size_t{1}, processes_max}) {
                    const crowd of{waiters, std::min(processes, waiters), who, asked.duration};
                    const auto where = fmt::format(
                        "{}, {} waiters in {} processes, {}",
                        into.id,
                        of.waiters,
                        of.processes,
                        name);
                    asked.progress(fmt::format("{}, round {} of {}", where, round, asked.rounds));
                    auto found = run_crowd(asked, of);
                    note_failures(all, where, found);
                    const coordinates place{
                        static_cast<std::int64_t>(of.waiters),
                        static_cast<std::int64_t>(of.processes),
                        name};
                    add_row(into.at(place), found, asked.masters.size());
                }
            }
        }
    }
    for (auto& each : into.rows) {
        if (!std::isnan(each.over_rounds("remote_p50_us").median)) {
            each.compare("remote_p50_us", *basis.find({each.at().back()}), "acquire + push");
        }
    }
}

void run_fairness(const plan& asked, report& all) {
    auto& into = all.tables.emplace_back(table{
        "fairness",
        fmt::format(
            "Fairness: waiters in one process, and a process for each, {} s",
            std::chrono::duration<double>(asked.fairness_duration).count()),
        "As the table of handoffs, but for longer and once. Each holding lasts `hold_ms`. If all "
        "waiters together need more than half a second for one holding each, the time is longer "
        "in proportion.",
        {"waiters", "processes", "hold_ms", "side"},
        {{"jain_index", "Jain", 4},
         {"handoffs_per_second", "handoffs/s", 0},
         {"longest_wait_ms", "longest wait, ms", 1}},
        {}});
    const auto measure = [&](const crowd& of) {
        const std::string name(to_string(of.who));
        const auto where = fmt::format(
            "{}, {} waiters in {} processes, hold {} ms, {}",
            into.id,
            of.waiters,
            of.processes,
            of.hold.count(),
            name);
        asked.progress(where);
        auto found = run_crowd(asked, of);
        note_failures(all, where, found);
        auto& made = into.at(
            {static_cast<std::int64_t>(of.waiters),
             static_cast<std::int64_t>(of.processes),
             of.hold.count(),
             name});
        add_row(made, found, asked.masters.size());
    };
    const auto most = *std::max_element(asked.waiters.begin(), asked.waiters.end());
    for (const auto who : asked.protocols()) {
        measure({most, 1, who, asked.fairness_duration});
        for (const auto waiters : asked.waiters) {
            for (const std::chrono::milliseconds hold : holds) {
                const auto rounds = std::max<std::int64_t>(
                    1, static_cast<std::int64_t>(waiters) * hold.count() / 500);
                measure({waiters, waiters, who, rounds * asked.fairness_duration, hold});
            }
        }
    }
}

} // namespace

void run_handoff(const plan& asked, report& into) {
    if (asked.protocols().empty() || asked.waiters.empty()) {
        return;
    }
    auto& basis = add_basis_table(into);
    auto& crowds = add_handoff_table(into);
    run_crowds(asked, basis, crowds, into);
    run_fairness(asked, into);
}

} // namespace bench
