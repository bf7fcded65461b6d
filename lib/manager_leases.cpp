// The manager's part in held locks: extension, release, loss.

#include "manager_impl.hpp"
#include "settings_of.hpp"

#include <boost/asio/error.hpp>

#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

void manager_impl::extend(
    std::shared_ptr<lease_handle> lease,
    std::optional<std::chrono::milliseconds> ttl,
    diagnostics* out,
    handler<error_code> done) {
    const auto id =
        on_cancel(done, [weak = std::weak_ptr(lease)](manager_impl& me, std::uint64_t id) {
            const auto lease = weak.lock();
            if (!lease) {
                return;
            }
            for (auto& waiting : lease->extending) {
                if (waiting.id == id && waiting.done) {
                    me.observe_end(
                        {.id = waiting.observed,
                         .kind = operation_kind::extend,
                         .resource = lease->resource,
                         .lock = lease->observed,
                         .error = aborted},
                        diagnostics());
                    completion<error_code> complete = *std::move(waiting.done);
                    waiting.done.reset(); // its place in the line stays
                    std::move(complete)(me.io_, aborted);
                }
            }
        });
    completion<error_code> waiting(std::move(done), io_);
    const std::lock_guard lock(guard);
    std::string reason;
    if (ttl && validate_extension(*ttl, config_, reason)) {
        refuse(out, reason);
        std::move(waiting)(io_, errc::invalid_argument);
        return;
    }
    if (lease->stage != lease_handle::phase::held) {
        const error_code error = lease->stage == lease_handle::phase::released ? errc::released
                                 : lease->reason == loss_reason::closed        ? errc::closed
                                                                               : errc::lost;
        if (out != nullptr) {
            *out = lease->loss ? *lease->loss : diagnostics();
        }
        std::move(waiting)(io_, error);
        return;
    }
    if (!ttl && !engine_.writes(lease->claim)) {
        refuse(out, "only a writer's lock of a shared_mutex can be downgraded");
        std::move(waiting)(io_, errc::invalid_argument);
        return;
    }
    const std::uint64_t observed = observe_start(
        {.kind = operation_kind::extend,
         .resource = lease->resource,
         .lock = lease->observed,
         .ttl = ttl.value_or(std::chrono::milliseconds(0))});
    lease->extending.push_back({id, out, std::move(waiting), observed});
    drive([&](time_point now) {
        ttl ? engine_.extend(lease->claim, *ttl, now) : engine_.downgrade(lease->claim, now);
    });
}

void manager_impl::extended(const core::claim& claim, std::optional<errc> error) {
    lease_handle& lease = *leases_[claim.self.index];
    lease_handle::extend_waiter& oldest = lease.extending.front();
    if (oldest.done) {
        const error_code result = error ? make_error_code(*error) : error_code();
        tell(
            oldest.out,
            {.id = oldest.observed,
             .kind = operation_kind::extend,
             .resource = lease.resource,
             .lock = lease.observed,
             .error = result},
            1,
            time_.now() - claim.extending.sent,
            claim.votes);
        (*std::move(oldest.done))(io_, result);
    }
    lease.extending.pop_front();
}

void manager_impl::release(
    std::shared_ptr<lease_handle> lease,
    diagnostics* out,
    handler<error_code, release_result> done) {
    lease->let_go();
    const auto id =
        on_cancel(done, [weak = std::weak_ptr(lease)](manager_impl& me, std::uint64_t id) {
            const auto lease = weak.lock();
            if (!lease) {
                return;
            }
            lease->releasing.complete(me.io_, id, aborted, release_result::uncertain);
        });
    completion<error_code, release_result> waiting(std::move(done), io_);
    const std::lock_guard lock(guard);
    if (lease->result) {
        if (out != nullptr) {
            *out = lease->loss ? *lease->loss : diagnostics();
            out->message = to_string(*lease->result);
        }
        std::move(waiting)(io_, error_code(), *lease->result);
        return;
    }
    lease->releasing.add({id, out, std::move(waiting)});
    let_go(*lease, true);
}

