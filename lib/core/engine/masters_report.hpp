// The state of the engine as text and figures: votes, metrics, health, and the lines of the log
// about masters.

#pragma once

#include "tools.hpp"

#include <redlock/diagnostics.hpp>

#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

namespace redlock::core {

/// Describes votes as text.
std::vector<master_vote>
describe(const ballots& votes, const settings& rules, const masters& masters, time_point now);
/// Completes the counters with what the claims and the masters have.
metrics count(metrics counters, pool<claim>& claims, const settings& rules, const masters& masters);
/// `running`: neither before the start nor after closing has begun.
health examine(const settings& rules, const masters& masters, bool running, time_point now);

/// The lines of the log about masters.
class master_log : tools {
public:
    explicit master_log(const tools& with) noexcept : tools(with) {}

    void noted(std::size_t master, std::string_view text) const;
    void clock_stepped(std::size_t master, std::chrono::microseconds by) const;
    void clocks_stepped(std::size_t masters) const;
    void publish_refused(std::size_t master) const;
    /// Whether it votes has changed.
    void voter_changed(std::size_t master, time_point now) const;
    void members_changed() const;
    /// An acquire has waited for some time, because too few masters vote.
    void waits_for_quorum(time_point now) const;

private:
    void write(log_level level, std::size_t master, std::string_view text) const;
};

} // namespace redlock::core
