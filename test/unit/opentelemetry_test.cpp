// The spans and metrics that the observer for OpenTelemetry makes, read back from exporters in
// memory.

#include "support/test.hpp"

#include <redlock/opentelemetry.hpp>
#include <redlock/testing.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <opentelemetry/exporters/memory/in_memory_metric_data.h>
#include <opentelemetry/exporters/memory/in_memory_span_exporter_factory.h>
#include <opentelemetry/sdk/metrics/meter_provider_factory.h>
#include <opentelemetry/sdk/metrics/metric_reader.h>
#include <opentelemetry/sdk/trace/simple_processor_factory.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/sdk/trace/tracer_provider_factory.h>

namespace opentelemetry_test { namespace {

using namespace redlock;
namespace memory = ::opentelemetry::exporter::memory;
namespace sdk = ::opentelemetry::sdk;

/// Metrics that are read when the test asks for them.
class pulled final : public sdk::metrics::MetricReader {
    sdk::metrics::AggregationTemporality
    GetAggregationTemporality(sdk::metrics::InstrumentType) const noexcept override {
        return sdk::metrics::AggregationTemporality::kCumulative;
    }
    bool OnForceFlush(std::chrono::microseconds) noexcept override { return true; }
    bool OnShutDown(std::chrono::microseconds) noexcept override { return true; }
};

/// A quorum in virtual time, with an observer whose exporters keep everything.
class observed_quorum {
public:
    using seen = std::unique_ptr<sdk::trace::SpanData>;

    observed_quorum()
        : tracers_(sdk::trace::TracerProviderFactory::Create(
            sdk::trace::SimpleSpanProcessorFactory::Create(
                memory::InMemorySpanExporterFactory::Create(exported_)))),
          meters_(sdk::metrics::MeterProviderFactory::Create()) {
        meters_->AddMetricReader(reader_);
        tracer = tracers_->GetTracer("redlock");
        config settings;
        settings.observer =
            std::make_shared<opentelemetry_observer>(tracer, meters_->GetMeter("redlock"));
        settings.held_warning = 1min;
        quorum.emplace(3, settings);
    }

    std::pair<error_code, lock> acquire(const acquire_options& options = {}) {
        std::optional<std::pair<error_code, lock>> result;
        quorum->manager().async_acquire("r", options, [&](error_code error, lock held) {
            result.emplace(error, std::move(held));
        });
        REQUIRE(quorum->advance_until([&] { return result.has_value(); }));
        return *std::move(result);
    }
    void release(lock& held) {
        bool done = false;
        held.async_release([&](error_code, release_result) { done = true; });
        REQUIRE(quorum->advance_until([&] { return done; }));
    }

    /// The spans that have ended since the last call.
    std::vector<seen> spans() { return exported_->GetSpans(); }
    /// The same, which must be of these names in this order.
    std::vector<seen> spans(const std::vector<std::string>& wanted) {
        std::vector<seen> found = spans();
        std::vector<std::string> names;
        for (const seen& one : found) {
            names.emplace_back(one->GetName());
        }
        REQUIRE(names == wanted);
        return found;
    }

    /// The values of a metric by their attributes, as "name=value,...": a sum, or the count of a
    /// histogram.
    std::map<std::string, std::int64_t> metric(const std::string& name) {
        memory::SimpleAggregateInMemoryMetricData counted;
        reader_->Collect([&](sdk::metrics::ResourceMetrics& all) {
            counted.Add(std::make_unique<sdk::metrics::ResourceMetrics>(all));
            return true;
        });
        std::map<std::string, std::int64_t> out;
        for (const auto& [attributes, point] : counted.Get("redlock", name)) {
            std::string key;
            for (const auto& [attribute, value] : std::map(attributes.begin(), attributes.end())) {
                key += (key.empty() ? "" : ",") + attribute + '='
                       + ::opentelemetry::nostd::get<std::string>(value);
            }
            if (const auto* const times =
                    ::opentelemetry::nostd::get_if<sdk::metrics::HistogramPointData>(&point)) {
                out[key] = static_cast<std::int64_t>(times->count_);
            } else {
                out[key] = ::opentelemetry::nostd::get<std::int64_t>(
                    ::opentelemetry::nostd::get<sdk::metrics::SumPointData>(point).value_);
            }
        }
        return out;
    }

