// Spans and metrics for OpenTelemetry. Header only and not a part of redlock.hpp: a program that
// includes it depends on the API of opentelemetry-cpp, 1.19 or later (pkg-config:
// opentelemetry_api).

#pragma once

#include <redlock/observer.hpp>
#include <redlock/with_diagnostics.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>

#include <opentelemetry/metrics/meter.h>
#include <opentelemetry/metrics/meter_provider.h>
#include <opentelemetry/metrics/provider.h>
#include <opentelemetry/metrics/sync_instruments.h>
#include <opentelemetry/trace/provider.h>
#include <opentelemetry/trace/scope.h>
#include <opentelemetry/trace/tracer.h>
#include <opentelemetry/trace/tracer_provider.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

/// Makes spans and metrics of what one manager does. Assign one to `config::observer`:
/// \code
/// config.observer = std::make_shared<redlock::opentelemetry_observer>();
/// \endcode
///
/// Spans: `redlock.acquire`, `redlock.extend`, `redlock.renew`, `redlock.release` and
/// `redlock.query`, with an event `redlock.vote` for each master; `redlock.hold` from the success
/// of an acquisition until the lock is released, lost or abandoned. The parent of an operation is
/// the span that is active in the thread that starts it. Without one, and for a renewal, it is the
/// hold. The parent of a hold is its acquire. A failed operation and a lost lock have the status
/// *error* and the attribute `error.type`.
///
/// Metrics, without the names of resources: the histograms `redlock.operation.duration` and
/// `redlock.hold.duration` in seconds, the number of held locks `redlock.lock.count`, and the
/// counter `redlock.votes` for each master. Their buckets are chosen by a view of the SDK, whose
/// default suits milliseconds: `examples/opentelemetry.cpp` has one for seconds.
///
/// Each manager needs an observer of its own, because the ids of operations are unique in one
/// manager only. The names of resources are attributes of the spans; secrets are not.
/// \par Thread safety
/// As `observer`. A span ends on a thread of the manager, so use a processor that does not send at
/// once, such as the `BatchSpanProcessor`.
class opentelemetry_observer final : public observer {
public:
    /// Uses the providers of the process. Set them before: this function asks for them once.
    opentelemetry_observer()
        : opentelemetry_observer(
            ::opentelemetry::trace::Provider::GetTracerProvider()->GetTracer(
                "redlock", REDLOCK_VERSION_STRING),
            ::opentelemetry::metrics::Provider::GetMeterProvider()->GetMeter(
                "redlock", REDLOCK_VERSION_STRING)) {}

    /// Uses the given tracer and meter. Neither may be null.
    opentelemetry_observer(
        ::opentelemetry::nostd::shared_ptr<::opentelemetry::trace::Tracer> tracer,
        ::opentelemetry::nostd::shared_ptr<::opentelemetry::metrics::Meter> meter)
        : tracer_(std::move(tracer)),
          meter_(std::move(meter)),
          operation_durations_(meter_->CreateDoubleHistogram(
              "redlock.operation.duration", "Duration of operations on locks", "s")),
          hold_durations_(meter_->CreateDoubleHistogram(
              "redlock.hold.duration", "Time for which locks were held", "s")),
          held_(meter_->CreateInt64UpDownCounter(
              "redlock.lock.count", "Number of locks that are held", "{lock}")),
          votes_(meter_->CreateUInt64Counter(
              "redlock.votes", "Votes of the masters on operations", "{vote}")) {}

private:
    using text = ::opentelemetry::nostd::string_view;
    using span_ptr = ::opentelemetry::nostd::shared_ptr<::opentelemetry::trace::Span>;
    using attributes = std::vector<std::pair<text, ::opentelemetry::common::AttributeValue>>;
    using instant = std::chrono::steady_clock::time_point;
    template <typename Instrument>
    using instrument = ::opentelemetry::nostd::unique_ptr<Instrument>;

    struct running {
        span_ptr span;
        instant since = std::chrono::steady_clock::now();

        double seconds() const {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
        }
    };
    using table = std::unordered_map<std::uint64_t, running>; // by id

    static text as_text(std::string_view from) noexcept { return {from.data(), from.size()}; }

