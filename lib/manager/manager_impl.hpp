// The implementation of the manager. It checks the requests of callers, passes them to the engine,
// and passes results to the handlers. It makes no decisions.

#pragma once

#include "config/lock_request.hpp"
#include "engine_driver.hpp"
#include "held_leases.hpp"
#include "member_change.hpp"
#include "observer_feed.hpp"
#include "pending.hpp"
#include "release_watch.hpp"

#include <redlock/lock_manager.hpp>

#include <optional>
#include <string>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

class manager_impl final : public engine_driver {
public:
    /// Uses the transport of `make`, if there is one.
    manager_impl(
        const boost::asio::any_io_executor& io,
        config configuration,
        time_source time = {},
        const backend_maker& make = {});

    /// \name From any thread
    /// \{
    void run(handler<error_code> done);
    void ready(handler<error_code> done);
    void close(handler<error_code> done);
    /// The same as `close`, without a waiting handler.
    void shut_down() {
        const section lock(*this);
        begin_close();
    }
    void acquire(lock_request&& given, diagnostics_sink sink, handler<error_code, lock> done);
    void query(const target& asked, diagnostics_sink sink, handler<error_code, lock_status> done);
    /// `patient`: waits for another change that is planned, instead of an error.
    void change_members(
        member_changes&& wanted, bool patient, diagnostics* why, handler<error_code> done);
    /// As `engine::found`.
    void found(bool unused) {
        const section lock(*this);
        engine().found(unused);
    }
    held_leases& leases() noexcept { return leases_; }
    metrics get_metrics() const;
    health get_health() const {
        const std::lock_guard lock(guard);
        return engine().examine(now());
    }
    /// \}

private:
    friend class lock_watch;
    using calls = pending<lock, lock_status>;

    // engine_driver
    time_point turn_ended() override;
    void time_came() override;

    // core::engine_callbacks
    using engine_driver::close;
    void acquired(const core::acquire_call& done, const core::claim& lease) override;
    void not_acquired(const core::acquire_call& done) override;
    void lease_changed(const core::claim& lease) override { leases_.changed(lease); }
    void lease_lost(const core::claim& lease, loss_reason reason) override {
        leases_.lost(lease, reason);
    }
    void held_long(const core::claim& lease) override { leases_.held_long(lease); }
    void contention(std::string_view key, std::size_t waiting) override;
    void members_changed(const core::generation& present) override {
        observer_.members_changed(present.number, present.members);
    }
    void renewing(const core::claim& lease) override { leases_.renewing(lease); }
    void renewed(const core::claim& lease, std::optional<errc> error) override {
        leases_.renewed(lease, error);
    }
    void extended(const core::claim& lease, std::optional<errc> error) override {
        leases_.extended(lease, error);
    }
    void removed(const core::claim& lease, release_result result) override {
        leases_.removed(lease, result);
    }
    void queried(std::uint64_t cookie, lock_status&& found) override;
    void heard(std::string_view key) override { watch_.release_notified(key); }
    void closed() override;

    std::string key_of(std::string_view resource) const;
    error_code why_not_running() const noexcept {
        return engine().closing() ? errc::closed : errc::not_running;
    }
    // member_change.cpp
    void look_at_change();
    void end_change(const error_code& error = {}, const std::string& why = {});

    /// Starts to end all operations.
    void begin_close();
    /// The readable name of the lock; of slots the pool.
    std::string_view resource_of(const calls::call& ended, const core::acquire_call& wanted) const;
    /// Reports the end of an acquire to the caller and to the observer.
    void report(
        const calls::call& ended,
        const core::acquire_call& wanted,
        std::string_view resource,
        const error_code& error,
        const core::ballots& votes);
    /// Reports the end of a query in the same way; `found` is null if it was cancelled.
    void query_ended(const calls::call& ended, const error_code& error, const lock_status* found);

    observer_feed observer_;
    calls calls_;
    held_leases leases_;
    release_watch watch_;
    std::optional<completion<error_code>> run_;
    bool run_cancelled_ = false;
    waiters<error_code> ready_;
    struct {
        member_changes wanted;
        bool patient = false;
        std::optional<member_change> step; // that is being made
        std::uint64_t generation = 0;      // at the last look; 0: none yet
        waiters<error_code> waiting;       // none: no change
    } change_;
    waiters<error_code> closing_;
};

}}} // namespace redlock::REDLOCK_ABI::detail
