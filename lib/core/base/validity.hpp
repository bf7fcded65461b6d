// Quorum and validity arithmetic: how many votes decide, and until when a vote can be relied on.
//
// The rule, from the Redis page on distributed locks: a lease of `ttl` that was requested at `t0`
// is valid until `t0 + ttl - drift(ttl)`, where `t0` is read before the first byte is sent. With
// votes of different age (after a partial renewal) the majority lasts until the q-th largest of
// these moments. Nothing here reads a clock.

#pragma once

#include "decisions.hpp"

#include <redlock/clock.hpp>
#include <redlock/options.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace redlock::core {

/// Maximum number of masters: one bit each in `master_set`.
inline constexpr std::size_t masters_max = 32;
/// Stands for "no master".
inline constexpr std::size_t nobody = ~std::size_t{0};

/// Some of the masters, a bit each.
using master_set = std::uint32_t;
constexpr master_set set_of(std::size_t master) noexcept {
    return master_set{1} << master;
}
static_assert(masters_max <= 32);

/// Those of the first `masters` for which `f` returns true.
template <typename F>
constexpr master_set set_where(std::size_t masters, F f) {
    master_set out = 0;
    for (std::size_t i = 0; i < masters; ++i) {
        out |= f(i) ? set_of(i) : 0U;
    }
    return out;
}

/// The masters of a set, in ascending order: `for (const std::size_t master : each_of(set))`.
/// It is its own iterator: what is left of the set.
class each_of {
public:
    constexpr explicit each_of(master_set set) noexcept : left_(set) {}
    constexpr each_of begin() const noexcept { return *this; }
    static constexpr each_of end() noexcept { return each_of(0); }

    constexpr std::size_t operator*() const noexcept {
        return static_cast<std::size_t>(std::countr_zero(left_));
    }
    constexpr each_of& operator++() noexcept {
        left_ &= left_ - 1;
        return *this;
    }
    friend constexpr bool operator==(each_of, each_of) noexcept = default;

private:
    master_set left_;
};

/// The moment before all others: no vote.
inline constexpr time_point never = time_point::min();
/// The moment after all others: no timer.
inline constexpr time_point forever = time_point::max();

/// The largest `config::max_ttl`.
inline constexpr std::chrono::milliseconds ttl_max = std::chrono::hours(24);
/// At most `ttl_max`.
using short_ttl = std::chrono::duration<std::int32_t, std::milli>;
constexpr short_ttl shortened(std::chrono::milliseconds ttl) noexcept {
    return std::chrono::duration_cast<short_ttl>(ttl);
}

/// A majority of `masters`.
constexpr std::size_t quorum_of(std::size_t masters) noexcept {
    return masters / 2 + 1;
}
static_assert(quorum_of(1) == 1 && quorum_of(2) == 2 && quorum_of(3) == 2);
static_assert(quorum_of(4) == 3 && quorum_of(5) == 3 && quorum_of(7) == 4);

/// Bound on the difference of clocks during a lease.
struct drift_bound {
    double factor = 0.01;
    std::chrono::milliseconds margin{2};

    constexpr std::chrono::nanoseconds of(std::chrono::milliseconds ttl) const noexcept {
        const std::chrono::nanoseconds exact = ttl;
        return std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(
                   static_cast<double>(exact.count()) * factor))
               + margin;
    }
};
static_assert(drift_bound{}.of(std::chrono::seconds(10)) == std::chrono::milliseconds(102));

/// `at + by`, saturating at `forever`: a wait without end must not wrap around.
constexpr time_point later(time_point at, std::chrono::nanoseconds by) noexcept {
    return by > forever - at ? forever : at + by;
}
constexpr time_point later(time_point at, std::chrono::milliseconds by) noexcept {
    using std::chrono::nanoseconds;
    const bool fits =
        by < std::chrono::duration_cast<std::chrono::milliseconds>(nanoseconds::max());
    return fits ? later(at, nanoseconds(by)) : forever;
}
static_assert(later(time_point{}, std::chrono::milliseconds::max()) == forever);

/// Until when a vote that was asked for at `sent` can be relied on.
inline time_point
guaranteed_until(time_point sent, std::chrono::milliseconds ttl, drift_bound drift) noexcept {
    return wrong::no_drift ? sent + ttl : sent + ttl - drift.of(ttl);
}

/// The `stop_margin` of a lease that ends after `lasts`, unless its holder chose another.
constexpr std::chrono::milliseconds usual_margin(std::chrono::milliseconds lasts) noexcept {
    return std::min(lasts / 10, std::chrono::milliseconds(1'000));
}
/// What an option means.
constexpr std::chrono::milliseconds stop_margin_of(const acquire_options& options) noexcept {
    return options.stop_margin != default_stop_margin ? options.stop_margin
           : options.max_hold.count() > 0 ? usual_margin(std::min(options.ttl, options.max_hold))
                                          : usual_margin(options.ttl);
}
/// What a ttl must leave room for: a margin that the holder chose.
constexpr std::chrono::milliseconds chosen_margin_of(const acquire_options& options) noexcept {
    return options.stop_margin == default_stop_margin ? std::chrono::milliseconds(0)
                                                      : options.stop_margin;
}

/// Latest time of a renewal after the last extension: a third of the ttl, which leaves time for two
/// retries.
constexpr std::chrono::nanoseconds renewal_period(std::chrono::milliseconds ttl) noexcept {
    return ttl / 3;
}
/// Maximum random part by which a renewal is earlier, so that locks that were acquired together are
/// not renewed together.
constexpr std::chrono::nanoseconds renewal_spread(std::chrono::milliseconds ttl) noexcept {
    return ttl / 12;
}

/// Returns the latest moment that `of(one)` reaches for at least `quorum` elements of `range`. A
/// missing vote is `never`. `quorum` is 1 to the size of the range. (The ranges are short and
/// nearly always all equal: counting beats sorting.)
template <typename Range, typename Moment = std::identity>
constexpr time_point nth_largest(const Range& range, std::size_t quorum, Moment of = {}) noexcept {
    time_point best = never;
    for (const auto& candidate : range) {
        const time_point moment = std::invoke(of, candidate);
        if (moment <= best) {
            continue;
        }
        std::size_t as_late = 0;
        for (const auto& other : range) {
            as_late += std::invoke(of, other) >= moment ? 1U : 0U;
        }
        best = as_late >= quorum ? moment : best;
    }
    return best;
}

} // namespace redlock::core
