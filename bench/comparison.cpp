// Rounds of the sides in turn, and the ratios between them.
#include "comparison.hpp"

#include "floor.hpp"
#include "pipeline.hpp"
#include "redlock_load.hpp"
#include "thread_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

namespace bench {
namespace {

using namespace std::chrono_literals;

// Which side is compared with which.
struct pairing {
    side one;
    side other;
};
constexpr std::array pairings{
    pairing{side::plain, side::floor},
    pairing{side::guarded, side::plain},
    pairing{side::fenced, side::plain},
    pairing{side::scope, side::guarded},
    pairing{side::threads, side::guarded},
};

// With thousands of locks in flight the replies queue for longer than the time-out that detects a
// hung master.
constexpr auto patience = 2s;

// Nobody starts more threads than that for locks.
constexpr std::size_t threads_max = 64;

// Beyond this the floor and the plain protocol did not send the same bytes.
constexpr double bytes_tolerance = 0.02;

const std::vector<column> columns{
    {"acquire_p50_us", "acquire p50, us", 1},
    {"acquire_p99_us", "acquire p99, us", 1},
    {"pairs_per_second", "pairs/s", 0},
    {"client_cpu_us_per_pair", "client us/pair", 1},
    {"server_cpu_us_per_pair", "servers us/pair", 1},
};

void add(row& into, result& round) {
    const auto pairs = static_cast<double>(round.pairs);
    const auto microseconds = [](auto duration) {
        return std::chrono::duration<double, std::micro>(duration).count();
    };
    into.add("acquire_p50_us", percentile(round.acquire_ns, 0.50) / 1e3);
    into.add("acquire_p99_us", percentile(round.acquire_ns, 0.99) / 1e3);
    into.add("pairs_per_second", pairs * 1e6 / microseconds(round.elapsed));
    into.add("client_cpu_us_per_pair", microseconds(round.cpu) / pairs);
    into.add("server_cpu_us_per_pair", microseconds(round.servers.cpu) / pairs);
    into.add("bytes_in_per_pair", static_cast<double>(round.servers.bytes_in) / pairs);
    into.add("reads_per_pair", static_cast<double>(round.servers.reads) / pairs);
    into.add("raised_share", static_cast<double>(round.raised) / pairs);
}

void compare(table& into, std::int64_t place) {
    const auto place_of = [place](side who) {
        return coordinates{place, std::string(to_string(who))};
    };
    for (const auto& pair : pairings) {
        const auto* const other = into.find(place_of(pair.other));
        if (other == nullptr || into.find(place_of(pair.one)) == nullptr) {
            continue;
        }
        auto& one = into.at(place_of(pair.one));
        for (const auto& [metric, values] : one.metrics()) {
            if (metric != "raised_share") {
                one.compare(metric, *other, to_string(pair.other));
            }
        }
    }
}

// The floor is one only if it does the same work.
void check_floor(table& into, std::int64_t place) {
    const auto* const plain = into.find({place, std::string("plain")});
    const auto* const bytes = plain == nullptr ? nullptr : plain->ratio_of("bytes_in_per_pair");
    if (bytes != nullptr && !(std::abs(bytes->value.median - 1) <= bytes_tolerance)) {
        into.note += fmt::format(
            " At {} = {} the plain protocol sent {:.3f} times the floor's bytes per pair.",
            into.axes.front(),
            place,
            bytes->value.median);
    }
}

void run_sides(
    const plan& asked,
    const std::vector<address>& masters,
    const std::vector<side>& sides,
    std::size_t in_flight,
    std::int64_t place,
    table& into,
    report& all) {
    for (std::size_t round = 1; round <= asked.rounds; ++round) {
        for (const auto who : sides) {
            const auto where =
                fmt::format("{}, {} = {}, {}", into.id, into.axes.front(), place, to_string(who));
            asked.progress(fmt::format("{}, round {} of {}", where, round, asked.rounds));
            auto work = asked.make_load(who, in_flight);
            if (in_flight > 1) {
                work.master_timeout =
                    std::max<std::chrono::milliseconds>(work.master_timeout, patience);
            }
            auto found = run_side(masters, work);
            note_failure(all, where, found);
            add(into.at({place, std::string(to_string(who))}), found);
        }
    }
    compare(into, place);
    check_floor(into, place);
}

} // namespace

result run_side(const std::vector<address>& masters, const load& work) {
    switch (work.who) {
    case side::floor:
        return run_floor(masters, work);
    case side::pipeline:
        return run_pipeline(masters, work);
    case side::threads:
        return run_threads(masters, work);
    default:
        return run_redlock(masters, work);
    }
}

void run_latency(const plan& asked, report& into) {
    auto& made = into.tables.emplace_back(table{
        "latency",
        "Latency: one lock at a time, N masters",
        "One loop acquires and releases a resource that nobody else wants. An acquire is "
        "counted from just before it is started until just after the vote that decides it (the "
        "library: inside its handler). The floor sends the same commands as the plain protocol "
        "over bare non-blocking epoll sockets.",
        {"N", "side"},
        columns,
        {}});
    for (const auto& quorum : asked.quorums) {
        run_sides(
            asked, quorum, asked.sides, 1, static_cast<std::int64_t>(quorum.size()), made, into);
    }
}

void run_throughput(const plan& asked, report& into) {
    auto& made = into.tables.emplace_back(table{
        "throughput",
        "Throughput: K locks in flight",
        "K loops in one thread, each acquires and releases a resource of its own without "
        "pause. The floor writes all commands that are due in one turn in one call per master, "
        "and waits for the same majorities. The pipeline waits for no majority: it is what "
        "these servers can do. Scope and threads are the guarded protocol through "
        "async_with_lock, and through a blocking mutex in each of K threads. The library waits for "
        "a master for 2 s at least (K > 1): answers "
        "queue. CPU is user plus system time; that of the servers, like bytes "
        "and reads, comes from INFO and is the sum over all masters.",
        {"K", "side"},
        columns,
        {}});
    auto sides = asked.sides;
    if (asked.has(side::floor) && !asked.has(side::pipeline)) {
        sides.push_back(side::pipeline);
    }
    for (const auto in_flight : asked.in_flight) {
        auto here = sides;
        if (asked.has(side::guarded) && in_flight <= threads_max) {
            here.insert(here.end(), {side::scope, side::threads});
        }
        run_sides(
            asked,
            asked.masters,
            here,
            in_flight,
            static_cast<std::int64_t>(in_flight),
            made,
            into);
    }
}

} // namespace bench
