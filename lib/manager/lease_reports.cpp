// What the engine reports of held leases, passed on to the holders, to waiting calls and to the
// observer.

#include "held_leases.hpp"

#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

namespace {

error_code result_of(std::optional<errc> error) {
    return error ? make_error_code(*error) : error_code();
}

} // namespace

void held_leases::explain_extension(
    diagnostics& out, const core::claim& claim, const error_code& error) const {
    const auto elapsed = now() - claim.extension_sent();
    explain(out, of(claim).resource(), error, 1, elapsed, claim.votes);
}

void held_leases::lease_lost(const core::claim& claim, loss_reason reason) {
    lease_handle& lease = of(claim);
    lease.end();
    lease.stage = lease_handle::phase::lost;
    lease.reason = reason;
    lease_handle::particulars& more = lease.need_more();
    auto votes = std::make_unique<diagnostics>();
    diagnostics& loss = *votes;
    explain(loss, lease.resource(), errc::lost, 0, now() - claim.asked_at(), claim.votes);
    loss.message = "lost: " + std::string(to_string(reason));
    more.loss = std::move(votes);
    end_renewal(lease, lease.why_not_held(), loss);
    observer_.report(&observer::lost, lease.seen(), reason, loss);
    if (auto listener = more.listener.lock()) {
        loss_listener& one = *listener;
        one.lost(std::move(listener), loss);
    }
    more.watching.explain_all(loss);
    more.watching.complete_all(io(), error_code(), reason);
}

void held_leases::held_long(const core::claim& claim) {
    const auto held = now() - claim.held_since();
    if (logs(log_level::warning)) {
        const auto whole = std::chrono::floor<std::chrono::milliseconds>(held);
        log(log_level::warning,
            std::string(claim.key()) + ": held for " + std::to_string(whole.count())
                + " ms already");
    }
    observer_.report(&observer::held_long, of(claim).seen(), held);
}

void held_leases::renewing(const core::claim& claim) {
    if (!observer_) {
        return;
    }
    lease_handle& lease = of(claim);
    lease.need_more().observed_renewal =
        observer_.started(lease.begun(operation_kind::renew, claim.extension_ttl()));
}

void held_leases::renewed(const core::claim& claim, std::optional<errc> error) {
    lease_handle& lease = of(claim);
    if (lease.more() != nullptr
        && lease.more()->observed_renewal != 0) { // else an earlier holder's
        diagnostics votes;
        const error_code result = result_of(error);
        explain_extension(votes, claim, result);
        end_renewal(lease, result, votes);
    }
}

void held_leases::end_renewal(
    lease_handle& lease, const error_code& error, const diagnostics& votes) {
    if (const auto id = std::exchange(lease.need_more().observed_renewal, 0); id != 0) {
        observer_.report(&observer::ended, lease.ended(id, operation_kind::renew), error, votes);
    }
}

void held_leases::extended(const core::claim& claim, std::optional<errc> error) {
    lease_handle& lease = of(claim);
    std::list<lease_handle::extend_waiter>& extending = lease.need_more().extending;
    lease_handle::extend_waiter& oldest = extending.front();
    if (oldest.done) {
        const error_code result = result_of(error);
        observer_.ended(
            oldest.sink.on(result),
            lease.ended(oldest.observed, operation_kind::extend),
            result,
            [&](diagnostics& votes) { explain_extension(votes, claim, result); });
        (*std::move(oldest.done))(
            io(),
            result,
            !error && claim.ends_early(engine().rules().drift) ? extend_result::capped
                                                               : extend_result::extended);
    }
    extending.pop_front();
}

void held_leases::removed(const core::claim& claim, release_result result) {
    const lease_ptr lease = std::move(leases_[claim.self.index]);
    lease->result = result;
    const bool lost = lease->stage == lease_handle::phase::lost; // its holder may ask for it later
    const std::uint64_t observed = lease->more() != nullptr ? lease->more()->observed_release : 0;
    if (lost || lease->releasing.wants_explanation() || observed != 0) {
        diagnostics votes;
        // A lease that was handed off within this process, or held until its manager closed, was
        // not removed on any master.
        const bool asked = claim.is_ending();
        const auto elapsed = asked ? now() - claim.asked_at() : clock::duration(0);
        explain(votes, lease->resource(), {}, 1, elapsed, asked ? claim.votes : core::ballots());
        votes.message = to_string(result);
        if (observed != 0) {
            observer_.report(
                &observer::ended, lease->ended(observed, operation_kind::release), {}, votes);
            observer_.report(&observer::released, lease->seen(), result);
        }
        lease->releasing.explain_all(votes);
        if (lost) {
            lease->need_more().removal = std::make_unique<diagnostics>(std::move(votes));
        }
    }
    if (!lease->releasing.empty()) {
        lease->releasing.complete_all(io(), error_code(), result);
        handler_posted();
    }
}

}}} // namespace redlock::REDLOCK_ABI::detail
