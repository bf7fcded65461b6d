#include "held_leases.hpp"

#include "lock_request.hpp"

#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

namespace {

held_lock seen(const lease_handle& lease) {
    return {lease.observed, lease.resource, lease.fencing_token};
}

error_code result_of(std::optional<errc> error) {
    return error ? make_error_code(*error) : error_code();
}

// Whether `max_hold` ends the lease before the ttl that the extension asked for.
bool ends_early(const core::claim& claim, core::drift_bound drift) {
    return claim.held().capped()
           && claim.held().deadline()
                  < core::guaranteed_until(claim.extending.sent, claim.extending.ttl, drift);
}

error_code why_not_held(const lease_handle& lease) {
    return lease.stage == lease_handle::phase::released ? errc::released
           : lease.reason == loss_reason::closed        ? errc::closed
                                                        : errc::lost;
}

} // namespace

// A handler may own the lock that it waits for, and would keep itself alive.
held_leases::~held_leases() {
    for (const lease_ptr& lease : leases_) {
        if (lease) {
            std::exchange(lease->extending, {});
            lease->releasing.clear();
            lease->watching.clear();
        }
    }
}

// --- For holders --------------------------------------------------------------------------------

void held_leases::extend(
    lease_ptr lease,
    std::optional<std::chrono::milliseconds> ttl,
    diagnostics_sink sink,
    handler<error_code, extend_result> done) {
    const auto id = driver_.on_cancel(
        done, with_effects, [this, weak = std::weak_ptr(lease)](std::uint64_t id) {
            if (const auto found = weak.lock()) {
                cancel_extension(*found, id);
            }
        });
    completion<error_code, extend_result> waiting(std::move(done), driver_.io());
    const auto fail = [&](const error_code& error) {
        std::move(waiting)(driver_.io(), error, extend_result::extended);
    };
    const net::link_callbacks::section lock(driver_);
    if (ttl) {
        ttl = effective_ttl(*ttl, driver_.configuration());
    }
    if (const validation valid =
            ttl ? validate_extension(*ttl, driver_.configuration()) : validation();
        !valid) {
        driver_.refuse(sink.out, lease->resource, to_string(valid.error()));
        fail(errc::invalid_argument);
        return;
    }
    if (lease->stage != lease_handle::phase::held) {
        if (sink.out != nullptr) {
            *sink.out = lease->loss ? *lease->loss : diagnostics();
        }
        fail(why_not_held(*lease));
        return;
    }
    core::engine& engine = driver_.engine();
    if (!ttl && !engine.writes(lease->claim)) {
        driver_.refuse(
            sink.out,
            lease->resource,
            "this is not a writer's lock; allowed for a downgrade: one of lock_mode::writer");
        fail(errc::invalid_argument);
        return;
    }
    const std::uint64_t observed = observer_.started(
        {.kind = operation_kind::extend,
         .resource = lease->resource,
         .lock = lease->observed,
         .ttl = ttl.value_or(std::chrono::milliseconds(0))});
    lease->extending.push_back({id, sink, std::move(waiting), observed});
    driver_.dispatch([&](time_point now) {
        ttl ? engine.extend(lease->claim, *ttl, now) : engine.downgrade(lease->claim, now);
    });
}

void held_leases::cancel_extension(lease_handle& lease, std::uint64_t id) {
    for (auto& waiting : lease.extending) {
        if (waiting.id == id && waiting.done) {
            observer_.ended(
                {.id = waiting.observed,
                 .kind = operation_kind::extend,
                 .resource = lease.resource,
                 .lock = lease.observed,
                 .error = aborted},
                diagnostics());
            completion<error_code, extend_result> complete = *std::move(waiting.done);
            waiting.done.reset(); // its place among the extensions stays
            std::move(complete)(driver_.io(), aborted, extend_result::extended);
        }
    }
}

void held_leases::release(
    lease_ptr lease, diagnostics* out, handler<error_code, release_result> done) {
    lease->end_lease();
    const auto id = driver_.on_cancel(
        done, with_effects, [this, weak = std::weak_ptr(lease)](std::uint64_t id) {
            if (const auto found = weak.lock()) {
                found->releasing.complete(driver_.io(), id, aborted, release_result::uncertain);
            }
        });
    completion<error_code, release_result> waiting(std::move(done), driver_.io());
    const net::link_callbacks::section lock(driver_);
    if (lease->result) {
        if (out != nullptr) {
            *out = lease->removal ? *lease->removal : diagnostics();
            out->message = to_string(*lease->result);
            out->resource = lease->resource;
        }
        std::move(waiting)(driver_.io(), error_code(), *lease->result);
        return;
    }
    lease->releasing.add({id, out, std::move(waiting)});
    end_lease(*lease, true);
}