    void started(const operation& what) override {
        ::opentelemetry::trace::StartSpanOptions how;
        how.kind = ::opentelemetry::trace::SpanKind::kClient;
        const auto hold = holds_.find(what.lock);
        const bool active =
            what.kind != operation_kind::renew
            && ::opentelemetry::trace::Tracer::GetCurrentSpan()->GetContext().IsValid();
        if (!active && hold != holds_.end()) {
            how.parent = hold->second.span->GetContext();
        }
        attributes about{
            {"db.system.name", "redis"},
            {"redlock.resource", as_text(what.resource)},
        };
        if (what.ttl.count() > 0) {
            about.emplace_back("redlock.ttl", std::chrono::duration<double>(what.ttl).count());
        }
        const std::string name = "redlock." + std::string(to_string(what.kind));
        operations_[what.id] = {tracer_->StartSpan(name, about, how)};
    }

    void ended(const operation& what, const error_code& error, const diagnostics& votes) override {
        const auto found = operations_.extract(what.id);
        if (found.empty()) {
            return;
        }
        const running& mine = found.mapped();
        ::opentelemetry::trace::Span& span = *mine.span;
        span.SetAttribute("redlock.attempts", std::int64_t{votes.attempts});
        span.SetAttribute("redlock.quorum", static_cast<std::int64_t>(votes.quorum));
        attributes counted{{"redlock.operation.name", as_text(to_string(what.kind))}};
        if (!error && what.kind == operation_kind::release) {
            span.SetAttribute("redlock.release.result", as_text(votes.message));
        }
        if (!error && what.kind == operation_kind::query) {
            span.SetAttribute("redlock.lock.state", as_text(votes.message));
        }
        const std::string type = type_of(error);
        if (error) {
            counted.emplace_back("error.type", as_text(type));
            fail(span, type, votes.message.empty() ? error.message() : votes.message);
        }
        add(span, votes, what.kind);
        operation_durations_->Record(mine.seconds(), counted, {});
        if (what.kind == operation_kind::acquire && !error) {
            ::opentelemetry::trace::StartSpanOptions how;
            how.parent = span.GetContext();
            const attributes about{{"redlock.resource", as_text(what.resource)}};
            holds_[what.id] = {tracer_->StartSpan("redlock.hold", about, how)};
            held_->Add(1);
        }
        span.End();
    }

    void acquired(const held_lock& lock) override {
        const auto hold = holds_.find(lock.id);
        if (hold != holds_.end() && lock.fencing_token) {
            hold->second.span->SetAttribute("redlock.fencing_token", *lock.fencing_token);
        }
    }
    void lost(const held_lock& lock, loss_reason reason, const diagnostics& votes) override {
        if (const auto hold = holds_.find(lock.id); hold != holds_.end()) {
            const std::string type(to_string(reason));
            fail(*hold->second.span, type, "lost: " + type);
            add(*hold->second.span, votes, operation_kind::renew);
        }
        end_hold(lock, "lost");
    }
    void released(const held_lock& lock, release_result result) override {
        end_hold(lock, to_string(result));
    }
    void abandoned(const held_lock& lock) override { end_hold(lock, "abandoned"); }
    void held_long(const held_lock& lock, std::chrono::nanoseconds) override {
        if (const auto hold = holds_.find(lock.id); hold != holds_.end()) {
            hold->second.span->AddEvent("redlock.held_long");
        }
    }

    /// The name of an error: few values, as attributes of metrics need them.
    static std::string type_of(const error_code& error) {
        if (error == boost::asio::error::operation_aborted) {
            return "cancelled";
        }
        return error.category() == error_category()
                   ? std::string(to_string(static_cast<errc>(error.value())))
                   : error.to_string();
    }

    static void
    fail(::opentelemetry::trace::Span& span, const std::string& type, const std::string& why) {
        span.SetAttribute("error.type", as_text(type));
        span.SetStatus(::opentelemetry::trace::StatusCode::kError, why);
    }

