// The part of the manager that has the leases. Passes requests of the holders to the engine, and
// reports of the engine to the holders, to waiting calls and to the observer (lease_reports.cpp).

#pragma once

#include "config/explain.hpp"
#include "engine_driver.hpp"
#include "lease_handle.hpp"
#include "observer_feed.hpp"

#include <redlock/outcome.hpp>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

class held_leases : public engine_driver {
public:
    using lease_ptr = std::shared_ptr<lease_handle>;

    using engine_driver::engine_driver;

    /// \name For holders, from any thread
    /// \{
    /// Without a ttl, turns an exclusive lock into a reader's.
    void extend(
        lease_ptr lease,
        std::optional<std::chrono::milliseconds> ttl,
        diagnostics_sink sink,
        handler<extend_result> done);
    void release(lease_ptr lease, diagnostics* out, handler<release_result> done);
    void wait_lost(lease_ptr lease, diagnostics* out, handler<loss_reason> done);
    void listen(lease_handle& lease, const std::shared_ptr<loss_listener>& to);
    /// The last handle was destroyed: the lease is released, or it expires with its ttl.
    void drop(lease_ptr lease, bool release);
    /// \}

protected:
    /// Destroys the handlers that still wait.
    ~held_leases();

    /// A claim has become a lease. `resource` is the readable name of the lock, of slots the pool;
    /// `observed` identifies its acquire for the observer.
    lease_ptr add(const core::claim& claim, std::string_view resource, std::uint64_t observed);

    observer_feed observer_{
        configuration().observer, reports, [this](const std::string& what) {
            if (logs(log_level::error)) { // at once: reports are being delivered
                configuration().log.write(log_level::error, printable(what));
            }
        }};

private:
    // core::engine_callbacks
    void lease_changed(const core::claim& claim) override;
    void lease_lost(const core::claim& claim, loss_reason reason) override;
    void held_long(const core::claim& claim) override;
    void renewing(const core::claim& claim) override;
    void renewed(const core::claim& claim, std::optional<errc> error) override;
    void extended(const core::claim& claim, std::optional<errc> error) override;
    void removed(const core::claim& claim, release_result result) override;

    lease_handle& of(const core::claim& claim) const noexcept { return *leases_[claim.self.index]; }
    /// As `explain`, of the latest extension.
    void
    explain_extension(diagnostics& out, const core::claim& claim, const error_code& error) const;
    /// Ends a held lease, with or without a release.
    void let_go(lease_handle& lease, bool release);
    void cancel_extension(lease_handle& lease, std::uint64_t id);
    /// Reports the end of an extension by the library, if one is in flight.
    void end_renewal(lease_handle& lease, const error_code& error, const diagnostics& votes);

    boost::intrusive_ptr<const lease_origin> origin_;
    std::deque<lease_ptr> leases_; // by the index of the claim
};

}}} // namespace redlock::REDLOCK_ABI::detail