void held_leases::drop(lease_ptr lease, bool release) {
    const net::link_callbacks::section lock(driver_);
    end_lease(*lease, release);
}

void held_leases::end_lease(lease_handle& lease, bool release) {
    if (lease.stage == lease_handle::phase::released || lease.result) {
        return;
    }
    const bool held =
        lease.stage == lease_handle::phase::held; // else the loss was reported as its end
    if (held) {
        lease.stage = lease_handle::phase::released;
        if (!lease.watching.empty()) {
            lease.watching.complete_all(driver_.io(), errc::released, loss_reason::none);
        }
        if (lease.observed_renewal != 0) {
            end_renewal(lease, errc::released, diagnostics());
        }
    }
    if (held && release) {
        lease.observed_release = observer_.started(
            {.kind = operation_kind::release, .resource = lease.resource, .lock = lease.observed});
    }
    bool abandoned = false;
    driver_.dispatch([&](time_point now) {
        if (release) {
            driver_.engine().release(lease.claim, now);
        } else {
            abandoned = driver_.engine().abandon(lease.claim);
        }
    });
    if (held && !release) {
        observer_.abandoned(seen(lease));
    }
    if (abandoned) {
        leases_[lease.claim.index].reset();
    }
}

void held_leases::wait_lost(
    lease_ptr lease, diagnostics* out, handler<error_code, loss_reason> done) {
    const auto id = driver_.on_cancel(
        done, without_effects, [this, weak = std::weak_ptr(lease)](std::uint64_t id) {
            if (const auto found = weak.lock()) {
                found->watching.complete(driver_.io(), id, aborted, loss_reason::none);
            }
        });
    completion<error_code, loss_reason> waiting(std::move(done), driver_.io());
    const net::link_callbacks::section lock(driver_);
    switch (lease->stage) {
    case lease_handle::phase::held:
        lease->watching.add({id, out, std::move(waiting)});
        break;
    case lease_handle::phase::released:
        std::move(waiting)(driver_.io(), errc::released, loss_reason::none);
        break;
    case lease_handle::phase::lost:
        if (out != nullptr) {
            *out = *lease->loss;
        }
        std::move(waiting)(driver_.io(), error_code(), lease->reason);
        break;
    }
}

// --- For the engine -----------------------------------------------------------------------------

void held_leases::belong_to(const std::shared_ptr<manager_impl>& manager) {
    origin_ = std::make_shared<const lease_origin>(
        lease_origin{manager, driver_.io().executor, driver_.time()});
}

held_leases::lease_ptr
held_leases::add(const core::claim& claim, std::string&& resource, std::uint64_t observed) {
    auto lease = std::make_shared<lease_handle>(
        origin_,
        claim.is_slot() ? name_of_slots(resource, claim.slots->numbers) : std::move(resource),
        claim.token,
        claim.fencing ? std::optional(claim.fencing_token) : std::nullopt);
    lease->claim = claim.self;
    if (claim.is_slot()) {
        lease->slots = claim.slots->numbers;
    }
    lease->observed = observed;
    if (leases_.size() <= claim.self.index) {
        leases_.resize(claim.self.index + 1);
    }
    leases_[claim.self.index] = lease;
    changed(claim);
    return lease;
}

void held_leases::acquired(const lease_handle& lease) {
    if (observer_) {
        observer_.acquired(seen(lease));
    }
}

void held_leases::changed(const core::claim& claim) {
    lease_handle& lease = of(claim);
    lease.stop_at.store(
        claim.held().held_until().time_since_epoch().count(), std::memory_order_relaxed);
    lease.deadline.store(
        claim.held().deadline().time_since_epoch().count(), std::memory_order_relaxed);
}

