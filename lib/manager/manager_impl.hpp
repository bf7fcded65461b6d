// The implementation of the manager. It checks the requests of callers, passes them to the engine,
// and passes results to the handlers. It decides only the steps of a change of members.

#pragma once

#include "config/lock_request.hpp"
#include "core/base/pool.hpp"
#include "held_leases.hpp"
#include "member_change.hpp"
#include "release_watch.hpp"

#include <redlock/lock_manager.hpp>

#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

class manager_impl final : public held_leases {
public:
    using held_leases::held_leases;

    /// \name From any thread
    /// \{
    void run(handler<> done);
    void ready(handler<> done);
    void close(handler<> done);
    /// The same as `close`, without a waiting handler.
    void shut_down() {
        const section lock(*this);
        begin_close();
    }
    void acquire(lock_request&& given, diagnostics_sink sink, handler<lock> done);
    void query(const target& asked, diagnostics_sink sink, handler<lock_status> done);
    /// `patient`: waits for another change that is planned, instead of an error.
    void change_members(member_changes&& wanted, bool patient, diagnostics* why, handler<> done);
    /// As `engine::found`.
    void found(bool unused) {
        const section lock(*this);
        engine().found(unused);
    }
    metrics get_metrics() const;
    health get_health() const {
        const std::lock_guard lock(guard);
        return engine().examine(now());
    }
    /// \}

    std::shared_ptr<void> common; // of the primitives; under the guard

private:
    friend class lock_watch;

    /// A call that waits for the engine, which identifies it by its cookie.
    struct call {
        core::handle<call> self;
        core::handle<core::acquire_call> wanted;     // of the engine, for a cancellation
        std::uint64_t observed = 0;                  // its number for the observer
        std::unique_ptr<const std::string> resource; // null: the key tells it
        diagnostics_sink sink;
        std::variant<
            std::monostate,
            completion<error_code, lock>,
            completion<error_code, lock_status>>
            done;

        std::uint64_t cookie() const noexcept {
            return std::uint64_t{self.index} << 32U | self.generation;
        }
        void reset() {
            wanted = {};
            observed = 0;
            resource.reset();
            sink = {};
            done.emplace<std::monostate>();
        }
    };

    // engine_driver
    time_point turn_ended() override;
    void time_came() override;

    // core::engine_callbacks
    using engine_driver::close;
    void acquired(const core::acquire_call& done, const core::claim& lease) override;
    void not_acquired(const core::acquire_call& done) override;
    void contention(std::string_view key, std::size_t waiting) override;
    void members_changed(const core::generation& present) override {
        observer_.members_changed(present.number, present.members);
    }
    void queried(std::uint64_t cookie, lock_status&& found) override;
    void heard(std::string_view key) override { watch_.release_notified(key); }
    void closed() override;

    error_code why_not_running() const noexcept {
        return engine().closing() ? errc::closed : errc::not_running;
    }
    // member_change.cpp
    void look_at_change();
    void end_change(const error_code& error = {}, const std::string& why = {});

    /// Starts to end all operations.
    void begin_close();
    /// Returns null for a call that has ended.
    call* find_call(std::uint64_t cookie) noexcept {
        return calls_.find(
            {static_cast<std::uint32_t>(cookie >> 32U), static_cast<std::uint32_t>(cookie)});
    }
    /// Ends a call, and posts its handler.
    template <typename Result>
    void end_call(call& ended, const error_code& error, Result result);
    /// The readable name of the lock; of slots the pool.
    std::string_view resource_of(const call& ended, const core::acquire_call& wanted) const;
    /// Reports the end of an acquire to the caller and to the observer.
    void report(
        const call& ended,
        const core::acquire_call& wanted,
        std::string_view resource,
        const error_code& error,
        const core::ballots& votes);
    /// Reports the end of a query in the same way; `found` is null if it was cancelled.
    void query_ended(const call& ended, const error_code& error, const lock_status* found);

    core::pool<call> calls_;
    release_watch watch_{io()};
    waiters<error_code> run_; // one at most
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
