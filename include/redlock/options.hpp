// What a caller may choose for one acquire.

#pragma once

#include <redlock/version.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <type_traits>

namespace redlock { inline namespace REDLOCK_ABI {

namespace detail {

/// In milliseconds. The conversion alone would make a negative number of `hours::max()`.
template <typename Rep, typename Period>
constexpr std::chrono::milliseconds saturated(std::chrono::duration<Rep, Period> from) noexcept {
    using std::chrono::milliseconds;
    using wide = std::chrono::duration<milliseconds::rep, Period>;
    if (from >= std::chrono::duration_cast<wide>(milliseconds::max())) {
        return milliseconds::max();
    }
    if (from <= std::chrono::duration_cast<wide>(milliseconds::min())) {
        return milliseconds::min();
    }
    return from;
}

} // namespace detail

/// How long an acquire may wait for a lock that somebody else has: not at all, for a duration, or
/// for ever. Converts from a duration: `options.wait = std::chrono::seconds(5);`
class wait_for {
public:
    /// Waits `limit` at most, from the moment of the call; the wait includes the attempts. A limit
    /// of zero is `none()`. Must not be negative.
    template <typename Rep, typename Period>
        requires std::convertible_to<std::chrono::duration<Rep, Period>, std::chrono::milliseconds>
    // NOLINTNEXTLINE(google-explicit-constructor): `options.wait = 5s` is what it is for
    constexpr wait_for(std::chrono::duration<Rep, Period> limit) noexcept
        : limit_(detail::saturated(limit)) {}

    /// One attempt, answered as soon as it is decided.
    static constexpr wait_for none() noexcept { return {std::chrono::milliseconds::zero()}; }
    /// Until the lock is taken or the operation is cancelled.
    static constexpr wait_for forever() noexcept { return {std::chrono::milliseconds::max()}; }

    /// The limit; `milliseconds::max()` means for ever.
    constexpr std::chrono::milliseconds limit() const noexcept { return limit_; }

    /// By the limit.
    friend constexpr bool operator==(wait_for, wait_for) noexcept = default;

private:
    std::chrono::milliseconds limit_;
};

/// Whether the library extends a held lock by itself.
enum class renewal : unsigned char {
    automatic, ///< at a third of the ttl, for as long as the handle lives, up to `max_hold`
    off,       ///< never: the lock ends with its ttl unless `async_extend` is called
};

/// In which order the processes that wait for one lock have it.
enum class fairness : unsigned char {
    none, ///< in no particular order: who asks at the right moment has it
    fifo, ///< by arrival, as far as one master's queue tells: see docs/guarantees.md, "Fairness"
};

/// The options of one acquire. Trivially destructible on purpose: g++ 12 destroys other aggregates
/// twice when they are temporaries in a `co_await` statement (see docs/compilers.md).
struct acquire_options {
    /// The lease: how long the masters keep the lock without hearing from the holder. Longer than
    /// clock drift plus `stop_margin` plus `min_validity`, at most `config::max_ttl`.
    std::chrono::milliseconds ttl{10'000};

    /// How long to wait for a lock that is taken, or for a quorum that is not there yet.
    wait_for wait{std::chrono::seconds(10)};

    /// An acquire succeeds only when at least this much of the lease is left at the deciding vote;
    /// else it is `too_slow` and rolled back. 0 or more, less than the ttl.
    std::chrono::milliseconds min_validity{0};

    /// The holder is told to stop this long before the lease ends, so that it has time to. `held()`
    /// is false from then on, and the masters keep the lock until the holder lets go or the lease
    /// ends. 0 or more, less than the ttl.
    std::chrono::milliseconds stop_margin{0};

    /// Whether the library extends the lock by itself.
    renewal renew{renewal::automatic};

    /// The longest time the lock is held in all, however often it is renewed; then it is lost with
    /// `loss_reason::renew_limit`. 0: unbounded. The bound that the Redis page asks for ("the
    /// number of lock reacquisition attempts should be limited").
    std::chrono::milliseconds max_hold{0};

    /// Whether the lock comes with a fencing token (guarded protocol only): a number that is larger
    /// than that of every earlier owner, so that the resource itself can refuse the writes of a
    /// holder that was paused past its lease. Costs no round trip where the masters' counters
    /// agree, else one. All owners of a resource must ask for it, or none.
    bool fencing{false};

    /// With `fifo`, an acquire that may wait first takes a place in a queue which one master keeps
    /// for the lock, and asks for the lock when it is its turn. That is one round trip more, also
    /// to a free lock, and a command every half second while it waits. The order is that of the
    /// processes: each has one place, and its next acquire goes to the end when the one before has
    /// the lock. It is no promise: it starts anew when that master fails, and acquires that do not
    /// ask for `fifo`, or do not wait, come in between. Needs a few more permissions
    /// (docs/operations.md); where they are missing the order is as with `none`.
    fairness order{fairness::none};
};

static_assert(std::is_trivially_destructible_v<acquire_options>);
static_assert(std::is_aggregate_v<acquire_options>);

/// The longest resource name, in bytes.
inline constexpr std::size_t resource_name_max = 1024;

}} // namespace redlock::REDLOCK_ABI
