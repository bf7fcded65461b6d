// Arithmetic, table and JSON of the report.
#include "report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>
#include <utility>

namespace bench {
namespace {

constexpr std::array all_metrics{
    metric::acquire_p50_us,
    metric::acquire_p99_us,
    metric::pairs_per_second,
    metric::client_cpu_us_per_pair,
    metric::server_cpu_us_per_pair,
    metric::bytes_in_per_pair,
    metric::reads_per_pair,
};

// Beyond this the two sides did not send the same bytes.
constexpr double bytes_tolerance = 0.02;

constexpr std::string_view method =
    "Rounds of the sides alternate on the same masters, each on new connections "
    "after an unmeasured warm-up. K loops run at once, each acquires and releases a resource of "
    "its own without pause; one thread, plain callbacks, no renewal. The latency of an acquire is "
    "counted from just before it is started until just after the vote that decides it (the "
    "library: inside its handler). The floor sends the same commands over bare non-blocking epoll "
    "sockets, "
    "formatted beforehand, all that are due in one turn in one write per master, and waits for "
    "the same majorities; it checks every reply. A figure is the median of the rounds' values, "
    "with the smallest and the largest. A ratio is the median of one side / another, taken round "
    "by round: the plain protocol to the floor, the guarded one and fencing tokens to the plain "
    "one. CPU is user plus system time; that of the servers, like bytes and reads, comes from "
    "INFO and is the sum over all masters. The masters and the client share the machine unless "
    "the masters were given.";

const std::vector<double> no_values;

std::string cell(const spread& value, int digits) {
    if (std::isnan(value.median)) {
        return "-";
    }
    return fmt::format(
        "{:.{}f} ({:.{}f}..{:.{}f})", value.median, digits, value.min, digits, value.max, digits);
}

std::string
row(std::string_view label, std::size_t in_flight, const std::array<std::string, 5>& c) {
    return fmt::format(
        "{:>5}  {:<15} {:>22} {:>22} {:>24} {:>18} {:>18}\n",
        in_flight,
        label,
        c[0],
        c[1],
        c[2],
        c[3],
        c[4]);
}

// Which side is compared with which.
struct pairing {
    side one;
    side other;

