// sharded_bench: the same load on one quorum and on several. Where the machine has no cores to
// spare, pairs per second cannot grow; what grows then is what the masters could bear, since the
// share of the busiest one in a pair falls.
#include "masters.hpp"
#include "sharded_load.hpp"
#include "statistics.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace {

struct arguments {
    std::vector<std::size_t> quorums{1, 2, 4};
    std::size_t masters = 3;
    std::string server = "redis-server";
    std::string protocol = "guarded";
    std::size_t in_flight = 256; // even shares for the quorums need many
    std::size_t rounds = 5;
    double seconds_per_round = 1;
};

// What each round gave for one number of quorums.
struct series {
    std::size_t quorums = 0;
    std::vector<double> pairs_per_second;
    std::vector<double> client_us;
    std::vector<double> servers_us;
    std::vector<double> busiest_us;
    std::vector<double> busiest_commands;
    std::vector<double> cores;
    std::uint64_t failures = 0;
    std::string first_failure;

    void add(const bench::sharded_result& round) {
        using us = std::chrono::duration<double, std::micro>;
        const auto pairs = static_cast<double>(std::max<std::uint64_t>(round.pairs, 1));
        const us elapsed = round.elapsed;
        const us client = round.cpu;
        const us servers = round.servers_cpu;
        const us busiest = round.busiest_cpu;
        pairs_per_second.push_back(static_cast<double>(round.pairs) / elapsed.count() * 1e6);
        client_us.push_back(client / us(pairs));
        servers_us.push_back(servers / us(pairs));
        busiest_us.push_back(busiest / us(pairs));
        busiest_commands.push_back(static_cast<double>(round.busiest_commands) / pairs);
        cores.push_back((client + servers) / elapsed);
        failures += round.failures;
        if (first_failure.empty()) {
            first_failure = round.first_failure;
        }
    }
};

std::string text(const std::vector<double>& values, int digits) {
    const auto found = bench::spread_of(values);
    return fmt::format(
        "{:.{}f} ({:.{}f} to {:.{}f})", found.median, digits, found.min, digits, found.max, digits);
}

void print(const std::vector<series>& all) {
    fmt::print(
        "| quorums | pairs/s | to {} | client, us | servers, us | busiest master, us | its "
        "commands "
        "| cores used |\n|---|---|---|---|---|---|---|---|\n",
        all.front().quorums);
    for (const auto& one : all) {
        const auto to_first = bench::ratio_of(one.pairs_per_second, all.front().pairs_per_second);
        fmt::print(
            "| {} | {} | {:.2f} | {} | {} | {} | {} | {} |\n",
            one.quorums,
            text(one.pairs_per_second, 0),
            to_first.median,
            text(one.client_us, 1),
            text(one.servers_us, 1),
            text(one.busiest_us, 1),
            text(one.busiest_commands, 2),
            text(one.cores, 2));
    }
}

int run(const arguments& asked) {
    const auto most = *std::max_element(asked.quorums.begin(), asked.quorums.end());
    const bench::masters servers(most * asked.masters, asked.server);
    bench::load work;
    work.who = asked.protocol == "plain" ? bench::side::plain : bench::side::guarded;
    work.in_flight = asked.in_flight;
    work.duration =
        std::chrono::milliseconds(static_cast<std::int64_t>(asked.seconds_per_round * 1e3));
    std::vector<series> all;
    for (const auto count : asked.quorums) {
        all.emplace_back().quorums = count;
    }
    for (std::size_t round = 0; round < asked.rounds; ++round) {
        for (auto& one : all) {
            std::vector<std::vector<bench::address>> quorums(one.quorums);
            for (std::size_t i = 0; i < one.quorums * asked.masters; ++i) {
                quorums[i / asked.masters].push_back(servers.addresses()[i]);
            }
            one.add(bench::run_sharded(quorums, work));
        }
    }
    fmt::print(
        "{} masters in each quorum, {} protocol, {} locks in flight; medians (minimum to maximum) "
        "of {} rounds of {} s; us and commands per pair\n\n",
        asked.masters,
        asked.protocol,
        asked.in_flight,
        asked.rounds,
        asked.seconds_per_round);
    print(all);
    int status = 0;
    for (const auto& one : all) {
        if (one.failures > 0) {
            fmt::print(
                "{} quorums: {} FAILURES: {}\n", one.quorums, one.failures, one.first_failure);
            status = 1;
        }
    }
    return status;
}

} // namespace

int main(int argc, char** argv) {
    arguments asked;
    CLI::App app{"Measures the same load on one quorum and on several."};
    app.add_option("--quorums", asked.quorums, "numbers of quorums, one run for each")
        ->delimiter(',')
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    app.add_option("--masters", asked.masters, "masters in each quorum")
        ->check(CLI::Range(1, 32))
        ->capture_default_str();
    app.add_option("--server", asked.server, "the program that is started")->capture_default_str();
    app.add_option("--protocol", asked.protocol, "plain or guarded")
        ->check(CLI::IsMember({"plain", "guarded"}))
        ->capture_default_str();
    app.add_option("--in-flight", asked.in_flight, "locks in flight, over all quorums")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    app.add_option("--rounds", asked.rounds, "rounds of each, interleaved")
        ->check(CLI::Range(1, 1'000))
        ->capture_default_str();
    app.add_option("--seconds-per-round", asked.seconds_per_round, "length of a round")
        ->check(CLI::Range(0.01, 3'600.0))
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        return run(asked);
    } catch (const std::exception& error) {
        fmt::print(stderr, "sharded_bench: {}\n", error.what());
        return 2;
    }
}
