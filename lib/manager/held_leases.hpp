// The leases of one manager. Passes requests of the holders to the engine, and reports of the
// engine to the holders, to waiting calls and to the observer (lease_reports.cpp).

#pragma once

#include "engine_driver.hpp"
#include "lease_handle.hpp"
#include "observer_feed.hpp"

#include <redlock/outcome.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

class held_leases {
public:
    template <typename... Arguments>
    using handler = engine_driver::handler<Arguments...>;
    using lease_ptr = std::shared_ptr<lease_handle>;

    held_leases(engine_driver& driver, observer_feed& observer)
        : driver_(driver),
          observer_(observer) {}
    held_leases(const held_leases&) = delete;
    held_leases& operator=(const held_leases&) = delete;
    /// Destroys the handlers that still wait.
    ~held_leases();

    /// \name For holders, from any thread
    /// \{
    /// Without a ttl, turns an exclusive lock into a reader's.
    void extend(
        lease_ptr lease,
        std::optional<std::chrono::milliseconds> ttl,
        diagnostics_sink sink,
        handler<error_code, extend_result> done);
    void release(lease_ptr lease, diagnostics* out, handler<error_code, release_result> done);
    void wait_lost(lease_ptr lease, diagnostics* out, handler<error_code, loss_reason> done);
    void listen(lease_handle& lease, const std::shared_ptr<loss_listener>& to);
    /// The last handle was destroyed: the lease is released, or it expires with its ttl.
    void drop(lease_ptr lease, bool release);
    /// \}

    /// \name For the engine, with the guard held
    /// \{
    /// Sets the manager of the leases. Called before the first lease.
    void belong_to(const std::shared_ptr<manager_impl>& manager);
    /// A claim has become a lease. `resource` is the readable name of the lock, of slots the pool;
    /// `observed` identifies its acquire for the observer.
    lease_ptr add(const core::claim& claim, std::string_view resource, std::uint64_t observed);
    void acquired(const lease_handle& lease);
    void changed(const core::claim& claim);
    void lost(const core::claim& claim, loss_reason reason);
    void held_long(const core::claim& claim);
    void renewing(const core::claim& claim);
    void renewed(const core::claim& claim, std::optional<errc> error);
    void extended(const core::claim& claim, std::optional<errc> error);
    void removed(const core::claim& claim, release_result result);
    /// \}

private:
    static constexpr std::size_t in_block = 64;
    using block = std::array<lease_ptr, in_block>;

    lease_ptr& place_of(core::handle<core::claim> claim) const noexcept {
        return (*leases_[claim.index / in_block])[claim.index % in_block];
    }
    lease_handle& of(const core::claim& claim) const noexcept { return *place_of(claim.self); }
    /// Ends a held lease, with or without a release.
    void let_go(lease_handle& lease, bool release);
    void cancel_extension(lease_handle& lease, std::uint64_t id);
    /// Reports the end of an extension by the library, if one is in flight.
    void end_renewal(lease_handle& lease, const error_code& error, const diagnostics& votes);
    /// Reports the end of a release. The removal of a lost lock is not a release: the loss was its
    /// end.
    void end_release(const lease_handle& lease, const diagnostics& votes);

    engine_driver& driver_;
    observer_feed& observer_;
    boost::intrusive_ptr<const lease_origin> origin_;
    std::vector<std::unique_ptr<block>> leases_; // by the index of the claim
};

}}} // namespace redlock::REDLOCK_ABI::detail
