// The simulator's randomness: all of a run follows from one number. Each link and each client draws
// from a stream of its own, so that taking one fault out of a plan disturbs the others little.

#pragma once

#include <cstdint>

namespace simulation {

/// splitmix64 (Steele et al. 2014).
class generator {
public:
    explicit generator(std::uint64_t seed) noexcept : state_(seed) {}
    /// A stream of its own for each pair of numbers.
    generator(std::uint64_t seed, std::uint64_t stream) noexcept
        : state_(generator(seed ^ (stream * 0xd1342543de82ef95U)).next()) {}

    std::uint64_t next() noexcept {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31U);
    }

    /// Uniform in [0, bound); 0 if the bound is 0.
    std::uint64_t below(std::uint64_t bound) noexcept { return bound == 0 ? 0 : next() % bound; }

    /// Uniform in [low, high].
    std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
        return high <= low ? low
                           : low
                                 + static_cast<std::int64_t>(
                                     below(static_cast<std::uint64_t>(high - low) + 1));
    }

    bool percent(unsigned chance) noexcept { return below(100) < chance; }

private:
    std::uint64_t state_;
};

} // namespace simulation