    std::string name() const { return fmt::format("{}/{}", to_string(one), to_string(other)); }
    bool measured_in(const comparison& all) const {
        return all.of(one).rounds() > 0 && all.of(other).rounds() > 0;
    }
    spread ratio(const comparison& all, metric which) const {
        return ratio_of(all.of(one).values(which), all.of(other).values(which));
    }
};
constexpr std::array pairings{
    pairing{side::plain, side::floor},
    pairing{side::guarded, side::plain},
    pairing{side::fenced, side::plain},
};

std::string side_row(std::string_view label, std::size_t in_flight, const series& side) {
    const auto value = [&side](metric which) { return spread_of(side.values(which)); };
    return row(
        label,
        in_flight,
        {cell(value(metric::acquire_p50_us), 1),
         cell(value(metric::acquire_p99_us), 1),
         cell(value(metric::pairs_per_second), 0),
         cell(value(metric::client_cpu_us_per_pair), 1),
         cell(value(metric::server_cpu_us_per_pair), 1)});
}

nlohmann::json to_json(const spread& value) {
    return {{"median", value.median}, {"min", value.min}, {"max", value.max}};
}

nlohmann::json to_json(const series& side) {
    nlohmann::json out{
        {"pairs", side.pairs()},
        {"failures", side.failures()},
        {"release_command", side.release_command()},
        {"raised", side.raised()},
    };
    if (!side.first_failure().empty()) {
        out["first_failure"] = side.first_failure();
    }
    for (const auto which : all_metrics) {
        auto& entry = out[std::string(to_string(which))];
        entry = to_json(spread_of(side.values(which)));
        entry["rounds"] = side.values(which);
    }
    return out;
}

} // namespace

std::string_view to_string(metric which) noexcept {
    switch (which) {
    case metric::acquire_p50_us:
        return "acquire_p50_us";
    case metric::acquire_p99_us:
        return "acquire_p99_us";
    case metric::pairs_per_second:
        return "pairs_per_second";
    case metric::client_cpu_us_per_pair:
        return "client_cpu_us_per_pair";
    case metric::server_cpu_us_per_pair:
        return "server_cpu_us_per_pair";
    case metric::bytes_in_per_pair:
        return "bytes_in_per_pair";
    case metric::reads_per_pair:
        return "reads_per_pair";
    }
    return "";
}

void series::add(result&& round) {
    const auto pairs = static_cast<double>(round.pairs);
    const auto microseconds = [](auto duration) {
        return std::chrono::duration<double, std::micro>(duration).count();
    };
    values_[metric::acquire_p50_us].push_back(percentile(round.acquire_ns, 0.50) / 1e3);
    values_[metric::acquire_p99_us].push_back(percentile(round.acquire_ns, 0.99) / 1e3);
    values_[metric::pairs_per_second].push_back(pairs * 1e6 / microseconds(round.elapsed));
    values_[metric::client_cpu_us_per_pair].push_back(microseconds(round.cpu) / pairs);
    values_[metric::server_cpu_us_per_pair].push_back(microseconds(round.servers.cpu) / pairs);
    values_[metric::bytes_in_per_pair].push_back(
        static_cast<double>(round.servers.bytes_in) / pairs);
    values_[metric::reads_per_pair].push_back(static_cast<double>(round.servers.reads) / pairs);
    ++rounds_;
    pairs_ += round.pairs;
    failures_ += round.failures + round.unanswered + round.keys_left;
    raised_ += round.raised;
    release_command_ = std::move(round.release_command);
    if (first_failure_.empty()) {
        first_failure_ = std::move(round.first_failure);
        if (first_failure_.empty() && round.unanswered > 0) {
            first_failure_ = fmt::format("{} commands were never answered", round.unanswered);
        } else if (first_failure_.empty() && round.keys_left > 0) {
            first_failure_ = fmt::format("{} lock keys were left behind", round.keys_left);
        }
    }
}

const std::vector<double>& series::values(metric which) const {
    const auto found = values_.find(which);
    return found == values_.end() ? no_values : found->second;
}

std::string table_head(const machine& here, const settings& asked) {
    std::string out = fmt::format(
        "{} masters ({}), {} cores ({}), {}, {}, build {}{}\n"
        "median (min..max) of {} rounds of {} ms; ttl {} ms\n\n",
        asked.masters,
        here.servers.empty() ? "?" : here.servers.front(),
        here.cores,
        here.cpu,
        here.kernel,
        here.compiler,
        here.build_type,
        here.assertions ? " with assertions" : "",
        asked.rounds,
        asked.work.duration.count(),
        asked.work.ttl.count());
    out += fmt::format(
        "{:>5}  {:<15} {:>22} {:>22} {:>24} {:>18} {:>18}\n",
        "K",
        "",
        "acquire p50, us",
        "acquire p99, us",
        "pairs/s",
        "client us/pair",
        "servers us/pair");
    return out;
}

std::string table_rows(const comparison& measured) {
    std::string out;
    for (const auto who : all_sides) {
        if (measured.of(who).rounds() > 0) {
            out += side_row(to_string(who), measured.in_flight, measured.of(who));
        }
    }
    for (const auto& pair : pairings) {
        if (pair.measured_in(measured)) {
            const auto ratio = [&](metric which) { return cell(pair.ratio(measured, which), 2); };
            out +=
                row(pair.name(),
                    measured.in_flight,
                    {ratio(metric::acquire_p50_us),
                     ratio(metric::acquire_p99_us),
                     ratio(metric::pairs_per_second),
                     ratio(metric::client_cpu_us_per_pair),
                     ratio(metric::server_cpu_us_per_pair)});
        }
    }
    for (const auto who : all_sides) {
        const auto& side = measured.of(who);
        if (side.failures() > 0) {
            out += fmt::format(
                "       {}: {} FAILURES, the first: {}\n",
                to_string(who),
                side.failures(),
                side.first_failure());
        }
        if (side.raised() > 0) {
            out += fmt::format(
                "       {}: {} of {} acquires needed a second round trip\n",
                to_string(who),
                side.raised(),
                side.pairs());
        }
    }
    for (const auto& doubt : doubts(measured)) {
        out += fmt::format("       note: {}\n", doubt);
    }
    return out;
}

std::vector<std::string> doubts(const comparison& measured) {
    std::vector<std::string> found;
    const pairing& equals = pairings.front();
    if (!equals.measured_in(measured)) {
        return found;
    }
    const auto bytes = equals.ratio(measured, metric::bytes_in_per_pair);
    if (!(std::abs(bytes.median - 1) <= bytes_tolerance)) {
        found.push_back(
            fmt::format("plain sent {:.3f} times the floor's bytes per pair", bytes.median));
    }
    const auto& floor = measured.of(side::floor);
    const auto& plain = measured.of(side::plain);
    if (floor.release_command() != plain.release_command()) {
        found.push_back(fmt::format(
            "the floor releases with {}, plain with {}",
            floor.release_command(),
            plain.release_command()));
    }
    return found;
}

nlohmann::json
to_json(const machine& here, const settings& asked, const std::vector<comparison>& measured) {
    nlohmann::json out{
        {"when", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))},
        {"method", method},
        {"machine",
         {{"cores", here.cores},
          {"cpu", here.cpu},
          {"kernel", here.kernel},
          {"compiler", here.compiler},
          {"build_type", here.build_type},
          {"assertions", here.assertions},
          {"servers", here.servers}}},
        {"settings",
         {{"masters", asked.masters},
          {"rounds", asked.rounds},
          {"round_ms", asked.work.duration.count()},
          {"pairs_per_round_max", asked.work.pairs_max},
          {"warm_up_ms", asked.work.warm_up.count()},
          {"ttl_ms", asked.work.ttl.count()}}},
    };
    auto& results = out["results"] = nlohmann::json::array();
    for (const auto& one : measured) {
        nlohmann::json entry{{"in_flight", one.in_flight}};
        for (const auto who : all_sides) {
            if (one.of(who).rounds() > 0) {
                entry[std::string(to_string(who))] = to_json(one.of(who));
            }
        }
        for (const auto& pair : pairings) {
            if (pair.measured_in(one)) {
                for (const auto which : all_metrics) {
                    entry["ratios"][pair.name()][std::string(to_string(which))] =
                        to_json(pair.ratio(one, which));
                }
            }
        }
        entry["doubts"] = doubts(one);
        results.push_back(std::move(entry));
    }
    return out;
}

} // namespace bench
