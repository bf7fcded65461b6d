#include "manager_impl.hpp"

#include "config/explain.hpp"
#include "core/bytes/keys.hpp"

#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

// --- Start and close ----------------------------------------------------------------------------

void manager_impl::run(handler<> done) {
    const section lock(*this);
    if (engine().closing() || engine().running()) {
        if (!engine().closing() && logs(log_level::error)) {
            log(log_level::error, "refused: async_run was called before; a manager runs once");
        }
        const error_code twice = boost::asio::error::already_started;
        complete(io(), std::move(done), engine().closing() ? errc::closed : twice);
        return;
    }
    on_cancel(done, with_effects, [this](std::uint64_t, auto) {
        run_cancelled_ = run_cancelled_ || !engine().closing();
        begin_close();
    });
    run_.add({0, nullptr, completion<error_code>(std::move(done), io())});
    if (logs(log_level::warning)) {
        for (const std::string& one : warnings(configuration())) {
            log(log_level::warning, one);
        }
    }
    dispatch([this](time_point now) { engine().start(now); });
}

void manager_impl::ready(handler<> done) {
    const section lock(*this);
    if (!engine().running()) {
        complete(io(), std::move(done), why_not_running());
        return;
    }
    add_to(ready_, weak_from_this(), without_effects, nullptr, {std::move(done), io()});
    schedule_flush();
}

void manager_impl::close(handler<> done) {
    const section lock(*this);
    if (engine().closed_down()) {
        complete(io(), std::move(done), error_code());
        return;
    }
    add_to(closing_, weak_from_this(), with_effects, nullptr, {std::move(done), io()});
    begin_close();
}

void manager_impl::begin_close() {
    dispatch([this](time_point now) {
        engine().close(now);
        watch_.end(errc::closed);
    });
}

void manager_impl::closed() {
    sleep();
    run_.complete_all(io(), run_cancelled_ ? aborted : error_code());
    ready_.complete_all(io(), errc::closed);
    change_.waiting.complete_all(io(), errc::closed);
    closing_.complete_all(io(), error_code());
}

time_point manager_impl::turn_ended() {
    if (!ready_.empty() && engine().running() && engine().ready()) {
        ready_.complete_all(io(), error_code());
    }
    if (!change_.waiting.empty() && engine().running()) {
        look_at_change();
    }
    return watch_.next_due();
}

void manager_impl::time_came() {
    dispatch([this](time_point now) {
        watch_.time_passed(now);
        engine().time_passed(now);
    });
}

metrics manager_impl::get_metrics() const {
    const std::lock_guard lock(guard);
    metrics out = engine().count();
    out.observer_errors = observer_.errors();
    return out;
}

// --- Acquires -----------------------------------------------------------------------------------

void manager_impl::acquire(lock_request&& given, diagnostics_sink sink, handler<lock> done) {
    const section lock(*this);
    checked_request wanted(std::move(given));
    if (const validation valid = wanted.check(configuration(), longest_ttl()); !valid) {
        refuse(sink.out, wanted.resource, to_string(valid.error()), wanted.options.ttl);
        complete(io(), std::move(done), errc::invalid_argument, {});
        return;
    }
    const core::lock_form form = form_of(wanted);
    call& mine = calls_.create();
    const std::uint64_t cookie = mine.cookie();
    on_cancel(
        done, without_effects, [this, cookie](std::uint64_t, boost::asio::cancellation_type type) {
            const call* const found = find_call(cookie);
            if (found != nullptr && (ends(type) || engine().has_sent_nothing(found->wanted))) {
                dispatch([&](time_point now) { engine().cancel(found->wanted, now); });
            }
        });
    mine.done.emplace<completion<error_code, redlock::lock>>(std::move(done), io());
    mine.sink = sink;
    if (form != core::lock_form::exclusive || wanted.pool) {
        mine.resource = std::make_unique<const std::string>(wanted.resource);
    }
    mine.observed = observer_.started({.resource = wanted.resource, .ttl = wanted.options.ttl});
    const core::acquire_request request{
        .cookie = cookie,
        .resource = wanted.resource,
        .options = wanted.options,
        .token = wanted.secret,
        .attaches = wanted.uses == lock_request::secret_use::attach,
        .default_ttl = wanted.default_ttl,
        .form = form,
        .resources = wanted.resources,
        .slots = static_cast<std::uint32_t>(wanted.pool ? wanted.pool->size : 0),
        .wants = static_cast<std::uint32_t>(wanted.pool ? wanted.pool->count : 1),
    };
    dispatch([&](time_point now) {
        const auto name = engine().acquire(request, now);
        if (call* const waiting = find_call(cookie)) {
            waiting->wanted = name;
        }
    });
}

template <typename Result>
void manager_impl::end_call(call& ended, const error_code& error, Result result) {
    auto done = std::get<completion<error_code, Result>>(std::move(ended.done));
    calls_.destroy(ended);
    std::move(done)(io(), error, std::move(result));
}

void manager_impl::acquired(const core::acquire_call& done, const core::claim& claim) {
    call& mine = *find_call(done.cookie);
    lease_ptr lease = add(claim, resource_of(mine, done), mine.observed);
    report(mine, done, lease->resource(), {}, claim.votes);
    if (observer_) {
        observer_.report(&observer::acquired, lease->seen());
    }
    end_call(mine, {}, lease_handle::make_lock(std::move(lease)));
    handler_posted();
}

