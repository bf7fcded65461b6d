// Counts durations in a histogram of the metrics.

#pragma once

#include <redlock/metrics.hpp>

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

struct histogram_access {
    /// Counts one duration. A negative duration counts as 0.
    static void add(histogram& to, std::chrono::nanoseconds took) noexcept {
        const auto value = took.count() < 0 ? 0 : took.count();
        // The magnitude gives the first bucket to try: it is right, or one or two too low.
        std::size_t at = first_with[std::bit_width(static_cast<std::uint64_t>(value))];
        while (value > limits[at]) {
            ++at;
        }
        ++to.counts_[at];
        to.sum_ += std::chrono::nanoseconds(value);
    }

private:
    using rep = std::chrono::nanoseconds::rep;

    static constexpr auto limits = [] {
        std::array<rep, histogram::bounds.size() + 1> out{};
        for (std::size_t i = 0; i < histogram::bounds.size(); ++i) {
            out[i] = std::chrono::nanoseconds(histogram::bounds[i]).count();
        }
        out.back() = std::numeric_limits<rep>::max();
        return out;
    }();
    // By bit width of a duration: the bucket of the shortest duration of that width.
    static constexpr auto first_with = [] {
        std::array<std::uint8_t, 65> out{};
        for (std::size_t bits = 1; bits < 64; ++bits) {
            const auto shortest = rep{1} << (bits - 1);
            while (shortest > limits[out[bits]]) {
                ++out[bits];
            }
        }
        return out;
    }();
};

}}} // namespace redlock::REDLOCK_ABI::detail