    ::opentelemetry::nostd::shared_ptr<::opentelemetry::trace::Tracer> tracer;
    std::optional<redlock::testing::virtual_quorum> quorum;

private:
    std::shared_ptr<memory::InMemorySpanData> exported_;
    std::shared_ptr<pulled> reader_ = std::make_shared<pulled>();
    std::unique_ptr<sdk::trace::TracerProvider> tracers_;
    std::unique_ptr<sdk::metrics::MeterProvider> meters_;
};

std::string text_of(const sdk::trace::SpanData& span, const std::string& attribute) {
    const auto found = span.GetAttributes().find(attribute);
    REQUIRE(found != span.GetAttributes().end());
    return ::opentelemetry::nostd::get<std::string>(found->second);
}

std::ptrdiff_t events_of(const sdk::trace::SpanData& span, std::string_view name) {
    return std::ranges::count_if(
        span.GetEvents(), [&](const auto& one) { return one.GetName() == name; });
}

using values = std::map<std::string, std::int64_t>;
using ::opentelemetry::trace::StatusCode;

TEST_CASE("a lock is one trace: its acquire, the hold, and the operations in it") {
    observed_quorum it;
    lock held = it.acquire({.fencing = true}).second;
    it.quorum->advance(5s);
    CHECK(it.metric("redlock.lock.count") == values{{std::string(), 1}});
    it.release(held);
    const auto spans =
        it.spans({"redlock.acquire", "redlock.renew", "redlock.release", "redlock.hold"});
    const sdk::trace::SpanData& acquire = *spans[0];
    const sdk::trace::SpanData& hold = *spans[3];
    CHECK(!acquire.GetParentSpanId().IsValid());
    CHECK(hold.GetParentSpanId() == acquire.GetSpanId());
    CHECK(spans[1]->GetParentSpanId() == hold.GetSpanId());
    CHECK(spans[2]->GetParentSpanId() == hold.GetSpanId());
    for (const auto& one : spans) {
        CHECK(one->GetTraceId() == acquire.GetTraceId());
        CHECK(one->GetStatus() == StatusCode::kUnset);
        CHECK(text_of(*one, "redlock.resource") == "r");
    }
    CHECK(acquire.GetSpanKind() == ::opentelemetry::trace::SpanKind::kClient);
    REQUIRE(acquire.GetEvents().size() == 3);
    CHECK(acquire.GetEvents()[0].GetName() == "redlock.vote");
    CHECK(hold.GetAttributes().count("redlock.fencing_token") == 1);
    CHECK(text_of(hold, "redlock.hold.end") == "released");
    CHECK(text_of(*spans[2], "redlock.release.result") == "released");
    CHECK(it.metric("redlock.lock.count") == values{{std::string(), 0}});
    CHECK(it.metric("redlock.hold.duration") == values{{"redlock.hold.end=released", 1}});
    const values operations = it.metric("redlock.operation.duration");
    CHECK(operations.at("redlock.operation.name=acquire") == 1);
    CHECK(operations.at("redlock.operation.name=renew") == 1);
    const values votes = it.metric("redlock.votes");
    CHECK(votes.size() == 9); // three operations on three masters
    CHECK(
        std::ranges::count_if(
            votes,
            [](const auto& one) {
                return one.first.find("redlock.vote=granted") != std::string::npos;
            })
        >= 6); // a majority each
}

TEST_CASE("the parent of an operation is the caller's span, but not that of a renewal") {
    observed_quorum it;
    auto caller = it.tracer->StartSpan("caller");
    const auto caller_id = caller->GetContext().span_id();
    const ::opentelemetry::trace::Scope active(caller);
    lock held = it.acquire().second;
    it.quorum->advance(5s);
    it.release(held);
    const auto spans =
        it.spans({"redlock.acquire", "redlock.renew", "redlock.release", "redlock.hold"});
    CHECK(spans[0]->GetParentSpanId() == caller_id);
    CHECK(spans[1]->GetParentSpanId() == spans[3]->GetSpanId());
    CHECK(spans[2]->GetParentSpanId() == caller_id);
    CHECK(spans[3]->GetParentSpanId() == spans[0]->GetSpanId());
}

TEST_CASE("a coroutine names the span of an operation, and no other one sees it") {
    observed_quorum it;
    const auto job = it.tracer->StartSpan("job");
    lock_manager& manager = it.quorum->manager();
    const auto work = [&]() -> boost::asio::awaitable<void> {
        acquire_options options;
        lock held = co_await manager.async_acquire("r", options, in_span(job));
        co_await held.async_extend(5s, in_span(job, boost::asio::use_awaitable));
        co_await held.async_release();
    };
    std::optional<std::exception_ptr> ended;
    boost::asio::co_spawn(
        it.quorum->context(), work(), [&](std::exception_ptr error) { ended = std::move(error); });
    REQUIRE(it.quorum->advance_until([&] { return ended.has_value(); }));
    if (*ended) {
        std::rethrow_exception(*ended);
    }
    CHECK(!::opentelemetry::trace::Tracer::GetCurrentSpan()->GetContext().IsValid());
    const auto spans =
        it.spans({"redlock.acquire", "redlock.extend", "redlock.release", "redlock.hold"});
    CHECK(spans[0]->GetParentSpanId() == job->GetContext().span_id());
    CHECK(spans[1]->GetParentSpanId() == job->GetContext().span_id());
    CHECK(spans[2]->GetParentSpanId() == spans[3]->GetSpanId());
}

TEST_CASE("a failed operation is an error with a type and the votes against it") {
    observed_quorum it;
    it.quorum->occupy("r", 1min);
    CHECK(it.acquire({.wait = wait_for::none()}).first == errc::contended);
    const auto spans = it.spans({"redlock.acquire"});
    CHECK(spans[0]->GetStatus() == StatusCode::kError);
    CHECK(std::string(spans[0]->GetDescription()).find("contended") != std::string::npos);
    CHECK(text_of(*spans[0], "error.type") == "contended");
    CHECK(!spans[0]->GetEvents().empty());
    CHECK(
        it.metric("redlock.operation.duration")
        == values{{"error.type=contended,redlock.operation.name=acquire", 1}});
    CHECK(it.metric("redlock.lock.count").empty());
}

TEST_CASE("a lost lock is an error of its hold, and an abandoned one ends without one") {
    observed_quorum it;
    lock held = it.acquire().second;
    it.quorum->advance(70s); // a warning
    it.quorum->occupy("r", 10s);
    REQUIRE(it.quorum->advance_until([&] { return !held.held(); }));
    it.quorum->advance(20s);
    lock next = it.acquire().second;
    next.abandon();
    it.quorum->advance(1s);
    std::map<std::string, observed_quorum::seen> holds;
    for (auto& one : it.spans()) {
        if (one->GetName() == "redlock.hold") {
            const std::string end = text_of(*one, "redlock.hold.end");
            holds[end] = std::move(one);
        }
    }
    REQUIRE(holds.size() == 2);
    CHECK(holds.at("lost")->GetStatus() == StatusCode::kError);
    CHECK(text_of(*holds.at("lost"), "error.type") == "owned_by_other");
    CHECK(events_of(*holds.at("lost"), "redlock.held_long") == 1);
    CHECK(events_of(*holds.at("lost"), "redlock.vote") == 3);
    CHECK(holds.at("abandoned")->GetStatus() == StatusCode::kUnset);
    CHECK(it.metric("redlock.lock.count") == values{{std::string(), 0}});
}

}} // namespace opentelemetry_test
