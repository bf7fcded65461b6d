// The manager's part in being observed: what happens is told to the observer, which can neither
// hold it up with an exception nor learn a token.

#include "core/keys.hpp"
#include "manager_impl.hpp"

#include <exception>
#include <string>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

namespace {

held_lock seen(const lease_handle& lease) {
    return {lease.observed, lease.resource, lease.fencing_token};
}

diagnostics words_of(const lock_status& status, std::size_t quorum) {
    diagnostics out;
    out.message = to_string(status.state);
    out.quorum = quorum;
    for (const master_lock_status& one : status.masters) {
        out.votes.push_back({
            .endpoint = one.endpoint,
            .vote = one.vote,
            .latency = {},
            .time_left = one.time_left,
            .text = one.text,
        });
    }
    return out;
}

} // namespace

template <typename F>
void manager_impl::observe(F f) {
    if (!config_.observer) {
        return;
    }
    std::string what;
    try {
        f(*config_.observer);
        return;
    } catch (const std::exception& error) {
        what = error.what();
    } catch (...) {
        what = "something that is no std::exception";
    }
    ++observer_errors_;
    if (logs(log_level::error)) {
        log(log_level::error, "the observer threw: " + what);
    }
}

std::uint64_t manager_impl::observe_start(operation_start what) {
    if (!config_.observer) {
        return 0;
    }
    what.id = ++observed_;
    observe([&](observer& one) { one.started(what); });
    return what.id;
}

void manager_impl::observe_end(const operation_end& what, const diagnostics& votes) {
    observe([&](observer& one) { one.ended(what, votes); });
}

void manager_impl::observe_end(const operation_end& what, const lock_status& status) {
    if (config_.observer) {
        observe_end(what, words_of(status, engine_.rules().quorum()));
    }
}

void manager_impl::tell(
    diagnostics* out,
    const operation_end& what,
    unsigned attempts,
    clock::duration elapsed,
    const core::ballots& votes) {
    if (out == nullptr && !config_.observer) {
        return;
    }
    diagnostics own;
    diagnostics& words = out != nullptr ? *out : own;
    explain(words, what.error, attempts, elapsed, votes);
    observe_end(what, words);
}

void manager_impl::observe_acquired(const lease_handle& lease) {
    observe([&](observer& one) { one.acquired(seen(lease)); });
}

void manager_impl::observe_lost(lease_handle& lease) {
    const bool ours = lease.reason == loss_reason::closed;
    end_renewal(lease, ours ? errc::closed : errc::lost, *lease.loss);
    observe([&](observer& one) { one.lost(seen(lease), lease.reason, *lease.loss); });
}

void manager_impl::observe_abandoned(const lease_handle& lease) {
    observe([&](observer& one) { one.abandoned(seen(lease)); });
}

// The removal of a lost lock is not a release: the loss was its end.
void manager_impl::observe_removed(const lease_handle& lease, const diagnostics& votes) {
    if (lease.observed_release == 0) {
        return;
    }
    observe_end(
        {.id = lease.observed_release,
         .kind = operation_kind::release,
         .resource = lease.resource,
         .lock = lease.observed,
         .released = lease.result},
        votes);
    observe([&](observer& one) { one.released(seen(lease), *lease.result); });
}

void manager_impl::renewing(const core::claim& claim) {
    lease_handle& lease = *leases_[claim.self.index];
    lease.observed_renewal = observe_start(
        {.kind = operation_kind::renew,
         .resource = lease.resource,
         .lock = lease.observed,
         .ttl = claim.extending.ttl});
}

void manager_impl::renewed(const core::claim& claim, std::optional<errc> error) {
    lease_handle& lease = *leases_[claim.self.index];
    if (lease.observed_renewal != 0) { // else its holder gave the lease to the present one
        diagnostics votes;
        const error_code result = error ? make_error_code(*error) : error_code();
        explain(votes, result, 1, time_.now() - claim.extending.sent, claim.votes);
        end_renewal(lease, result, votes);
    }
}

void manager_impl::end_renewal(
    lease_handle& lease, const error_code& error, const diagnostics& votes) {
    if (lease.observed_renewal != 0) {
        observe_end(
            {.id = std::exchange(lease.observed_renewal, 0),
             .kind = operation_kind::renew,
             .resource = lease.resource,
             .lock = lease.observed,
             .error = error},
            votes);
    }
}

void manager_impl::held_long(const core::claim& claim) {
    const lease_handle& lease = *leases_[claim.self.index];
    const auto held = time_.now() - claim.held_since;
    if (logs(log_level::warning)) {
        const auto whole = std::chrono::floor<std::chrono::milliseconds>(held);
        log(log_level::warning,
            claim.key + ": held for " + std::to_string(whole.count()) + " ms already");
    }
    observe([&](observer& one) { one.held_long(seen(lease), held); });
}

void manager_impl::contention(std::string_view key, std::size_t waiting) {
    if (logs(log_level::warning)) {
        log(log_level::warning,
            std::string(key) + ": " + std::to_string(waiting) + " acquires wait for it");
    }
    const std::string_view resource = core::resource_of(key, config_.key_prefix);
    observe([&](observer& one) { one.contention(resource, waiting); });
}

}}} // namespace redlock::REDLOCK_ABI::detail
