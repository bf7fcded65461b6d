// Arguments of an acquisition: the resources, and the options.

#pragma once

#include <redlock/names.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

namespace detail {

/// Converts a duration to milliseconds. A plain conversion would turn `hours::max()` into a
/// negative number.
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

/// Maximum time that an acquisition waits: none, a duration, or forever. Converts from a duration:
/// `options.wait = std::chrono::seconds(5);`
class wait_for {
public:
    /// Waits at most `limit`, counted from the call and including the attempts. Zero is the same as
    /// `none()`. Must not be negative.
    template <typename Rep, typename Period>
        requires std::convertible_to<std::chrono::duration<Rep, Period>, std::chrono::milliseconds>
    // NOLINTNEXTLINE(google-explicit-constructor): `options.wait = 5s` is what it is for
    constexpr wait_for(std::chrono::duration<Rep, Period> limit) noexcept
        : limit_(detail::saturated(limit)) {}

    /// Makes a single attempt, which completes as soon as it is decided. It does not wait until
    /// masters are connected: await `lock_manager::async_ready` first. Blocking acquisitions do.
    static constexpr wait_for none() noexcept { return {std::chrono::milliseconds::zero()}; }
    /// Waits until the lock is acquired or the operation is cancelled.
    static constexpr wait_for forever() noexcept { return {std::chrono::milliseconds::max()}; }
    /// Waits for other owners without a limit, as `std::mutex` does, but at most `outage` while no
    /// majority of the masters votes: the limit begins again whenever one refuses the lock.
    static constexpr wait_for contention(wait_for outage) noexcept {
        outage.begins_again_ = true;
        return outage;
    }

    /// Returns the limit. `milliseconds::max()` means forever.
    constexpr std::chrono::milliseconds limit() const noexcept { return limit_; }

    /// Compares the limits and what they are for.
    friend constexpr bool operator==(wait_for, wait_for) noexcept = default;

private:
    std::chrono::milliseconds limit_;
    bool begins_again_ = false;
};

/// Which other locks a lock admits. `shared`: guarded protocol only, one resource, and without
/// `acquire_options::fifo`. Anything else is refused with `errc::invalid_argument`.
///
/// While a resource has readers, its key exists on their masters. So they exclude all other
/// clients: locks of several resources, the plain protocol, and other libraries as well. Any
/// two majorities share a master, so a reader and another holder cannot both have one.
///
/// **Readers do not starve a waiter.** One that wants the resource alone and finds readers
/// registers its intent. New readers are then refused until it has been served, gives up, or stops
/// retrying for 2 s (four times `master_timeout`, if longer). A lock of several resources and one
/// of the plain protocol have no such intent. A reader that crashes excludes others no longer than
/// its lease.
///
/// Upgrading is not supported. A reader that tries to acquire the exclusive lock would wait for
/// itself, and fails with `errc::contended` or `errc::wait_timed_out`. Release the reader's lock
/// first, and check again what was read. For downgrading see `lock::async_downgrade`.
enum class lock_mode : unsigned char {
    exclusive, ///< excludes every other lock
    /// The lock of a reader, which other readers may share. It is refused while anybody else holds
    /// the resource. It has no fencing token, because a reader makes no writes that could be
    /// refused.
    shared,
};

template <>
inline constexpr std::string_view detail::names<lock_mode> = "exclusive shared";

/// The default lease: the smaller of 10 s and the longest one, `health::max_ttl`.
inline constexpr std::chrono::milliseconds default_ttl = std::chrono::milliseconds::min();

/// The default `stop_margin`: a tenth of the ttl, or of `max_hold` if that is shorter; 1 s at most.
/// An extension with another ttl changes it.
inline constexpr std::chrono::milliseconds default_stop_margin = std::chrono::milliseconds::min();

/// Options of one acquisition. Trivially destructible on purpose: g++ 12 destroys other aggregates
/// twice if they are temporaries in a `co_await` statement (see docs/packaging.md).
struct acquire_options {
    /// The lease: time after which the masters expire the lock unless it is extended. Range: more
    /// than the clock drift plus `stop_margin` plus `min_validity`, up to the longest one,
    /// `health::max_ttl`.
    /// Default: `default_ttl`.
    std::chrono::milliseconds ttl{default_ttl};

    /// Maximum time to wait for a lock that is held by another owner, or for a quorum that is not
    /// available yet. An acquisition that cannot outwait the quarantine of the masters fails at
    /// once with `errc::no_quorum`. Its message says when the quarantine ends. With the default
    /// `config::max_ttl`, the quarantine of new masters is longer than the default wait. Range: 0
    /// or more. Default: 10 s.
    wait_for wait{std::chrono::seconds(10)};

    /// Minimum validity of a new lock. If the remaining lease is not longer than this when the
    /// deciding vote arrives, the attempt fails with `validity_exhausted` and is rolled back.
    /// Range: 0 up to the ttl; see `ttl`. Default: 0.
    std::chrono::milliseconds min_validity{0};

    /// Time before the end of the lease at which the holder is signalled to stop. `held()` is false
    /// from then on, and the masters keep the lock until the holder lets go of it or the lease
    /// ends. Choose it longer than the work needs to stop. With 0 the signal comes at the end of
    /// the lease, or later if the thread is busy. Range: 0 up to the ttl; see `ttl`. Default:
    /// `default_stop_margin`.
    std::chrono::milliseconds stop_margin{default_stop_margin};

