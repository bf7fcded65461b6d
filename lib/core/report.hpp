// The state of the engine as text and figures: votes, metrics, health.

#pragma once

#include "claim.hpp"
#include "quorum.hpp"
#include "settings.hpp"
#include "slot_map.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/metrics.hpp>

#include <vector>

namespace redlock::core {

/// Describes votes as text.
std::vector<master_vote>
describe(const ballots& votes, const settings& rules, const quorum& masters, time_point now);
/// Completes the counters with what the claims and the masters have.
metrics count(metrics counters, pool<claim>& claims, const settings& rules, const quorum& masters);
/// `running`: neither before the start nor after closing has begun.
health examine(const settings& rules, const quorum& masters, bool running, time_point now);

} // namespace redlock::core
