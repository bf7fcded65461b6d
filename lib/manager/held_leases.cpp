#include "held_leases.hpp"

#include "config/lock_request.hpp"

#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

// A handler may own the lock that it waits for, and would keep itself alive.
held_leases::~held_leases() {
    for (const lease_ptr& lease : leases_) {
        if (lease) {
            lease->releasing.clear();
            if (lease_handle::particulars* const more = lease->more()) {
                std::exchange(more->extending, {});
                more->watching.clear();
            }
        }
    }
}

// --- For holders --------------------------------------------------------------------------------

void held_leases::extend(
    lease_ptr lease,
    std::optional<std::chrono::milliseconds> ttl,
    diagnostics_sink sink,
    handler<extend_result> done) {
    const auto fail = [&](const error_code& error) {
        complete(io(), std::move(done), error, extend_result::extended);
    };
    const section lock(*this);
    if (ttl) {
        ttl = effective_ttl(*ttl, longest_ttl());
        const validation valid = check_extension(*ttl, configuration(), longest_ttl());
        if (!valid) {
            refuse(sink.out, lease->resource(), to_string(valid.error()), *ttl);
            fail(errc::invalid_argument);
            return;
        }
    }
    if (lease->stage != lease_handle::phase::held) {
        if (sink.out != nullptr) {
            const auto& votes = lease->need_more().loss;
            *sink.out = votes ? *votes : diagnostics();
        }
        fail(lease->why_not_held());
        return;
    }
    if (!ttl && !engine().may_downgrade(lease->claim)) {
        refuse(
            sink.out,
            lease->resource(),
            "allowed for a downgrade: an exclusive lock of one resource, in the guarded protocol");
        fail(errc::invalid_argument);
        return;
    }
    const auto id =
        on_cancel(done, with_effects, [this, weak = std::weak_ptr(lease)](std::uint64_t id, auto) {
            if (const auto found = weak.lock()) {
                cancel_extension(*found, id);
            }
        });
    completion<error_code, extend_result> waiting(std::move(done), io());
    const std::uint64_t observed = observer_.started(
        lease->begun(operation_kind::extend, ttl.value_or(std::chrono::milliseconds(0))));
    lease->need_more().extending.push_back({id, sink, std::move(waiting), observed});
    dispatch([&](time_point now) {
        ttl ? engine().extend(lease->claim, *ttl, now) : engine().downgrade(lease->claim, now);
    });
}

void held_leases::cancel_extension(lease_handle& lease, std::uint64_t id) {
    for (auto& waiting : lease.need_more().extending) {
        if (waiting.id == id && waiting.done) {
            observer_.report(
                &observer::ended,
                lease.ended(waiting.observed, operation_kind::extend),
                aborted,
                diagnostics());
            (*std::move(waiting.done))(io(), aborted, extend_result::extended);
            waiting.done.reset(); // its place among the extensions stays
        }
    }
}

void held_leases::release(lease_ptr lease, diagnostics* out, handler<release_result> done) {
    lease->end_once();
    completion<error_code, release_result> waiting(std::move(done), io());
    const section lock(*this);
    if (lease->result) {
        if (out != nullptr) {
            const auto& votes = lease->need_more().removal;
            *out = votes ? *votes : diagnostics();
            out->message = to_string(*lease->result);
            out->resource = lease->resource();
        }
        std::move(waiting)(io(), error_code(), *lease->result);
        return;
    }
    add_to(
        lease->releasing, lease, with_effects, out, std::move(waiting), release_result::uncertain);
    let_go(*lease, true);
}

void held_leases::drop(lease_ptr lease, bool release) {
    const section lock(*this);
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
            more->watching.complete_all(io(), errc::released, loss_reason::none);
            end_renewal(lease, errc::released, diagnostics());
        }
    }
    if (held && release && observer_) {
        lease.need_more().observed_release =
            observer_.started(lease.begun(operation_kind::release));
    }
    bool abandoned = false;
    dispatch([&](time_point now) {
        if (release) {
            engine().release(lease.claim, now);
        } else {
            abandoned = engine().abandon(lease.claim);
        }
    });
    if (held && !release) {
        observer_.report(&observer::abandoned, lease.seen());
    }
    if (abandoned) {
        lease.result = release_result::uncertain; // for a release that has not begun yet
        leases_[lease.claim.index].reset();
    }
}

void held_leases::wait_lost(lease_ptr lease, diagnostics* out, handler<loss_reason> done) {
    const section lock(*this);
    if (lease->stage == lease_handle::phase::held) {
        auto& watching = lease->need_more().watching;
        add_to(watching, lease, without_effects, out, {std::move(done), io()}, loss_reason::none);
        return;
    }
    const bool lost = lease->stage == lease_handle::phase::lost; // else it was released
    if (lost && out != nullptr) {
        *out = *lease->need_more().loss;
    }
    const error_code error = lost ? error_code() : errc::released;
    complete(io(), std::move(done), error, lease->reason);
}

void held_leases::listen(lease_handle& lease, const std::shared_ptr<loss_listener>& to) {
    const std::lock_guard lock(guard); // its end calls nobody: callers may hold a mutex
    if (lease.stage == lease_handle::phase::lost) {
        to->lost(to, *lease.need_more().loss);
    } else {
        lease.need_more().listener = to;
    }
}

// --- For the engine -----------------------------------------------------------------------------

held_leases::lease_ptr
held_leases::add(const core::claim& claim, std::string_view resource, std::uint64_t observed) {
    std::unique_ptr<lease_handle::features> with;
    if (claim.fencing() || claim.form() != core::lock_form::exclusive || claim.is_slot()) {
        with = std::make_unique<lease_handle::features>();
        if (claim.fencing()) {
            with->fencing_token = claim.fencing_token();
        }
        if (claim.is_slot()) {
            with->slots = claim.slots();
            with->resource = name_of_slots(resource, with->slots);
        } else if (claim.form() != core::lock_form::exclusive) {
            with->resource = resource;
        }
    }
    if (!origin_) {
        const auto me = std::static_pointer_cast<held_leases>(shared_from_this());
        origin_ =
            std::make_unique<lease_origin>(me, io().executor, time(), configuration().key_prefix)
                .release();
    }
    auto lease = std::make_shared<lease_handle>(origin_, claim.key(), std::move(with));
    lease->claim = claim.self;
    if (observed != 0) {
        lease->need_more().observed = observed;
    }
    if (leases_.size() <= claim.self.index) {
        leases_.resize(claim.self.index + 1);
    }
    leases_[claim.self.index] = lease;
    lease_changed(claim);
    return lease;
}

void held_leases::lease_changed(const core::claim& claim) {
    lease_handle& lease = of(claim);
    lease.stop_at.store(claim.held_until().time_since_epoch().count(), std::memory_order_relaxed);
    lease.deadline.store(claim.deadline().time_since_epoch().count(), std::memory_order_relaxed);
}

}}} // namespace redlock::REDLOCK_ABI::detail
