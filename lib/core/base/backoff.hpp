// Delays between retries: decorrelated jitter, so that contenders that collided do not collide
// again. (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.)

#pragma once

#include "hash.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace redlock::core {

/// A small generator of uniform numbers for jitter only (splitmix64, Steele et al. 2014). Tokens
/// come from the operating system.
class jitter {
public:
    explicit jitter(std::uint64_t seed) noexcept : state_(seed) {}

    /// Uniform in [low, high].
    std::chrono::nanoseconds
    between(std::chrono::nanoseconds low, std::chrono::nanoseconds high) noexcept {
        if (high <= low) {
            return low;
        }
        const auto span = static_cast<std::uint64_t>((high - low).count()) + 1;
        return low + std::chrono::nanoseconds(static_cast<std::int64_t>(next() % span));
    }

    /// Uniform in [0, end).
    std::size_t below(std::size_t end) noexcept { return static_cast<std::size_t>(next() % end); }

private:
    std::uint64_t next() noexcept { return mixed(state_ += 0x9e3779b97f4a7c15U); }

    std::uint64_t state_;
};

class backoff {
public:
    /// The next delay: uniform between `floor` and three times the previous one, at most `ceiling`.
    std::chrono::nanoseconds next(
        std::chrono::nanoseconds floor, std::chrono::nanoseconds ceiling, jitter& random) noexcept {
        ceiling = std::max(floor, ceiling);
        last_ = std::min(ceiling, random.between(floor, std::max(floor, last_) * 3));
        return last_;
    }

    /// After a success: start with a small delay next time.
    void reset() noexcept { last_ = {}; }

private:
    std::chrono::nanoseconds last_{};
};

} // namespace redlock::core
