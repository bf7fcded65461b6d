#include "terms.hpp"

#include "config/invalid_value.hpp"
#include "exit_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cli {
namespace {

// With a shorter ttl, a command would be stopped before a renewal could arrive.
constexpr milliseconds command_ttl_min{50};

// Before the range without a command, which is wider.
void check_ttl(milliseconds ttl, milliseconds longest) {
    if (ttl >= command_ttl_min && ttl <= longest) {
        return;
    }
    const bool too_short = longest < command_ttl_min;
    throw failure(
        exit_code::configuration,
        fmt::format(
            "{} is {}; allowed with a command: {} to {}",
            too_short ? "--max-ttl" : "--ttl",
            duration_text(too_short ? longest : ttl),
            duration_text(command_ttl_min),
            too_short                         ? "1d"
            : longest == std::chrono::days(1) ? "the max_ttl of the quorum, at most 1d"
                                              : "--max-ttl, " + duration_text(longest)));
}

void check_margins(milliseconds ttl, milliseconds grace, milliseconds kill_margin) {
    // Renewal starts at a third of the ttl and needs time for retries.
    if (grace * 2 > ttl) {
        throw failure(
            exit_code::configuration,
            fmt::format(
                "--grace is {}; allowed: at most half of --ttl, {}",
                duration_text(grace),
                duration_text(ttl / 2)));
    }
    if (kill_margin > grace) {
        throw failure(
            exit_code::configuration,
            fmt::format(
                "--kill-margin is {}; allowed: at most --grace, {}",
                duration_text(kill_margin),
                duration_text(grace)));
    }
}

} // namespace

terms::terms(const run_options& options, const redlock::config& configuration) : options_(options) {
    const milliseconds ttl = ttl_of(options.lock.ttl, configuration);
    check_ttl(
        ttl, configuration.max_ttl.count() != 0 ? configuration.max_ttl : std::chrono::hours(24));
    wanted = options_of(options.lock, redlock::wait_for::forever(), configuration);
    wanted.max_hold = options.max_hold;
    wanted.mode = options.shared ? redlock::lock_mode::shared : redlock::lock_mode::exclusive;
    choose(ttl);
    check_margins(ttl, grace(), options.kill_margin);
    require(redlock::detail::check(wanted, configuration), exit_code::configuration);
    if (options.at_least > options.max_hold && options.max_hold.count() > 0) {
        throw failure(
            exit_code::configuration,
            fmt::format(
                "--at-least is {}; allowed: at most --max-hold, {}",
                duration_text(options.at_least),
                duration_text(options.max_hold)));
    }
}

void terms::choose(milliseconds ttl) {
    ttl_ = ttl;
    wanted.stop_margin =
        options_.grace.count() != 0 ? options_.grace : std::min(ttl / 4, milliseconds(2'000));
}

void terms::fit(milliseconds longest) {
    if (options_.lock.ttl == redlock::default_ttl && longest.count() != 0 && ttl_ > longest) {
        choose(longest);
    }
}

supervisor_rules terms::rules(std::vector<std::string> command) const {
    supervisor_rules out;
    out.command = std::move(command);
    out.grace = grace();
    // Time that a busy machine may need from the timer to the death of the last process.
    out.kill_margin = options_.kill_margin.count() != 0
                          ? options_.kill_margin
                          : std::clamp(ttl_ / 50, milliseconds(10), milliseconds(100));
    out.leave_daemons = options_.leave_daemons;
    return out;
}

} // namespace cli
