#include "held_leases.hpp"

#include "config/lock_request.hpp"

#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

// A handler may own the lock that it waits for, and would keep itself alive.
held_leases::~held_leases() {
    for (const auto& some : leases_) {
        for (const lease_ptr& lease : *some) {
            if (lease) {
                lease->releasing.clear();
                if (lease_handle::particulars* const more = lease->more()) {
                    std::exchange(more->extending, {});
                    more->watching.clear();
                }
            }
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
    const net::socket_callbacks::section lock(driver_);
    if (ttl) {
        ttl = effective_ttl(*ttl, driver_.longest_ttl());
    }
    if (const validation valid =
            ttl ? check_extension(*ttl, driver_.configuration(), driver_.longest_ttl())
                : validation();
        !valid) {
        driver_.refuse_ttl(sink.out, lease->resource(), to_string(valid.error()), *ttl);
        fail(errc::invalid_argument);
        return;
    }
    if (lease->stage != lease_handle::phase::held) {
        if (sink.out != nullptr) {
            *sink.out = lease->more() != nullptr ? lease->more()->loss.value_or(diagnostics())
                                                 : diagnostics();
        }
        fail(lease->why_not_held());
        return;
    }
    core::engine& engine = driver_.engine();
    if (!ttl && !engine.may_downgrade(lease->claim)) {
        driver_.refuse(
            sink.out,
            lease->resource(),
            "allowed for a downgrade: an exclusive lock of one resource, in the guarded protocol");
        fail(errc::invalid_argument);
        return;
    }
    const std::uint64_t observed = observer_.started(
        lease->begun(operation_kind::extend, ttl.value_or(std::chrono::milliseconds(0))));
    lease->need_more().extending.push_back({id, sink, std::move(waiting), observed});
    driver_.dispatch([&](time_point now) {
        ttl ? engine.extend(lease->claim, *ttl, now) : engine.downgrade(lease->claim, now);
    });
}

void held_leases::cancel_extension(lease_handle& lease, std::uint64_t id) {
    for (auto& waiting : lease.need_more().extending) {
        if (waiting.id == id && waiting.done) {
            observer_.ended(
                lease.ended(waiting.observed, operation_kind::extend, aborted), diagnostics());
            completion<error_code, extend_result> complete = *std::move(waiting.done);
            waiting.done.reset(); // its place among the extensions stays
            std::move(complete)(driver_.io(), aborted, extend_result::extended);
        }
    }
}

void held_leases::release(
    lease_ptr lease, diagnostics* out, handler<error_code, release_result> done) {
    lease->end_once();
    const auto id = driver_.on_cancel(
        done, with_effects, [this, weak = std::weak_ptr(lease)](std::uint64_t id) {
            if (const auto found = weak.lock()) {
                found->releasing.complete(driver_.io(), id, aborted, release_result::uncertain);
            }
        });
    completion<error_code, release_result> waiting(std::move(done), driver_.io());
    const net::socket_callbacks::section lock(driver_);
    if (lease->result) {
        if (out != nullptr) {
            *out = lease->more() != nullptr ? lease->more()->removal.value_or(diagnostics())
                                            : diagnostics();
            out->message = to_string(*lease->result);
            out->resource = lease->resource();
        }
        std::move(waiting)(driver_.io(), error_code(), *lease->result);
        return;
    }
    lease->releasing.add({id, out, std::move(waiting)});
    let_go(*lease, true);
}

void held_leases::drop(lease_ptr lease, bool release) {
    const net::socket_callbacks::section lock(driver_);
    let_go(*lease, release);
}

void held_leases::let_go(lease_handle& lease, bool release) {
    if (lease.stage == lease_handle::phase::released || lease.result) {
        return;
    }
    const bool held =
        lease.stage == lease_handle::phase::held; // else the loss was reported as its end
    if (held) {
        lease.stage = lease_handle::phase::released;
        if (lease_handle::particulars* const more = lease.more()) {
            more->watching.complete_all(driver_.io(), errc::released, loss_reason::none);
            if (more->observed_renewal != 0) {
                end_renewal(lease, errc::released, diagnostics());
            }
        }
    }
    if (held && release && observer_) {
        lease.need_more().observed_release =
            observer_.started(lease.begun(operation_kind::release));
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
        observer_.abandoned(lease.seen());
    }
    if (abandoned) {
        place_of(lease.claim).reset();
    }
}

void held_leases::wait_lost(
    lease_ptr lease, diagnostics* out, handler<error_code, loss_reason> done) {
    const auto id = driver_.on_cancel(
        done, without_effects, [this, weak = std::weak_ptr(lease)](std::uint64_t id) {
            if (const auto found = weak.lock()) {
                found->need_more().watching.complete(driver_.io(), id, aborted, loss_reason::none);
            }
        });
    completion<error_code, loss_reason> waiting(std::move(done), driver_.io());
    const net::socket_callbacks::section lock(driver_);
    switch (lease->stage) {
    case lease_handle::phase::held:
        lease->need_more().watching.add({id, out, std::move(waiting)});
        break;
    case lease_handle::phase::released:
        std::move(waiting)(driver_.io(), errc::released, loss_reason::none);
        break;
    case lease_handle::phase::lost:
        if (out != nullptr) {
            *out = *lease->need_more().loss;
        }
        std::move(waiting)(driver_.io(), error_code(), lease->reason);
        break;
    }
}

void held_leases::listen(lease_handle& lease, const std::shared_ptr<loss_listener>& to) {
    const std::lock_guard lock(driver_.guard); // its end calls nobody: callers may hold a mutex
    if (lease.stage == lease_handle::phase::lost) {
        to->lost(to, *lease.need_more().loss);
    } else {
        lease.need_more().listener = to;
    }
}

// --- For the engine -----------------------------------------------------------------------------

void held_leases::belong_to(const std::shared_ptr<manager_impl>& manager) {
    origin_ =
        std::make_unique<lease_origin>(
            manager, driver_.io().executor, driver_.time(), driver_.configuration().key_prefix)
            .release();
}

held_leases::lease_ptr
held_leases::add(const core::claim& claim, std::string_view resource, std::uint64_t observed) {
    std::unique_ptr<const lease_handle::naming> named;
    if (claim.is_slot()) {
        const std::vector<std::uint32_t>& numbers = claim.slots();
        named = std::make_unique<const lease_handle::naming>(
            lease_handle::naming{name_of_slots(std::string(resource), numbers), numbers});
    } else if (claim.form() != core::lock_form::exclusive) {
        named = std::make_unique<const lease_handle::naming>(
            lease_handle::naming{std::string(resource), {}});
    }
    std::unique_ptr<const lease_handle::features> with;
    if (named || claim.fencing()) {
        with = std::make_unique<const lease_handle::features>(lease_handle::features{
            claim.fencing() ? std::optional(claim.fencing_token()) : std::nullopt,
            std::move(named)});
    }
    auto lease = std::make_shared<lease_handle>(origin_, claim.key(), std::move(with));
    lease->claim = claim.self;
    if (observed != 0) {
        lease->need_more().observed = observed;
    }
    while (leases_.size() <= claim.self.index / in_block) {
        leases_.push_back(std::make_unique<block>());
    }
    place_of(claim.self) = lease;
    changed(claim);
    return lease;
}

void held_leases::acquired(const lease_handle& lease) {
    if (observer_) {
        observer_.acquired(lease.seen());
    }
}

void held_leases::changed(const core::claim& claim) {
    lease_handle& lease = of(claim);
    lease.stop_at.store(claim.held_until().time_since_epoch().count(), std::memory_order_relaxed);
    lease.deadline.store(claim.deadline().time_since_epoch().count(), std::memory_order_relaxed);
}

}}} // namespace redlock::REDLOCK_ABI::detail