void manager_impl::not_acquired(const core::acquire_call& done) {
    call& mine = *find_call(done.cookie);
    const error_code error = done.outcome ? make_error_code(*done.outcome) : aborted;
    report(mine, done, resource_of(mine, done), error, done.last);
    end_call(mine, error, lock());
    handler_posted();
}

std::string_view
manager_impl::resource_of(const call& ended, const core::acquire_call& wanted) const {
    return ended.resource ? std::string_view(*ended.resource)
                          : core::resource_of(wanted.key, configuration().key_prefix);
}

void manager_impl::report(
    const call& ended,
    const core::acquire_call& wanted,
    std::string_view resource,
    const error_code& error,
    const core::ballots& votes) {
    observer_.ended(
        ended.sink.on(error),
        {.id = ended.observed, .resource = resource, .lock = error ? 0 : ended.observed},
        error,
        [&](diagnostics& out) {
            explain(out, resource, error, wanted.attempts, wanted.decided_at - wanted.began, votes);
        });
}

void manager_impl::contention(std::string_view key, std::size_t waiting) {
    if (logs(log_level::warning)) {
        log(log_level::warning,
            std::string(key) + ": " + std::to_string(waiting) + " acquires wait for it");
    }
    observer_.contention(core::resource_of(key, configuration().key_prefix), waiting);
}

// --- Queries ------------------------------------------------------------------------------------

void manager_impl::query(const target& asked, diagnostics_sink sink, handler<lock_status> done) {
    const section lock(*this);
    const auto& what = target_access::what(asked);
    const auto* const pool = std::get_if<free_slots>(&what);
    const auto* const one = std::get_if<std::string>(&what);
    std::string resource = pool != nullptr ? pool->pool : one != nullptr ? *one : std::string();
    const validation valid = check_query(asked, configuration());
    if (!valid) {
        refuse(sink.out, resource, to_string(valid.error()));
    }
    if (!valid || !engine().running()) {
        complete(io(), std::move(done), valid ? why_not_running() : errc::invalid_argument, {});
        return;
    }
    call& mine = calls_.create();
    on_cancel(done, without_effects, [this, cookie = mine.cookie()](std::uint64_t, auto) {
        if (call* const found = find_call(cookie)) {
            query_ended(*found, aborted, nullptr);
            end_call(*found, aborted, lock_status());
        }
    });
    mine.done.emplace<completion<error_code, lock_status>>(std::move(done), io());
    mine.sink = sink;
    mine.resource = std::make_unique<const std::string>(std::move(resource));
    mine.observed = observer_.started({.kind = operation_kind::query, .resource = *mine.resource});
    const auto slots = static_cast<std::uint32_t>(pool != nullptr ? pool->size : 0);
    dispatch([&](time_point now) { engine().query(mine.cookie(), *mine.resource, slots, now); });
}

void manager_impl::query_ended(
    const call& ended, const error_code& error, const lock_status* found) {
    observer_.ended(
        ended.sink.on(error),
        {.id = ended.observed, .kind = operation_kind::query, .resource = *ended.resource},
        error,
        [&](diagnostics& out) {
            out = {};
            out.resource = *ended.resource;
            if (found != nullptr) {
                out.message = to_string(found->state);
                out.quorum = engine().majority();
                out.votes = found->masters;
            }
        });
}

void manager_impl::queried(std::uint64_t cookie, lock_status&& found) {
    if (call* const ended = find_call(cookie)) { // else it was cancelled
        query_ended(*ended, {}, &found);
        end_call(*ended, {}, std::move(found));
    }
}

// --- Release notifications ----------------------------------------------------------------------

lock_watch::lock_watch(const shared_manager& manager, std::string resource)
    : manager_(manager.impl_),
      resource_(std::move(resource)) {
    const auto impl = manager_.lock();
    const manager_impl::section lock(*impl);
    std::string key;
    core::assign_lock_key(key, impl->configuration().key_prefix, resource_);
    watched_ = &impl->watch_.add(std::move(key));
    impl->dispatch([&](time_point now) { impl->engine().listen(resource_, now); });
}

// It throws where the system has no random numbers for what falls due: that ends the process.
// NOLINTNEXTLINE(bugprone-exception-escape)
lock_watch::~lock_watch() {
    if (const auto impl = manager_.lock()) {
        const manager_impl::section lock(*impl);
        impl->watch_.remove(*watched_);
        impl->dispatch([&](time_point now) { impl->engine().unlisten(resource_, now); });
    }
}

bool lock_watch::query(manager_impl::handler<lock_status> done) {
    const auto impl = manager_.lock();
    if (impl) {
        {
            const std::lock_guard lock(impl->guard);
            watched_->notified = false;
        }
        impl->query(resource_, {}, std::move(done));
    }
    return impl != nullptr;
}

bool lock_watch::wait(std::chrono::milliseconds pause, manager_impl::handler<> done) {
    const auto impl = manager_.lock();
    if (!impl) {
        return false;
    }
    const manager_impl::section lock(*impl);
    if (impl->engine().closing()) {
        complete(impl->io(), std::move(done), errc::closed);
        return true;
    }
    release_watch& watch = impl->watch_;
    const auto id = impl->on_cancel(
        done, without_effects, [&watch](std::uint64_t id, auto) { watch.cancel(id, aborted); });
    completion<error_code> waiting(std::move(done), impl->io());
    watch.wait(*watched_, core::later(impl->now(), pause), id, std::move(waiting));
    impl->schedule_flush();
    return true;
}

}}} // namespace redlock::REDLOCK_ABI::detail