    void add(::opentelemetry::trace::Span& span, const diagnostics& votes, operation_kind on) {
        for (const master_vote& one : votes.votes) {
            attributes about{
                {"redlock.master", as_text(one.endpoint)},
                {"redlock.vote", as_text(to_string(one.vote))},
            };
            attributes counted = about;
            counted.emplace_back("redlock.operation.name", as_text(to_string(on)));
            votes_->Add(1, counted);
            about.emplace_back(
                "redlock.vote.duration", std::chrono::duration<double>(one.latency).count());
            if (!one.text.empty()) {
                about.emplace_back("redlock.vote.text", as_text(one.text));
            }
            span.AddEvent("redlock.vote", about);
        }
    }

    void end_hold(const held_lock& lock, std::string_view how) {
        const auto found = holds_.extract(lock.id);
        if (found.empty()) {
            return;
        }
        const running& mine = found.mapped();
        mine.span->SetAttribute("redlock.hold.end", as_text(how));
        mine.span->End();
        held_->Add(-1);
        const attributes counted{{"redlock.hold.end", as_text(how)}};
        hold_durations_->Record(mine.seconds(), counted, {});
    }

    ::opentelemetry::nostd::shared_ptr<::opentelemetry::trace::Tracer> tracer_;
    ::opentelemetry::nostd::shared_ptr<::opentelemetry::metrics::Meter> meter_;
    instrument<::opentelemetry::metrics::Histogram<double>> operation_durations_;
    instrument<::opentelemetry::metrics::Histogram<double>> hold_durations_;
    instrument<::opentelemetry::metrics::UpDownCounter<std::int64_t>> held_;
    instrument<::opentelemetry::metrics::Counter<std::uint64_t>> votes_;
    table operations_;
    table holds_;
};

namespace detail {

/// A token with which an operation starts while `span` is active.
template <typename CompletionToken>
struct in_span_t {
    // Not an aggregate: g++ 12 would destroy one twice (see `acquire_options`).
    in_span_t(
        CompletionToken inner,
        ::opentelemetry::nostd::shared_ptr<::opentelemetry::trace::Span> parent)
        : token(std::move(inner)),
          span(std::move(parent)) {}

    CompletionToken token;
    ::opentelemetry::nostd::shared_ptr<::opentelemetry::trace::Span> span;
};

template <typename Initiation>
struct initiation_in_span : Initiation { // has its executor
    ::opentelemetry::nostd::shared_ptr<::opentelemetry::trace::Span> span;

    template <typename... Arguments>
    void operator()(Arguments&&... arguments) && {
        const ::opentelemetry::trace::Scope active(span);
        static_cast<Initiation&&> (*this)(std::forward<Arguments>(arguments)...);
    }
    template <typename... Arguments>
    void operator()(Arguments&&... arguments) const& {
        const ::opentelemetry::trace::Scope active(span);
        static_cast<const Initiation&> (*this)(std::forward<Arguments>(arguments)...);
    }
};

} // namespace detail

/// Returns a token with which an operation starts while `span` is active. A coroutine cannot use
/// `Scope` for that, because the span would stay active in the thread while the coroutine waits:
/// \code
/// auto job = tracer->StartSpan("report");
/// redlock::lock lock = co_await locks.async_acquire("report", redlock::in_span(job));
/// \endcode
/// \param span the parent of the operation's span
/// \param token a completion token. It may be wrapped in other adapters, or wrap them.
template <typename CompletionToken = default_token>
detail::in_span_t<std::decay_t<CompletionToken>> in_span(
    ::opentelemetry::nostd::shared_ptr<::opentelemetry::trace::Span> span,
    CompletionToken&& token = {}) {
    return {std::forward<CompletionToken>(token), std::move(span)};
}

}} // namespace redlock::REDLOCK_ABI

template <typename CompletionToken, typename... Signatures>
struct boost::asio::async_result<redlock::detail::in_span_t<CompletionToken>, Signatures...> {
    template <typename Initiation, typename Token, typename... Arguments>
    static auto initiate(Initiation&& begin, Token given, Arguments&&... arguments) {
        return boost::asio::async_initiate<CompletionToken, Signatures...>(
            redlock::detail::initiation_in_span<std::decay_t<Initiation>>{
                {std::forward<Initiation>(begin)}, std::move(given.span)},
            given.token,
            std::forward<Arguments>(arguments)...);
    }
};