void manager_impl::drop(std::shared_ptr<lease_handle> lease, bool release) {
    const std::lock_guard lock(guard);
    let_go(*lease, release);
}

void manager_impl::let_go(lease_handle& lease, bool release) {
    if (lease.stage == lease_handle::phase::released || lease.result) {
        return;
    }
    const bool held = lease.stage == lease_handle::phase::held; // else its loss was its end
    if (held) {
        lease.stage = lease_handle::phase::released;
        lease.watching.complete_all(io_, errc::released, loss_reason::none);
        end_renewal(lease, errc::released, diagnostics());
    }
    if (held && release) {
        lease.observed_release = observe_start(
            {.kind = operation_kind::release, .resource = lease.resource, .lock = lease.observed});
    }
    bool abandoned = false;
    drive([&](time_point now) {
        if (release) {
            engine_.release(lease.claim, now);
        } else {
            abandoned = engine_.abandon(lease.claim);
        }
    });
    if (held && !release) {
        observe_abandoned(lease);
    }
    if (abandoned) {
        leases_[lease.claim.index].reset();
    }
}

void manager_impl::wait_lost(
    std::shared_ptr<lease_handle> lease, diagnostics* out, handler<error_code, loss_reason> done) {
    const auto id =
        on_cancel(done, [weak = std::weak_ptr(lease)](manager_impl& me, std::uint64_t id) {
            const auto lease = weak.lock();
            if (!lease) {
                return;
            }
            lease->watching.complete(me.io_, id, aborted, loss_reason::none);
        });
    completion<error_code, loss_reason> waiting(std::move(done), io_);
    const std::lock_guard lock(guard);
    switch (lease->stage) {
    case lease_handle::phase::held:
        lease->watching.add({id, out, std::move(waiting)});
        break;
    case lease_handle::phase::released:
        std::move(waiting)(io_, errc::released, loss_reason::none);
        break;
    case lease_handle::phase::lost:
        if (out != nullptr) {
            *out = *lease->loss;
        }
        std::move(waiting)(io_, error_code(), lease->reason);
        break;
    }
}

void manager_impl::lease_changed(const core::claim& claim) {
    lease_handle& lease = *leases_[claim.self.index];
    lease.stop_at.store(claim.held_until().time_since_epoch().count(), std::memory_order_relaxed);
    lease.deadline.store(claim.deadline.time_since_epoch().count(), std::memory_order_relaxed);
}

void manager_impl::lease_lost(const core::claim& claim, loss_reason reason) {
    lease_handle& lease = *leases_[claim.self.index];
    lease.end();
    lease.stage = lease_handle::phase::lost;
    lease.reason = reason;
    lease.loss = std::make_unique<diagnostics>();
    explain(*lease.loss, errc::lost, 0, time_.now() - claim.asked_at, claim.votes);
    lease.loss->message = "lost: " + std::string(to_string(reason));
    observe_lost(lease);
    lease.watching.explain_all(*lease.loss);
    lease.watching.complete_all(io_, error_code(), reason);
}

void manager_impl::removed(const core::claim& claim, release_result result) {
    const std::shared_ptr<lease_handle> lease = std::move(leases_[claim.self.index]);
    lease->result = result;
    if (lease->releasing.wants_explanation()
        || (config_.observer && lease->observed_release != 0)) {
        diagnostics votes;
        // One that was handed over within this process was said to no master.
        const bool asked = claim.stage == core::claim::phase::removing;
        explain(
            votes, {}, 1, time_.now() - claim.removal_began, asked ? claim.votes : core::ballots());
        votes.message = to_string(result);
        observe_removed(*lease, votes);
        lease->releasing.explain_all(votes);
    }
    lease->releasing.complete_all(io_, error_code(), result);
}

}}} // namespace redlock::REDLOCK_ABI::detail