void held_leases::lost(const core::claim& claim, loss_reason reason) {
    lease_handle& lease = of(claim);
    lease.end();
    lease.stage = lease_handle::phase::lost;
    lease.reason = reason;
    lease.loss = std::make_unique<diagnostics>();
    driver_.explain(
        *lease.loss, lease.resource, errc::lost, 0, driver_.now() - claim.asked_at, claim.votes);
    lease.loss->message = "lost: " + std::string(to_string(reason));
    if (lease.observed_renewal != 0) {
        end_renewal(lease, why_not_held(lease), *lease.loss);
    }
    observer_.lost(seen(lease), reason, *lease.loss);
    lease.watching.explain_all(*lease.loss);
    lease.watching.complete_all(driver_.io(), error_code(), reason);
}

void held_leases::held_long(const core::claim& claim) {
    const auto held = driver_.now() - claim.held().held_since();
    if (driver_.logs(log_level::warning)) {
        const auto whole = std::chrono::floor<std::chrono::milliseconds>(held);
        driver_.log(
            log_level::warning,
            claim.key + ": held for " + std::to_string(whole.count()) + " ms already");
    }
    observer_.held_long(seen(of(claim)), held);
}

void held_leases::renewing(const core::claim& claim) {
    lease_handle& lease = of(claim);
    lease.observed_renewal = observer_.started(
        {.kind = operation_kind::renew,
         .resource = lease.resource,
         .lock = lease.observed,
         .ttl = claim.extending.ttl});
}

void held_leases::renewed(const core::claim& claim, std::optional<errc> error) {
    lease_handle& lease = of(claim);
    if (lease.observed_renewal != 0) { // else an earlier holder started it
        diagnostics votes;
        const error_code result = result_of(error);
        driver_.explain(
            votes, lease.resource, result, 1, driver_.now() - claim.extending.sent, claim.votes);
        end_renewal(lease, result, votes);
    }
}

void held_leases::end_renewal(
    lease_handle& lease, const error_code& error, const diagnostics& votes) {
    observer_.ended(
        {.id = std::exchange(lease.observed_renewal, 0),
         .kind = operation_kind::renew,
         .resource = lease.resource,
         .lock = lease.observed,
         .error = error},
        votes);
}

void held_leases::extended(const core::claim& claim, std::optional<errc> error) {
    lease_handle& lease = of(claim);
    lease_handle::extend_waiter& oldest = lease.extending.front();
    if (oldest.done) {
        const error_code result = result_of(error);
        observer_.ended(
            oldest.sink.on(result),
            {.id = oldest.observed,
             .kind = operation_kind::extend,
             .resource = lease.resource,
             .lock = lease.observed,
             .error = result},
            [&](diagnostics& votes) {
                driver_.explain(
                    votes,
                    lease.resource,
                    result,
                    1,
                    driver_.now() - claim.extending.sent,
                    claim.votes);
            });
        (*std::move(oldest.done))(
            driver_.io(),
            result,
            !error && ends_early(claim, driver_.engine().rules().drift) ? extend_result::capped
                                                                        : extend_result::extended);
    }
    lease.extending.pop_front();
}

void held_leases::removed(const core::claim& claim, release_result result) {
    const lease_ptr lease = std::move(leases_[claim.self.index]);
    lease->result = result;
    const bool lost = lease->stage == lease_handle::phase::lost; // its holder may ask for it later
    if (lost || lease->releasing.wants_explanation()
        || (observer_ && lease->observed_release != 0)) {
        diagnostics votes;
        // A lease that was handed off within this process, or held until its manager closed, was
        // not removed on any master.
        const bool asked = claim.is_ending();
        const auto elapsed = asked ? driver_.now() - claim.ending().began() : clock::duration(0);
        driver_.explain(
            votes, lease->resource, {}, 1, elapsed, asked ? claim.votes : core::ballots());
        votes.message = to_string(result);
        end_release(*lease, votes);
        lease->releasing.explain_all(votes);
        if (lost) {
            lease->removal = std::make_unique<diagnostics>(std::move(votes));
        }
    }
    lease->releasing.complete_all(driver_.io(), error_code(), result);
}

void held_leases::end_release(const lease_handle& lease, const diagnostics& votes) {
    if (lease.observed_release == 0) {
        return;
    }
    observer_.ended(
        {.id = lease.observed_release,
         .kind = operation_kind::release,
         .resource = lease.resource,
         .lock = lease.observed,
         .released = lease.result},
        votes);
    observer_.released(seen(lease), *lease.result);
}

}}} // namespace redlock::REDLOCK_ABI::detail
