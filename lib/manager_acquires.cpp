// The manager's part in acquires and queries: arguments are checked, and ends are told.

#include "manager_impl.hpp"
#include "settings_of.hpp"

#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

void manager_impl::acquire(
    std::string resource,
    acquire_options options,
    diagnostics* out,
    handler<error_code, lock> done) {
    const std::lock_guard lock(guard);
    std::string reason;
    if (validate_resource(resource, reason) || validate(options, config_, reason)) {
        refuse(out, reason, std::move(done));
        return;
    }
    begin_acquire(std::move(resource), {.options = options}, out, std::move(done));
}

void manager_impl::acquire_as(
    std::string resource,
    const std::string& lock_token,
    acquire_options options,
    diagnostics* out,
    handler<error_code, lock> done) {
    const std::lock_guard lock(guard);
    std::string reason;
    if (validate_resource(resource, reason) || validate_token(lock_token, reason)
        || validate(options, config_, reason)) {
        refuse(out, reason, std::move(done));
        return;
    }
    if (options.wait != wait_for::none()) {
        refuse(
            out,
            "a token of one's own is for one attempt; allowed for wait: none()",
            std::move(done));
        return;
    }
    begin_acquire(
        std::move(resource), {.options = options, .token = lock_token}, out, std::move(done));
}

void manager_impl::attach(
    std::string resource,
    const std::string& lock_token,
    acquire_options options,
    diagnostics* out,
    handler<error_code, lock> done) {
    const std::lock_guard lock(guard);
    std::string reason;
    if (validate_resource(resource, reason) || validate_token(lock_token, reason)
        || validate(options, config_, reason)) {
        refuse(out, reason, std::move(done));
        return;
    }
    begin_acquire(
        std::move(resource),
        {.options = options, .token = lock_token, .attaches = true},
        out,
        std::move(done));
}

void manager_impl::begin_acquire(
    std::string resource,
    core::acquire_request request,
    diagnostics* out,
    handler<error_code, lock> done) {
    acquire_op& op = acquires_.create();
    const core::handle name = op.self;
    on_cancel(done, [name](manager_impl& me, std::uint64_t) {
        if (const acquire_op* const op = me.acquires_.find(name)) {
            me.drive([&](time_point now) { me.engine_.cancel(op->wanted, now); });
        }
    });
    completion<error_code, redlock::lock> waiting(std::move(done), io_);
    op.resource = std::move(resource);
    op.out = out;
    op.done.emplace(std::move(waiting));
    op.observed = observe_start(
        {.resource = op.resource, .ttl = request.options.ttl, .options = &request.options});
    request.cookie = cookie_of(name);
    request.resource = op.resource;
    drive([&](time_point now) {
        const core::handle wanted =
            request.attaches ? engine_.attach(request, now) : engine_.acquire(request, now);
        if (acquire_op* const pending = acquires_.find(name)) {
            pending->wanted = wanted;
        }
    });
}

void manager_impl::acquired(const core::operation& done, const core::claim& claim) {
    acquire_op& op = *acquires_.find(handle_of(done.cookie));
    if (claim.is_slot()) {
        op.resource = name_of_slots(op.resource, claim.slots->numbers);
    }
    auto lease = std::make_shared<lease_handle>(
        self(),
        io_.executor,
        time_,
        std::move(op.resource),
        claim.token,
        claim.fencing ? std::optional(claim.fencing_token) : std::nullopt);
    lease->claim = claim.self;
    if (claim.is_slot()) {
        lease->slots = claim.slots->numbers;
    }
    lease->observed = op.observed;
    if (leases_.size() <= claim.self.index) {
        leases_.resize(claim.self.index + 1);
    }
    leases_[claim.self.index] = lease;
    lease_changed(claim);
    tell(
        op.out,
        {.id = op.observed, .resource = lease->resource, .lock = op.observed},
        done.attempts,
        done.decided_at - done.began,
        claim.votes);
    observe_acquired(*lease);
    completion<error_code, lock> complete = *std::move(op.done);
    acquires_.destroy(op);
    std::move(complete)(io_, error_code(), lease_handle::make_lock(std::move(lease)));
}

void manager_impl::not_acquired(const core::operation& done) {
    acquire_op& op = *acquires_.find(handle_of(done.cookie));
    const error_code error = done.outcome ? make_error_code(*done.outcome) : aborted;
    tell(
        op.out,
        {.id = op.observed, .resource = op.resource, .error = error},
        done.attempts,
        done.decided_at - done.began,
        done.last);
    completion<error_code, lock> complete = *std::move(op.done);
    acquires_.destroy(op);
    std::move(complete)(io_, error, lock());
}

void manager_impl::query(std::string resource, handler<error_code, lock_status> done) {
    const auto id = on_cancel(done, [](manager_impl& me, std::uint64_t id) {
        me.queries_.for_each([&](query_op& op) {
            if (op.id == id) {
                me.observe_end(
                    {.id = op.observed,
                     .kind = operation_kind::query,
                     .resource = op.resource,
                     .error = aborted},
                    diagnostics());
                completion<error_code, lock_status> complete = *std::move(op.done);
                me.queries_.destroy(op);
                std::move(complete)(me.io_, aborted, lock_status());
            }
        });
    });
    completion<error_code, lock_status> waiting(std::move(done), io_);
    const std::lock_guard lock(guard);
    std::string reason;
    if (validate_resource(resource, reason)) {
        refuse(nullptr, reason);
        std::move(waiting)(io_, errc::invalid_argument, lock_status());
        return;
    }
    if (!engine_.running()) {
        std::move(waiting)(
            io_, engine_.closing() ? errc::closed : errc::not_running, lock_status());
        return;
    }
    query_op& op = queries_.create();
    op.id = id;
    op.resource = std::move(resource);
    op.done.emplace(std::move(waiting));
    op.observed = observe_start({.kind = operation_kind::query, .resource = op.resource});
    const std::uint64_t cookie = cookie_of(op.self);
    drive([&](time_point now) { engine_.ask(cookie, op.resource, now); });
}

void manager_impl::queried(core::query& done) {
    query_op* const op = queries_.find(handle_of(done.cookie));
    if (op == nullptr) {
        return; // cancelled
    }
    observe_end(
        {.id = op->observed,
         .kind = operation_kind::query,
         .resource = op->resource,
         .found = done.result.state},
        done.result);
    completion<error_code, lock_status> complete = *std::move(op->done);
    queries_.destroy(*op);
    std::move(complete)(io_, error_code(), std::move(done.result));
}

void manager_impl::refuse(diagnostics* out, const std::string& reason) {
    if (out != nullptr) {
        *out = {};
        out->message = reason;
    }
    if (logs(log_level::error)) {
        log(log_level::error, "refused: " + reason);
    }
}

void manager_impl::refuse(
    diagnostics* out, const std::string& reason, handler<error_code, lock> done) {
    refuse(out, reason);
    completion<error_code, redlock::lock>(std::move(done), io_)(
        io_, errc::invalid_argument, redlock::lock());
}

}}} // namespace redlock::REDLOCK_ABI::detail
