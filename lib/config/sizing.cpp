#include "sizing.hpp"

#include "core/base/validity.hpp"
#include "lock_request.hpp"
#include "settings_of.hpp"

#include <algorithm>
#include <cmath>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

std::size_t votes_needed(std::size_t masters) noexcept {
    return core::quorum_of(masters);
}

double quorum_downtime(std::size_t masters, double each_down) noexcept {
    if (masters == 0) {
        return 1;
    }
    // Summed from the smallest term, and never computed as 1 minus a sum, which would lose digits.
    const std::size_t too_many = masters - core::quorum_of(masters) + 1;
    double sum = 0;
    for (std::size_t down = masters; down >= too_many; --down) {
        double term = std::pow(each_down, static_cast<double>(down))
                      * std::pow(1 - each_down, static_cast<double>(masters - down));
        for (std::size_t i = 1; i <= down; ++i) { // the number of ways to choose them
            term *= static_cast<double>(masters - down + i) / static_cast<double>(i);
        }
        sum += term;
    }
    return std::min(sum, 1.0);
}

lease_times times_of(const config& configuration, const acquire_options& given) {
    const core::settings rules = settings_of(configuration);
    // Of a quorum that is founded with this configuration.
    const bool is_set = configuration.max_ttl.count() != 0;
    const std::chrono::milliseconds longest =
        is_set ? configuration.max_ttl : rules.founding_max_ttl;
    acquire_options options = given;
    options.ttl = effective_ttl(given.ttl, longest);
    const std::chrono::milliseconds lease = options.ttl;
    const lease_times::duration ttl = lease;
    lease_times out;
    out.drift = rules.drift.of(lease);
    out.validity = ttl - out.drift;
    out.held = out.validity - core::stop_margin_of(options);
    out.renewal_latest = core::renewal_period(lease);
    out.renewal_earliest = out.renewal_latest - core::renewal_spread(lease);
    out.outage_survived = out.held - out.renewal_latest;
    out.crash_shortest = ttl - out.renewal_latest;
    out.crash_longest = ttl;
    out.quarantine = rules.quarantine_of(longest);
    return out;
}

}}} // namespace redlock::REDLOCK_ABI::detail
