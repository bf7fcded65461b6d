// What a `lock` refers to: the lease as its holder sees it. `held()` and similar functions are read
// from any thread without a lock; everything else is protected by the manager's guard.

#pragma once

#include "completion.hpp"
#include "core/slot_map.hpp"
#include "time_source.hpp"

#include <redlock/clock.hpp>
#include <redlock/lock.hpp>
#include <redlock/observer.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

class manager_impl;

/// State that the handles of one manager share. It may outlive the manager.
struct lease_origin {
    const std::weak_ptr<manager_impl> manager;
    const boost::asio::any_io_executor io;
    const time_source time;
};

class lease_handle {
public:
    lease_handle(
        std::shared_ptr<const lease_origin> origin,
        std::string resource,
        const std::array<char, 40>& token,
        std::optional<std::uint64_t> fencing_token)
        : origin(std::move(origin)),
          resource(std::move(resource)),
          token(token),
          fencing_token(fencing_token) {}

    static lock make_lock(std::shared_ptr<lease_handle> handle) { return lock(std::move(handle)); }

    /// \name From any thread
    /// \{
    time_point held_until() const noexcept {
        return ended.load(std::memory_order_acquire)
                   ? time_point::min()
                   : time_point(clock::duration(stop_at.load(std::memory_order_relaxed)));
    }
    /// Null if the manager is gone.
    std::shared_ptr<manager_impl> manager() const noexcept { return origin->manager.lock(); }
    const boost::asio::any_io_executor& io() const noexcept { return origin->io; }
    time_point now() const noexcept { return origin->time.now(); }
    /// Makes `held()` false: the lease was lost, or its holder ends it.
    void end() noexcept { ended.store(true, std::memory_order_release); }
    /// The holder ends the lease, even a lost one: nothing acts on it any more. Returns true the
    /// first time.
    bool end_lease() noexcept {
        end();
        return !gone.exchange(true, std::memory_order_acq_rel);
    }

    const std::shared_ptr<const lease_origin> origin;
    const std::string resource;
    const std::array<char, 40> token;
    const std::optional<std::uint64_t> fencing_token;
    std::atomic<clock::rep> stop_at{0};
    std::atomic<clock::rep> deadline{0};
    std::atomic<bool> ended{false};
    std::atomic<bool> gone{false};
    std::vector<std::uint32_t> slots; // numbers of its slots: set before the lock is returned
    /// \}

    /// \name Under the manager's guard
    /// \{
    enum class phase : std::uint8_t { held, lost, released };

    struct extend_waiter {
        std::uint64_t id;
        diagnostics_sink sink;
        std::optional<completion<error_code, extend_result>> done; // empty: cancelled
        std::uint64_t observed = 0;                                // its number for the observer
    };

    /// Why it cannot be used, once it is lost or released.
    error_code why_not_held() const {
        return stage == phase::released        ? errc::released
               : reason == loss_reason::closed ? errc::closed
                                               : errc::lost;
    }
    /// The lock as the observer sees it.
    held_lock seen() const { return {observed, resource, fencing_token}; }

    core::handle claim;
    phase stage = phase::held;
    loss_reason reason = loss_reason::none;
    std::optional<release_result> result;
    std::list<extend_waiter> extending; // a deque would allocate for every lease
    waiters<error_code, release_result> releasing;
    waiters<error_code, loss_reason> watching;
    std::uint64_t observed = 0; // number of the lock, then of its operations, for the observer
    std::uint64_t observed_renewal = 0;
    std::uint64_t observed_release = 0;
    std::unique_ptr<diagnostics> loss;    // the votes at the time of the loss
    std::unique_ptr<diagnostics> removal; // the votes on the removal after that
    /// \}
};

}}} // namespace redlock::REDLOCK_ABI::detail
