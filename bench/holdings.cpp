// One pass over the holdings in the order of time.
#include "holdings.hpp"

#include <algorithm>
#include <limits>

namespace bench {
namespace {

std::uint32_t clamped(std::int64_t nanoseconds) {
    return static_cast<std::uint32_t>(
        std::min<std::int64_t>(nanoseconds, std::numeric_limits<std::uint32_t>::max()));
}

} // namespace

handoff_figures
figures_of(std::vector<holding> holdings, std::size_t waiters, std::chrono::nanoseconds duration) {
    handoff_figures found;
    std::sort(holdings.begin(), holdings.end(), [](const holding& one, const holding& other) {
        return one.acquired < other.acquired;
    });
    std::vector<std::uint64_t> shares(waiters);
    for (std::size_t i = 0; i < holdings.size(); ++i) {
        const auto& now = holdings[i];
        ++shares[now.waiter];
        found.longest_wait =
            std::max(found.longest_wait, std::chrono::nanoseconds(now.acquired - now.asked));
        if (i == 0) {
            continue;
        }
        const auto& before = holdings[i - 1];
        const auto gap = now.acquired - before.releasing;
        if (gap < 0) {
            ++found.overlaps;
            continue;
        }
        found.longest_gap = std::max(found.longest_gap, std::chrono::nanoseconds(gap));
        (now.process == before.process ? found.local_ns : found.remote_ns).push_back(clamped(gap));
    }
    if (std::find(shares.begin(), shares.end(), 0U) != shares.end()) {
        found.longest_wait = std::max(found.longest_wait, duration);
    }
    found.jain_index = jain_index(shares);
    if (holdings.size() > 1) {
        found.handoffs = holdings.size() - 1;
        found.per_second =
            static_cast<double>(found.handoffs) * 1e9
            / static_cast<double>(holdings.back().acquired - holdings.front().acquired);
    }
    return found;
}

double jain_index(const std::vector<std::uint64_t>& shares) {
    double sum = 0;
    double squares = 0;
    for (const auto share : shares) {
        const auto value = static_cast<double>(share);
        sum += value;
        squares += value * value;
    }
    return squares == 0 ? 0 : sum * sum / (static_cast<double>(shares.size()) * squares);
}

} // namespace bench
