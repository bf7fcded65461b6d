// Who watches what a manager does: for tracing, and for warnings that a service wants to act on.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/error.hpp>
#include <redlock/options.hpp>
#include <redlock/outcome.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI {

/// What an operation is about.
enum class operation_kind : std::uint8_t {
    acquire, ///< `async_acquire` and what is made of it
    extend,  ///< `async_extend`
    renew,   ///< an extension by the library itself
    release, ///< of a held lock: `async_release`, or a handle that was destroyed
    query,   ///< `async_query`
};

/// The enumerator's name as written above. The text lives for ever.
std::string_view to_string(operation_kind) noexcept;

/// An operation that begins. What it refers to lives as long as the call.
struct operation_start {
    std::uint64_t id = 0; ///< names the operation in its manager; never 0, never used twice
    operation_kind kind = operation_kind::acquire; ///< what is done
    std::string_view resource = {};                ///< its name, as it was given
    /// The lock that it is about: the id of the acquire that took it. 0 for an acquire or a query.
    std::uint64_t lock = 0;
    /// The lease that is asked for; 0 for a release or a query.
    std::chrono::milliseconds ttl{0};
    const acquire_options* options = nullptr; ///< of an acquire; else null
};

/// An operation that has ended. What it refers to lives as long as the call.
struct operation_end {
    std::uint64_t id = 0;                          ///< as at its start
    operation_kind kind = operation_kind::acquire; ///< what is done
    std::string_view resource = {};                ///< its name, as it was given
    std::uint64_t lock = 0; ///< as at its start; of an acquire that succeeded its own id
    /// What its handler is told. A release and a query end without one, whatever they found.
    error_code error = {};
    std::optional<release_result> released = {}; ///< what a release found
    std::optional<lock_state> found = {};        ///< what a query found
};

/// A lock that is held. What it refers to lives as long as the call.
struct held_lock {
    std::uint64_t id = 0;                            ///< the id of the acquire that took it
    std::string_view resource = {};                  ///< its name, as it was given
    std::optional<std::uint64_t> fencing_token = {}; ///< if it was asked for
};

/// Derive from it, and override what is of interest; give it to `config::observer`.
///
/// For each operation `started` comes first and `ended` once, whatever becomes of it; an operation
/// whose arguments were refused is none. For each lock `acquired` comes after the `ended` of its
/// acquire, and then one of `lost`, `released` and `abandoned`. What a manager that is closed had
/// under way ends as well, as long as its executor runs.
///
/// \par Thread safety
/// Called from the manager's threads, one call at a time for each manager, in the order in which
/// things happen; several managers may share one. The calls come from inside the manager's work:
/// they must not block and must not call the manager nor a lock of it, or it stops for ever.
/// \par Errors
/// An exception is caught, counted as `metrics::observer_errors` and logged as an error; the lock
/// does not feel it.
/// \par Cost
/// The votes are only put into words where there is an observer, or diagnostics are asked for.
class observer {
public:
    observer() = default;
    observer(const observer&) = delete;
    observer& operator=(const observer&) = delete;
    virtual ~observer() = default;

    /// An operation begins; nothing has been sent yet. What a caller begins is told inside the
    /// initiating function, in the caller's thread, so that its tracing context is at hand.
    virtual void started(const operation_start&) {}

    /// An operation has ended; its handler has not run yet. `votes` says how: what `diagnostics`
    /// passed to the operation would. Empty where nobody
    /// waits for the answer any more: an extension or a query that was cancelled, a renewal that
    /// the release of its lock overtook.
    virtual void ended(const operation_end&, const diagnostics& /*votes*/) {}

    /// A lock is held from now on.
    virtual void acquired(const held_lock&) {}

    /// A lock was lost: `held()` is false. `votes` is how the masters stood.
    virtual void lost(const held_lock&, loss_reason, const diagnostics& /*votes*/) {}

    /// A lock was given back, and this is what the masters said to it.
    virtual void released(const held_lock&, release_result) {}

    /// A lock was left to its ttl.
    virtual void abandoned(const held_lock&) {}

    /// A lock has been held for longer than `config::held_warning`. Once for each lock.
    virtual void held_long(const held_lock&, std::chrono::nanoseconds /*held*/) {}

    /// More acquires of this manager wait for one resource than `config::contention_warning`.
    virtual void contention(std::string_view /*resource*/, std::size_t /*waiting*/) {}
};

}} // namespace redlock::REDLOCK_ABI
