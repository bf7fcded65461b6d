// The options and their limits.
#include "arguments.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

namespace bench {
namespace {

const std::vector<std::string> workload_names{
    "latency", "throughput", "handoff", "faults", "memory"};

// What --full changes, as far as nothing else was asked for.
constexpr std::size_t full_rounds = 5;
constexpr double full_seconds_per_round = 1;
constexpr double full_fairness_seconds = 10;

// A shorter time is not enough to judge fairness.
constexpr double fairness_seconds_min = 1;

void add_options(CLI::App& app, arguments& into) {
    auto known = workload_names;
    known.emplace_back("load");
    known.emplace_back("all");
    app.add_option("--workload", into.workloads, "what to measure (default: all)")
        ->delimiter(',')
        ->check(CLI::IsMember(known));
    app.add_flag("--full", into.full, "take the time that figures worth keeping need");
    auto* const given =
        app.add_option(
               "--masters",
               into.masters,
               "use these, host:port or redis://[[user]:password@]host:port, not new ones")
            ->delimiter(',')
            // Everybody can read a command line.
            ->envname("QUORUM_BENCH_MASTERS");
    app.add_option("--start", into.start, "number of masters to start on this machine")
        ->check(CLI::Range(1, 32))
        ->capture_default_str()
        ->excludes(given);
    app.add_option("--server", into.server, "the program that is started")->capture_default_str();
    app.add_option(
           "--in-flight", into.in_flight, "locks in flight; alone it means --workload throughput")
        ->delimiter(',')
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    app.add_option(
           "--rate", into.rates, "acquires that begin each second; alone it means --workload load")
        ->delimiter(',')
        ->check(CLI::Range(1, 1'000'000));
    app.add_option("--hold", into.hold_ms, "how long --rate holds each lock, in milliseconds")
        ->check(CLI::Range(0, 3'600'000))
        ->capture_default_str();
    app.add_option("--waiters", into.waiters, "waiters for one lock")
        ->delimiter(',')
        ->check(CLI::Range(2, 10'000))
        ->capture_default_str();
    app.add_option("--rounds", into.rounds, "rounds of each side, interleaved (--full: 5)")
        ->check(CLI::Range(1, 1'000))
        ->capture_default_str();
    app.add_option("--seconds-per-round", into.seconds_per_round, "length of a round (--full: 1)")
        ->check(CLI::Range(0.01, 3'600.0))
        ->capture_default_str();
    app.add_option("--ttl", into.ttl_seconds, "lease in seconds")
        ->check(CLI::Range(0.1, 86'400.0))
        ->capture_default_str();
    app.add_option("--master-timeout", into.master_timeout_ms, "the library's, in milliseconds")
        ->check(CLI::Range(1, 3'600'000))
        ->capture_default_str();
    app.add_option("--memory-locks", into.memory_locks, "locks and waiters that are counted")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    app.add_option(
           "--only", into.only, "run one side: floor, plain, guarded, fenced, scope or threads")
        ->check(
            CLI::IsMember({"floor", "plain", "guarded", "fenced", "pipeline", "scope", "threads"}));
    app.add_option(
        "--pairs",
        into.pairs,
        "run this number of pairs once, without warm-up, table or time limit: for profilers");
    app.add_option("--json", into.json_file, "write the results here; - is the standard output");
    auto* const html =
        app.add_option("--html", into.html_file, "write the results as a page; - as above");
    app.add_option(
           "--page", into.page_of, "measure nothing: make the page of these files of --json")
        ->needs(html);
}

// An option for the amount of one workload selects this workload alone.
void choose_workloads(arguments& into, bool in_flight_given) {
    if (into.workloads.empty()) {
        if (in_flight_given) {
            into.workloads.emplace_back("throughput");
        }
        if (!into.rates.empty()) {
            into.workloads.emplace_back("load");
        }
    }
    if (into.workloads.empty() || into.wants("all")) {
        into.workloads = workload_names;
        if (!into.rates.empty()) {
            into.workloads.emplace_back("load");
        }
    }
}

std::chrono::milliseconds milliseconds(double seconds) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

} // namespace

bool arguments::wants(std::string_view workload) const {
    return std::find(workloads.begin(), workloads.end(), workload) != workloads.end();
}

std::optional<int> parse_arguments(int argc, char** argv, arguments& into) {
    CLI::App app{"Measures a quorum of Redis masters: redlock next to bare sockets."};
    add_options(app, into);
    try {
        app.parse(argc, argv);
        if (into.pairs > 0 && (into.only.empty() || into.in_flight.size() != 1)) {
            throw CLI::ValidationError("--pairs", "needs --only and one value of --in-flight");
        }
        if (into.wants("load") && into.rates.empty()) {
            throw CLI::ValidationError("--workload", "load needs --rate");
        }
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    choose_workloads(into, app.count("--in-flight") > 0);
    if (into.full && app.count("--rounds") == 0) {
        into.rounds = full_rounds;
    }
    if (into.full && app.count("--seconds-per-round") == 0) {
        into.seconds_per_round = full_seconds_per_round;
    }
    return std::nullopt;
}

side side_named(std::string_view name) {
    auto who = side::floor;
    while (who != side::threads && name != to_string(who)) {
        who = static_cast<side>(static_cast<int>(who) + 1);
    }
    return who;
}

plan make_plan(const arguments& asked) {
    plan made;
    if (!asked.only.empty()) {
        made.sides = {side_named(asked.only)};
    }
    made.in_flight = asked.in_flight;
    made.rates = asked.rates;
    made.hold = std::chrono::milliseconds(asked.hold_ms);
    made.waiters = asked.waiters;
    made.rounds = asked.rounds;
    made.duration = milliseconds(asked.seconds_per_round);
    made.fairness_duration = std::max(
        made.duration, milliseconds(asked.full ? full_fairness_seconds : fairness_seconds_min));
    made.ttl = milliseconds(asked.ttl_seconds);
    made.master_timeout = std::chrono::milliseconds(asked.master_timeout_ms);
    made.memory_locks = asked.memory_locks;
    return made;
}

} // namespace bench
