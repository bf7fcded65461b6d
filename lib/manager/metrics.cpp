#include <redlock/metrics.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace redlock { inline namespace REDLOCK_ABI {

static_assert(std::ranges::is_sorted(histogram::bounds));

std::uint64_t histogram::count() const noexcept {
    return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

std::chrono::nanoseconds histogram::quantile(double q) const noexcept {
    using duration = std::chrono::nanoseconds;
    const std::uint64_t all = count();
    if (all == 0) {
        return {};
    }
    const double wanted = std::clamp(q, 0.0, 1.0) * static_cast<double>(all);
    double below = 0;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
        const auto here = static_cast<double>(counts_[i]);
        if (here > 0 && below + here >= wanted) {
            const duration from = i == 0 ? duration(0) : duration(bounds[i - 1]);
            const auto width = static_cast<double>((duration(bounds[i]) - from).count());
            return from + duration(std::llround(width * (wanted - below) / here));
        }
        below += here;
    }
    return bounds.back();
}

}} // namespace redlock::REDLOCK_ABI
