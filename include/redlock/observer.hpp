// Observes the operations and locks of a manager, for tracing and for warnings.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/error.hpp>
#include <redlock/outcome.hpp>

#include <boost/core/noncopyable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI {

/// Kind of an operation.
enum class operation_kind : std::uint8_t {
    acquire, ///< `async_acquire` and functions based on it
    extend,  ///< `async_extend`
    renew,   ///< an extension by the library
    release, ///< release of a held lock: by `async_release` or by destroying the handle
    query,   ///< `async_query`
};

template <>
inline constexpr std::string_view detail::names<operation_kind> =
    "acquire extend renew release query";

/// An operation. References are valid during the call.
struct operation {
    /// Id of the operation, unique in its manager; never 0.
    std::uint64_t id = 0;
    operation_kind kind = operation_kind::acquire; ///< kind of the operation
    std::string_view resource = {};                ///< name of the resource, as given
    /// Id of the lock, which is the id of the acquisition that succeeded. 0 for a query, and for an
    /// acquire that has not succeeded.
    std::uint64_t lock = 0;
    /// At the start of an acquisition or an extension: the requested lease; else 0.
    std::chrono::milliseconds ttl{0};
};

/// A held lock. References are valid during the call.
struct held_lock {
    std::uint64_t id = 0;                            ///< id of the acquisition that succeeded
    std::string_view resource = {};                  ///< name of the resource, as given
    std::optional<std::uint64_t> fencing_token = {}; ///< the fencing token, if requested
};

/// Base class of observers. Derive from it, override the functions of interest, and assign it to
/// `config::observer`.
///
/// For each operation, `started` is called first and `ended` once, whatever the result. An
/// operation whose arguments are invalid is not reported. For each lock, `acquired` is called after
/// the `ended` of its acquire, and later one of `lost`, `released` and `abandoned`. Operations that
/// are in progress when the manager is closed also end, as long as its executor runs.
///
/// \par Thread safety
/// The functions are called from the manager's threads, one call at a time for each manager, in the
/// order of the events. Several managers may share an observer. The manager holds no mutex during a
/// call, so the functions may call the manager and its locks. Events caused by such a call are
/// delivered after the function returns. They must not block: other threads of the manager wait for
/// them.
/// \par Errors
/// An exception is caught, counted as `metrics::observer_errors` and logged as an error. It does
/// not affect the lock.
/// \par Cost
/// Votes are formatted only if there is an observer, if diagnostics were requested, or for an error
/// that is thrown.
class observer : boost::noncopyable {
public:
    virtual ~observer() = default;

    /// Called when an operation starts. For an operation of a caller it is called inside the
    /// initiating function, where the tracing context of the caller's thread is available.
    virtual void started(const operation&) {}

    /// Called when an operation has ended, with the error that its handler gets. With one thread,
    /// the handler has not run yet; with several, it may be running. `votes` has the content of the
    /// operation's `diagnostics`. It is empty after a cancelled extension or query, and after a
    /// renewal that the release of its lock overtook: nobody needs the result.
    ///
    /// Releases and queries end without an error, whatever they found. `diagnostics::message` is
    /// the name of that: the `to_string` of a `release_result` or a `lock_state`.
    virtual void ended(const operation&, const error_code&, const diagnostics& /*votes*/) {}

    /// Called when a lock has been acquired.
    virtual void acquired(const held_lock&) {}

    /// Called when a lock was lost: `held()` is false. `votes` are the last votes of the masters.
    virtual void lost(const held_lock&, loss_reason, const diagnostics& /*votes*/) {}

    /// Called when a lock was released, with the result.
    virtual void released(const held_lock&, release_result) {}

    /// Called when a lock was abandoned: it expires with its ttl.
    virtual void abandoned(const held_lock&) {}

    /// Called when a lock has been held for longer than `config::held_warning`. Once for each lock.
    virtual void held_long(const held_lock&, std::chrono::nanoseconds /*held*/) {}

    /// Called when more acquisitions of this manager wait for one resource than
    /// `config::contention_warning`.
    virtual void contention(std::string_view /*resource*/, std::size_t /*waiting*/) {}

    /// Called when the members of the quorum have changed, see `health::members`. Not called for
    /// the members that the manager reads first. The names are valid during the call.
    virtual void
    members_changed(std::uint64_t /*generation*/, std::span<const std::string> /*members*/) {}
};

}} // namespace redlock::REDLOCK_ABI