    /// Whether the library extends the lock: at a third of the ttl, while the handle lives, up to
    /// `max_hold`. Otherwise it ends with its ttl unless `async_extend` is called. Default: true.
    bool renew{true};

    /// Maximum total time to hold the lock, including renewals. After it the lock is lost with
    /// `loss_reason::max_hold_reached`. This is the limit that the Redis page asks for ("the number
    /// of lock reacquisition attempts should be limited"). `lock::async_extend` says when it ends
    /// the lease. Range: more than `stop_margin` and `min_validity`. Default: 0, unlimited.
    std::chrono::milliseconds max_hold{0};

    /// Whether the lock has a fencing token (guarded protocol only): a number larger than that of
    /// every earlier owner. With it the resource can refuse writes of a holder that was paused past
    /// its lease. It takes no additional round trip if the counters of the masters agree, otherwise
    /// one. All owners of a resource must set it, or none. Default: false.
    bool fencing{false};

    /// Whether waiting processes get the lock in the order of their arrival: see "Fairness" in
    /// docs/guarantees.md. Otherwise whichever waiter retries first after a release gets it. Only
    /// for one resource in the mode `exclusive`: with several resources, slots or another mode the
    /// acquisition completes with `errc::invalid_argument`. Default: false.
    ///
    /// An acquisition that may wait then joins a queue first, which one master keeps for the lock.
    /// It attempts the lock when it is at the front. This takes one more round trip, even for a
    /// free lock, and one command every half second while it waits. The order is that of processes:
    /// each process has one place in the queue. After an acquisition has succeeded, the next one of
    /// the same process joins at the end.
    ///
    /// The order is best effort. It starts anew when that master fails, and acquisitions without
    /// `fifo`, or without a wait, may come in between. Needs additional permissions (see
    /// docs/operations.md), and has no effect without them.
    bool fifo{false};

    /// Which other locks the lock admits. Default: exclusive.
    lock_mode mode{lock_mode::exclusive};

    /// Whether the secret will be passed on: see `lock::abandon`. A master then refuses a command
    /// of this acquisition that it executes only after the attempt has ended, so an expired lock
    /// never comes back. After a loss the lock is removed only by `async_release` or the
    /// destructor, and otherwise expires: another process may act on it. Costs each master a script
    /// in place of a `SET`, except in the plain protocol and with `fencing`. Default: false;
    /// `lock_manager::async_acquire_as` always sets it.
    bool transferable{false};
};

static_assert(std::is_trivially_destructible_v<acquire_options>);
static_assert(std::is_aggregate_v<acquire_options>);

namespace detail {

struct free_slots {
    std::string pool;
    std::size_t size = 0;
    std::size_t count = 0;
};

struct target_access;

} // namespace detail

/// Any free slots of a pool.
///
/// A pool has numbered slots. All processes that use the same name, size and masters share it. It
/// is also a counting semaphore, and a pool of one slot is a mutex. Each slot is a lock of its own
/// on a majority of the masters, so the number of holders is exact. A counter on each master would
/// not be exact (see docs/slot_pool.md).
class slots {
public:
    /// Stores the arguments.
    /// \param pool name of the pool. Range: 1 to 1,024 bytes. It is independent of the names of
    ///   resources: the keys of slots are `prefix{name}:slot:number`.
    /// \param size number of slots of the pool. Range: 1 to 65,536, at most 256 for each ms of
    ///   `config::master_timeout`: a search reads them all. Processes with different sizes share
    ///   the numbers that both have: no number is ever held twice, and the total number of holders
    ///   is limited by the largest size.
    /// \param count number of slots to acquire together. Range: 1 to `size`, at most 128. More than
    ///   one: guarded protocol only.
    // Not an aggregate: g++ 12 would destroy one twice (see `acquire_options`).
    slots(std::string pool, std::size_t size, std::size_t count = 1)
        : wanted_{std::move(pool), size, count} {}

private:
    friend class target;

    detail::free_slots wanted_;
};

/// Target of an acquisition or a query: one resource, several together, or slots of a pool.
class target {
public:
    // `async_acquire("r")` is what it is for, and no target is a name.
    // NOLINTBEGIN(google-explicit-constructor,bugprone-forwarding-reference-overload)
    /// One resource, by its name: 1 to 1,024 bytes of any value.
    template <typename Name>
        requires(std::convertible_to<Name, std::string_view> && !std::same_as<Name, std::nullptr_t>)
    target(Name&& name) : what_(std::string(std::forward<Name>(name))) {}
    /// Several resources together, by their names: 1 to 128, in any order. Duplicates count once,
    /// and a list of one is the same as that name. A master locks them in one step and serves no
    /// other client during it.
    target(std::vector<std::string> names) : what_(std::move(names)) {}
    /// The same. In a statement with `co_await` use a named vector (see docs/packaging.md).
    target(std::initializer_list<std::string> names) : what_(std::vector(names)) {}
    /// Any free slots of a pool.
    target(slots wanted) : what_(std::move(wanted.wanted_)) {}
    // NOLINTEND(google-explicit-constructor,bugprone-forwarding-reference-overload)

private:
    friend struct detail::target_access;

    std::variant<std::string, std::vector<std::string>, detail::free_slots> what_;
};

}} // namespace redlock::REDLOCK_ABI
