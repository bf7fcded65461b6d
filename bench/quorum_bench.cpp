// quorum_bench: what acquiring and releasing a lock on a quorum costs, beside the floor, which is
// the commands of the plain protocol over bare sockets, and what the guarded protocol and fencing
// tokens add. Starts its own masters, or takes those it is given.
#include "floor.hpp"
#include "machine.hpp"
#include "masters.hpp"
#include "redlock_load.hpp"
#include "report.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct arguments {
    std::vector<std::string> masters;
    std::size_t start = 5;
    std::string server = "redis-server";
    std::vector<std::size_t> in_flight{1, 64};
    std::size_t rounds = 5;
    double seconds_per_round = 1;
    double ttl_seconds = 10;
    std::size_t pairs = 0;
    std::string only;
    std::string json_file;
};

// The options, or the program's exit code when it has nothing more to do.
std::optional<int> parse(int argc, char** argv, arguments& into) {
    CLI::App app{"Measures a quorum of Redis masters: redlock beside bare sockets."};
    auto* const given =
        app.add_option(
               "--masters", into.masters, "use these, host:port or redis://host:port, not new ones")
            ->delimiter(',');
    app.add_option("--start", into.start, "start so many masters on this machine")
        ->check(CLI::Range(1, 32))
        ->capture_default_str()
        ->excludes(given);
    app.add_option("--server", into.server, "the program that is started")->capture_default_str();
    app.add_option("--in-flight", into.in_flight, "locks in flight, one run for each")
        ->delimiter(',')
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    app.add_option("--rounds", into.rounds, "rounds of each side, interleaved")
        ->check(CLI::Range(1, 1'000))
        ->capture_default_str();
    app.add_option("--seconds-per-round", into.seconds_per_round, "length of a round")
        ->check(CLI::Range(0.01, 3'600.0))
        ->capture_default_str();
    app.add_option("--ttl", into.ttl_seconds, "lease in seconds")
        ->check(CLI::Range(0.1, 86'400.0))
        ->capture_default_str();
    app.add_option("--only", into.only, "run one side: floor, plain, guarded or fenced")
        ->check(CLI::IsMember({"floor", "plain", "guarded", "fenced"}));
    app.add_option(
        "--pairs",
        into.pairs,
        "run so many pairs once, without warm-up, table or time limit: for profilers");
    app.add_option("--json", into.json_file, "write the results here; - is the standard output");
    try {
        app.parse(argc, argv);
        if (into.pairs > 0 && (into.only.empty() || into.in_flight.size() != 1)) {
            throw CLI::ValidationError("--pairs", "needs --only and one value of --in-flight");
        }
    } catch (const CLI::ParseError& error) {
        return app.exit(error);
    }
    return std::nullopt;
}

bench::load make_load(const arguments& asked) {
    bench::load work;
    const auto milliseconds = [](double seconds) {
        return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
    };
    work.duration = milliseconds(asked.seconds_per_round);
    work.ttl = milliseconds(asked.ttl_seconds);
    work.warm_up = std::min(work.duration, work.warm_up);
    return work;
}

bench::side side_named(std::string_view name) {
    return *std::find_if(bench::all_sides.begin(), bench::all_sides.end(), [&](bench::side who) {
        return name == bench::to_string(who);
    });
}

bench::result
run_side(bench::side who, const std::vector<bench::address>& masters, bench::load work) {
    work.who = who;
    return who == bench::side::floor ? bench::run_floor(masters, work)
                                     : bench::run_redlock(masters, work);
}

// For callgrind: nothing but pairs, so that two runs differ by pairs alone.
int run_pairs(const arguments& asked, const std::vector<bench::address>& masters) {
    auto work = make_load(asked);
    work.in_flight = asked.in_flight.front();
    work.pairs_max = asked.pairs;
    work.duration = work.warm_up = std::chrono::milliseconds::zero();
    const auto outcome = run_side(side_named(asked.only), masters, work);
    const auto wrong = outcome.failures + outcome.unanswered + outcome.keys_left;
    fmt::print("{} pairs, {} failures {}\n", outcome.pairs, wrong, outcome.first_failure);
    return outcome.pairs == asked.pairs && wrong == 0 ? 0 : 1;
}

void show_progress(std::size_t in_flight, std::size_t round, std::size_t rounds) {
    if (::isatty(STDERR_FILENO) != 0) {
        fmt::print(stderr, "\rK = {}: round {} of {} \r", in_flight, round, rounds);
    }
}

bench::comparison
measure(const arguments& asked, const std::vector<bench::address>& masters, bench::load work) {
    bench::comparison measured;
    measured.in_flight = work.in_flight;
    for (std::size_t round = 1; round <= asked.rounds; ++round) {
        show_progress(work.in_flight, round, asked.rounds);
        for (const auto who : bench::all_sides) {
            if (asked.only.empty() || asked.only == bench::to_string(who)) {
                measured.of(who).add(run_side(who, masters, work));
            }
        }
    }
    return measured;
}

void write_json(const std::string& file, const nlohmann::json& report) {
    const auto text = report.dump(2) + '\n';
    if (file == "-") {
        fmt::print("{}", text);
        return;
    }
    std::ofstream out(file);
    if (!(out << text).flush()) {
        throw std::runtime_error(fmt::format("cannot write {}", file));
    }
}

int run(const arguments& asked) {
    std::optional<bench::masters> started;
    std::vector<bench::address> masters;
    for (const auto& text : asked.masters) {
        masters.push_back(bench::parse_address(text));
    }
    if (masters.empty()) {
        masters = started.emplace(asked.start, asked.server).addresses();
    }
    if (asked.pairs > 0) {
        return run_pairs(asked, masters);
    }
    const auto here = bench::describe_machine(masters);
    const bench::settings settings{masters.size(), asked.rounds, make_load(asked)};
    // The table leaves the standard output to the JSON when both want it.
    std::FILE* const table = asked.json_file == "-" ? stderr : stdout;
    fmt::print(table, "{}", bench::table_head(here, settings));
    std::vector<bench::comparison> all;
    std::uint64_t failures = 0;
    for (const auto in_flight : asked.in_flight) {
        auto work = settings.work;
        work.in_flight = in_flight;
        const auto& measured = all.emplace_back(measure(asked, masters, work));
        fmt::print(table, "{}", bench::table_rows(measured));
        std::fflush(table);
        for (const auto& side : measured.sides) {
            failures += side.failures();
        }
    }
    if (!asked.json_file.empty()) {
        write_json(asked.json_file, bench::to_json(here, settings, all));
    }
    return failures == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    arguments asked;
    if (const auto exit_code = parse(argc, argv, asked)) {
        return *exit_code;
    }
    try {
        return run(asked);
    } catch (const std::exception& error) {
        fmt::print(stderr, "quorum_bench: {}\n", error.what());
        return 2;
    }
}
