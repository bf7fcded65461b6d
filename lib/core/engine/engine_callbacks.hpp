// Requests and reports of the engine. Implemented by the manager, and by the clients of the
// simulator. These calls may read the engine, and may not change it.

#pragma once

#include "core/locks/claim.hpp"
#include "core/masters/member_list.hpp"
#include "core/waiting/acquire_call.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/errc.hpp>
#include <redlock/logger.hpp>
#include <redlock/outcome.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace redlock::core {

class engine_callbacks {
public:
    /// \name Services
    /// \{
    /// Fills `out` with unpredictable bytes.
    virtual void random(std::span<unsigned char> out) = 0;
    virtual bool logs(log_level level) const = 0;
    virtual void log(log_level level, std::string_view line) = 0;
    /// Connects link `link` (see `engine`) to its master; the result is `engine::opened` or
    /// `engine::closed`.
    virtual void open(std::size_t link) = 0;
    /// Closes the socket; no event of it may arrive later.
    virtual void close(std::size_t link) = 0;
    /// \}

    /// \name Acquires
    /// \{
    /// An acquire succeeded; the claim is a lease from now on.
    virtual void acquired(const acquire_call& done, const claim& lease) = 0;
    /// An acquire failed with `done.outcome`, or was cancelled; its rollback has been sent.
    virtual void not_acquired(const acquire_call& done) = 0;
    /// More than `contention_warning` acquires wait for one resource in this process.
    virtual void contention(std::string_view /*key*/, std::size_t /*waiting*/) {}
    /// \}

    /// \name Leases
    /// \{
    /// The deadline of a lease moved.
    virtual void lease_changed(const claim& lease) = 0;
    /// A lease was lost: `held()` is false. Its removal begins when it is released, or at the last
    /// deadline that the holder was shown.
    virtual void lease_lost(const claim& lease, loss_reason reason) = 0;
    /// A lease has been held for longer than `held_warning`. Once per lease.
    virtual void held_long(const claim& /*lease*/) {}
    /// An extension by the library was started.
    virtual void renewing(const claim& /*lease*/) {}
    /// That extension has ended. The lease may continue, whatever the result. Not called if the
    /// lease has ended or was handed off before.
    virtual void renewed(const claim& /*lease*/, std::optional<errc> /*error*/) {}
    /// The oldest extension by a user has ended.
    virtual void extended(const claim& lease, std::optional<errc> error) = 0;
    /// A release has its result, by a removal or a local handoff. The last call for this lease.
    virtual void removed(const claim& lease, release_result result) = 0;
    /// \}

    /// What `engine::query` has found.
    virtual void queried(std::uint64_t cookie, lock_status&& found) = 0;
    /// The members of the quorum have changed.
    virtual void members_changed(const generation& /*present*/) {}
    /// A lock with a subscription may have been released.
    virtual void heard(std::string_view /*key*/) {}
    /// Closing has ended: all connections are down.
    virtual void closed() = 0;

protected:
    ~engine_callbacks() = default;
};

} // namespace redlock::core
