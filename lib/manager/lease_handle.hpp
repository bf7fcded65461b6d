// What a `lock` refers to: the lease as its holder sees it. `held()` and similar functions are read
// from any thread without a lock; everything else is protected by the manager's guard.

#pragma once

#include "completion.hpp"
#include "core/base/pool.hpp"
#include "core/bytes/keys.hpp"
#include "core/locks/owned_key.hpp"
#include "time_source.hpp"

#include <redlock/clock.hpp>
#include <redlock/lock.hpp>
#include <redlock/observer.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::core {
class claim;
}

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

class held_leases;

/// State that the handles of one manager share. It may outlive the manager.
struct lease_origin : boost::intrusive_ref_counter<lease_origin> {
    lease_origin(
        std::weak_ptr<held_leases> of,
        boost::asio::any_io_executor executor,
        time_source source,
        std::string prefix)
        : manager(std::move(of)),
          io(std::move(executor)),
          time(std::move(source)),
          key_prefix(std::move(prefix)) {}

    const std::weak_ptr<held_leases> manager;
    const boost::asio::any_io_executor io;
    const time_source time;
    const std::string key_prefix;
};

/// A process may hold very many: a pointer refers to what most leases never have.
class lease_handle {
public:
    /// What the key does not tell of the lock.
    struct features {
        std::optional<std::uint64_t> fencing_token;
        std::string resource; // of several resources, of readers and writers, or of slots; or empty
        std::vector<std::uint32_t> slots; // their numbers
    };

    /// `with`: null for an exclusive lock without fencing.
    lease_handle(
        boost::intrusive_ptr<const lease_origin> origin,
        core::owned_key key,
        std::unique_ptr<const features> with)
        : origin_(std::move(origin)),
          key_(std::move(key)),
          with_(std::move(with)) {}

    static lock make_lock(std::shared_ptr<lease_handle> handle) { return lock(std::move(handle)); }

    /// \name From any thread
    /// \{
    time_point held_until() const noexcept {
        return ended_.load(std::memory_order_acquire)
                   ? time_point::min()
                   : time_point(clock::duration(stop_at.load(std::memory_order_relaxed)));
    }
    /// Null if the manager is gone.
    std::shared_ptr<held_leases> manager() const noexcept { return origin_->manager.lock(); }
    const boost::asio::any_io_executor& io() const noexcept { return origin_->io; }
    time_point now() const noexcept { return origin_->time.now(); }
    std::string_view resource() const noexcept {
        return with_ && !with_->resource.empty() ? std::string_view(with_->resource)
                                                 : core::resource_of(key_, origin_->key_prefix);
    }
    std::span<const std::uint32_t> slots() const noexcept {
        return with_ ? std::span<const std::uint32_t>(with_->slots)
                     : std::span<const std::uint32_t>();
    }
    std::string_view token() const noexcept { return key_.token(); }
    std::optional<std::uint64_t> fencing_token() const noexcept {
        return with_ ? with_->fencing_token : std::nullopt;
    }
    /// Makes `held()` false: the lease was lost, or its holder ends it.
    void end() noexcept { ended_.store(true, std::memory_order_release); }
    /// The holder ends the lease, even a lost one: nothing acts on it any more. Returns true the
    /// first time.
    bool end_once() noexcept {
        end();
        return !gone_.exchange(true, std::memory_order_acq_rel);
    }

    std::atomic<clock::rep> stop_at{0};
    std::atomic<clock::rep> deadline{0};
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

    /// What a lease has while somebody extends or watches it, after its loss, and with an observer.
    struct particulars {
        std::list<extend_waiter> extending; // a deque would allocate for every lease
        waiters<error_code, loss_reason> watching;
        std::weak_ptr<loss_listener> listener;
        std::uint64_t observed = 0; // number of the lock, then of its operations, for the observer
        std::uint64_t observed_renewal = 0;
        std::uint64_t observed_release = 0;
        std::unique_ptr<const diagnostics> loss;    // the votes at the time of the loss
        std::unique_ptr<const diagnostics> removal; // the votes on the removal after that
    };

    /// Null if there are none.
    particulars* more() noexcept { return more_.get(); }
    particulars& need_more() {
        if (!more_) {
            more_ = std::make_unique<particulars>();
        }
        return *more_;
    }
    /// Number of the lock for the observer; 0 without one.
    std::uint64_t observed() const noexcept { return more_ ? more_->observed : 0; }

    /// Why it cannot be used, once it is lost or released.
    error_code why_not_held() const {
        return stage == phase::released        ? errc::released
               : reason == loss_reason::closed ? errc::closed
                                               : errc::lost;
    }
    /// The lock as the observer sees it.
    held_lock seen() const { return {observed(), resource(), fencing_token()}; }
    /// The start and the end of an operation on the lock.
    operation begun(operation_kind kind, std::chrono::milliseconds ttl = {}) const {
        return {.kind = kind, .resource = resource(), .lock = observed(), .ttl = ttl};
    }
    operation ended(std::uint64_t id, operation_kind kind) const {
        return {.id = id, .kind = kind, .resource = resource(), .lock = observed()};
    }

    core::handle<core::claim> claim;
    waiters<error_code, release_result> releasing;
    phase stage = phase::held;
    loss_reason reason = loss_reason::none;
    std::optional<release_result> result;
    /// \}

private:
    std::atomic<bool> ended_{false};
    std::atomic<bool> gone_{false};
    const boost::intrusive_ptr<const lease_origin> origin_;
    const core::owned_key key_;
    const std::unique_ptr<const features> with_;
    std::unique_ptr<particulars> more_;
};

static_assert(sizeof(void*) > 8 || sizeof(lease_handle) <= 72, "a process may hold very many");

}}} // namespace redlock::REDLOCK_ABI::detail
