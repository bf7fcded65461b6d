#include "size.hpp"

#include "command_line.hpp"
#include "config/sizing.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "options.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cli {
namespace {

constexpr double year_s = 365.25 * 24 * 3'600;

struct size_wishes {
    double availability = 99.9; // per cent
    std::vector<std::size_t> masters{1, 2, 3, 4, 5, 7, 9};
    milliseconds ttl = redlock::default_ttl;
    milliseconds stop_margin = redlock::default_stop_margin;
};

// Rounded to a useful unit: nobody needs the seconds of a month.
std::string roughly(double seconds) {
    if (seconds < 0.001) {
        return seconds > 0 ? "under 1ms" : "never";
    }
    const double unit = seconds >= 86'400  ? 3'600
                        : seconds >= 3'600 ? 60
                        : seconds >= 1     ? 1
                                           : 0.001;
    return duration_text(milliseconds(std::llround(std::round(seconds / unit) * unit * 1'000)));
}

std::string whole(redlock::detail::lease_times::duration time) {
    return duration_text(std::chrono::round<milliseconds>(time));
}

json json_of_times(const redlock::detail::lease_times& times) {
    const auto ms = [](redlock::detail::lease_times::duration time) {
        return std::chrono::duration<double, std::milli>(time).count();
    };
    return {
        {"drift_ms", ms(times.drift)},
        {"validity_ms", ms(times.validity)},
        {"held_ms", ms(times.held)},
        {"renewal_earliest_ms", ms(times.renewal_earliest)},
        {"renewal_latest_ms", ms(times.renewal_latest)},
        {"outage_survived_ms", ms(times.outage_survived)},
        {"crash_shortest_ms", ms(times.crash_shortest)},
        {"crash_longest_ms", ms(times.crash_longest)},
        {"quarantine_ms", ms(times.quarantine)},
    };
}

std::string text_of_times(const redlock::detail::lease_times& times, const size_wishes& wanted) {
    const std::pair<std::string, std::string> lines[] = {
        {"held for " + whole(times.held),
         fmt::format(
             "the ttl minus {} for clocks and {} to stop",
             whole(times.drift),
             whole(times.validity - times.held))},
        {"renewed after " + whole(times.renewal_earliest) + " to " + whole(times.renewal_latest),
         "while it is held"},
        {"survives " + whole(times.outage_survived), "without a majority; then it is lost"},
        {"free after " + whole(times.crash_shortest) + " to " + whole(times.crash_longest),
         "after its holder died, plus the retry delay of a waiter"},
        {"quarantine " + whole(times.quarantine), "of a master that restarted"},
    };
    std::string out = fmt::format("A lock of ttl {}\n", duration_text(wanted.ttl));
    for (const auto& [value, meaning] : lines) {
        fmt::format_to(std::back_inserter(out), "  {:<36}{}\n", value, meaning);
    }
    return out;
}

int size(size_wishes wanted, const settings& common) {
    settings given = common;
    if (given.masters.empty()) {
        given.masters = {"redis://localhost"}; // which ones they are makes no difference
    }
    const redlock::config known = config_of(given);
    wanted.ttl = ttl_of(wanted.ttl, known);
    redlock::acquire_options options;
    options.ttl = wanted.ttl;
    options.stop_margin = wanted.stop_margin;
    require(redlock::detail::check(options, known), exit_code::configuration);
    const redlock::detail::lease_times times = redlock::detail::times_of(known, options);
    const double down = (100 - wanted.availability) / 100;

    json quorums = json::array();
    std::string table = fmt::format(
        "Masters that are each up {:g} % of the time and fail independently\n"
        "  {:>7}  {:>5}  {:>10}  {:>13}  {}\n",
        wanted.availability,
        "masters",
        "votes",
        "may fail",
        "no majority",
        "in a year");
    for (const std::size_t masters : wanted.masters) {
        const std::size_t votes = redlock::detail::votes_needed(masters);
        const double share = redlock::detail::quorum_downtime(masters, down);
        quorums.push_back(
            {{"masters", masters},
             {"votes_needed", votes},
             {"may_be_down", masters - votes},
             {"downtime", share},
             {"downtime_seconds_a_year", share * year_s}});
        fmt::format_to(
            std::back_inserter(table),
            "  {:>7}  {:>5}  {:>10}  {:>11.3g} %  {}\n",
            masters,
            votes,
            masters - votes,
            share * 100,
            roughly(share * year_s));
    }
    if (common.json) {
        print({{"quorums", quorums}, {"lease", json_of_times(times)}});
    } else {
        fmt::print("{}\n{}", table, text_of_times(times, wanted));
    }
    return 0;
}

} // namespace

void add_size(command_line& to) {
    const auto wanted = std::make_shared<size_wishes>();
    CLI::App& app = to.add(
        "size",
        "Compute how many masters are needed, and the times that follow from a ttl",
        "  redlock size --availability 99.5\n"
        "  redlock size --ttl 5s --grace 1s --max-ttl 10s\n"
        "  redlock size --json | jq .lease\n\n"
        "Does not connect to any master. The figures are explained in docs/operations/sizing.md.");
    app.add_option("--availability", wanted->availability, "Availability of one master")
        ->check(number_between(0, 100))
        ->type_name("PERCENT")
        ->capture_default_str();
    app.add_option("--count", wanted->masters, "Numbers of masters, separated by commas")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(whole_number(1, 32))
        ->type_name("N,...")
        ->default_str("1,2,3,4,5,7,9");
    add_ttl(app, wanted->ttl, "Duration of the lease");
    add_duration(app, "--grace", wanted->stop_margin, "Time that your work needs to stop")
        ->default_str("a tenth of the ttl, at most 1s");
    to.when(app, [wanted, &to] { return size(*wanted, to.common); });
}

} // namespace cli
