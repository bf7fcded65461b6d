// quorum_bench: measures the cost of acquiring and releasing a lock on a quorum, compared with the
// floor, the commands of the plain protocol over bare sockets. Also measures what the guarded
// protocol and fencing tokens add, many waiters for one lock, and masters that fail. Starts its own
// masters, or uses given ones.
#include "arguments.hpp"
#include "comparison.hpp"
#include "faults.hpp"
#include "handoff.hpp"
#include "handoff_worker.hpp"
#include "machine.hpp"
#include "masters.hpp"
#include "memory.hpp"
#include "page.hpp"
#include "sizing.hpp"
#include "targets.hpp"
#include "text.hpp"
#include "worker_process.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

// The sizes of quorums that the latency is measured on.
constexpr std::array<std::size_t, 4> quorum_sizes{1, 3, 5, 7};

struct workload {
    std::string_view name;
    void (*run)(const bench::plan&, bench::report&);
};
constexpr std::array workloads{
    workload{"latency", bench::run_latency},
    workload{"throughput", bench::run_throughput},
    workload{"handoff", bench::run_handoff},
    workload{"faults", bench::run_faults},
    workload{"memory", bench::run_memory},
    workload{"load", bench::run_load},
};

// For callgrind: nothing but pairs, so that two runs differ by pairs alone.
int run_pairs(const bench::arguments& asked, const bench::plan& what) {
    auto work = what.make_load(bench::side_named(asked.only), asked.in_flight.front());
    work.pairs_max = asked.pairs;
    work.duration = work.warm_up = std::chrono::milliseconds::zero();
    const auto outcome = bench::run_side(what.masters, work);
    const auto wrong = outcome.failures + outcome.unanswered + outcome.keys_left;
    fmt::print("{} pairs, {} failures {}\n", outcome.pairs, wrong, outcome.first_failure);
    return outcome.pairs == asked.pairs && wrong == 0 ? 0 : 1;
}

// The progress, on a line that the next one overwrites. Nothing if the output is not a terminal.
void show_progress(std::string_view text) {
    if (::isatty(STDERR_FILENO) != 0) {
        fmt::print(stderr, "\r\033[K{}", text);
        std::fflush(stderr);
    }
}

void write_json(const std::string& file, const bench::report& measured) {
    const auto text = bench::to_json(measured).dump(2) + '\n';
    if (file == "-") {
        fmt::print("{}", text);
        return;
    }
    std::ofstream out(file);
    if (!(out << text).flush()) {
        throw std::runtime_error(fmt::format("cannot write {}", file));
    }
}

// The masters of the plan: the user's, or new ones.
void choose_masters(
    const bench::arguments& asked, bench::plan& what, std::optional<bench::masters>& started) {
    std::vector<bench::address> all;
    for (const auto& text : asked.masters) {
        all.push_back(bench::parse_address(text));
    }
    if (!all.empty()) {
        what.masters = all;
        what.quorums = {all};
        return;
    }
    // Each quorum has its own masters, because a master belongs to one quorum.
    std::vector<std::size_t> others;
    if (asked.wants("latency")) {
        const auto largest = asked.pairs == 0 ? quorum_sizes.back() : asked.start;
        std::ranges::copy_if(quorum_sizes, std::back_inserter(others), [&](std::size_t size) {
            return size <= std::max(largest, asked.start) && size != asked.start;
        });
    }
    all = started.emplace(std::reduce(others.begin(), others.end(), asked.start), asked.server)
              .addresses();
    auto next = all.begin();
    const auto take = [&next](std::size_t size) {
        const auto from = std::exchange(next, next + static_cast<std::ptrdiff_t>(size));
        std::vector<bench::address> own(from, next);
        for (std::size_t i = 0; i < own.size(); ++i) {
            own[i].name = fmt::format("m{}", i); // kept by a port that refuses in its place
        }
        return own;
    };
    what.own = &*started;
    what.masters = take(asked.start);
    what.quorums.push_back(what.masters);
    for (const auto size : others) {
        what.quorums.push_back(take(size));
    }
    std::ranges::sort(what.quorums, {}, &std::vector<bench::address>::size);
}

bench::report new_report(const bench::arguments& asked, const bench::plan& what) {
    bench::report made;
    made.here = bench::describe_machine(what.masters);
    made.asked = {
        what.masters.size(),
        what.rounds,
        what.duration.count(),
        what.fairness_duration.count(),
        what.ttl.count(),
        what.master_timeout.count(),
        asked.workloads};
    made.quick = !asked.full;
    return made;
}

int run(const bench::arguments& asked) {
    std::optional<bench::masters> started;
    auto what = bench::make_plan(asked);
    what.progress = show_progress;
    choose_masters(asked, what, started);
    if (asked.pairs > 0) {
        return run_pairs(asked, what);
    }
    auto measured = new_report(asked, what);
    // The tables leave the standard output to the JSON or the page when both want it.
    const bool taken = asked.json_file == "-" || asked.html_file == "-";
    std::FILE* const text = taken ? stderr : stdout;
    fmt::print(text, "{}", bench::heading_text(measured));
    for (const auto& [name, run_workload] : workloads) {
        if (!asked.wants(name)) {
            continue;
        }
        const auto before = measured.tables.size();
        run_workload(what, measured);
        show_progress("");
        for (auto i = before; i < measured.tables.size(); ++i) {
            fmt::print(text, "{}", bench::table_text(measured.tables[i]));
        }
        std::fflush(text);
    }
    bench::add_targets(measured);
    fmt::print(text, "{}", bench::targets_text(measured));
    if (!asked.json_file.empty()) {
        write_json(asked.json_file, measured);
    }
    if (!asked.html_file.empty()) {
        bench::write_page(asked.html_file, bench::to_json(measured));
    }
    return measured.failures.empty() ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view(argv[1]) == bench::worker_option
        && std::string_view(argv[2]) == bench::handoff_worker_name) {
        return bench::run_handoff_worker();
    }
    bench::arguments asked;
    if (const auto exit_code = bench::parse_arguments(argc, argv, asked)) {
        return *exit_code;
    }
    try {
        if (!asked.page_of.empty()) {
            bench::write_page(asked.html_file, bench::read_reports(asked.page_of));
            return 0;
        }
        return run(asked);
    } catch (const std::exception& error) {
        show_progress("");
        fmt::print(stderr, "quorum_bench: {}\n", error.what());
        return 2;
    }
}
