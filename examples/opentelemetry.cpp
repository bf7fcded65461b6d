// OpenTelemetry: spans and metrics of a manager, sent to a collector with OTLP over HTTP. The
// header needs the API of opentelemetry-cpp; a program also chooses exporters of its SDK.
//
//     export OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318
//     opentelemetry redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103
//
// The trace of the job has the acquire, the time for which the lock was held, and its operations,
// each with the votes of the masters as events.

#include <redlock/opentelemetry.hpp>
#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <opentelemetry/exporters/otlp/otlp_http_exporter_factory.h>
#include <opentelemetry/exporters/otlp/otlp_http_metric_exporter_factory.h>
#include <opentelemetry/sdk/metrics/export/periodic_exporting_metric_reader_factory.h>
#include <opentelemetry/sdk/metrics/meter_provider_factory.h>
#include <opentelemetry/sdk/metrics/view/instrument_selector_factory.h>
#include <opentelemetry/sdk/metrics/view/meter_selector_factory.h>
#include <opentelemetry/sdk/metrics/view/view_factory.h>
#include <opentelemetry/sdk/metrics/view/view_registry_factory.h>
#include <opentelemetry/sdk/trace/batch_span_processor_factory.h>
#include <opentelemetry/sdk/trace/batch_span_processor_options.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/sdk/trace/tracer_provider_factory.h>

#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

namespace asio = boost::asio;
namespace otel = opentelemetry;
namespace sdk = opentelemetry::sdk;
namespace otlp = opentelemetry::exporter::otlp;

namespace {

/// The providers of the process. The destructor sends what they still have.
class telemetry {
public:
    telemetry()
        : tracers_(sdk::trace::TracerProviderFactory::Create(
            // Does not wait for the collector when a span ends.
            sdk::trace::BatchSpanProcessorFactory::Create(
                otlp::OtlpHttpExporterFactory::Create(), {}))),
          meters_(sdk::metrics::MeterProviderFactory::Create(views())) {
        meters_->AddMetricReader(sdk::metrics::PeriodicExportingMetricReaderFactory::Create(
            otlp::OtlpHttpMetricExporterFactory::Create(), {}));
        otel::trace::Provider::SetTracerProvider(
            std::shared_ptr<otel::trace::TracerProvider>(tracers_));
        otel::metrics::Provider::SetMeterProvider(
            std::shared_ptr<otel::metrics::MeterProvider>(meters_));
    }
    telemetry(const telemetry&) = delete;
    telemetry& operator=(const telemetry&) = delete;
    ~telemetry() {
        tracers_->ForceFlush();
        meters_->ForceFlush();
        otel::trace::Provider::SetTracerProvider({});
        otel::metrics::Provider::SetMeterProvider({});
    }

private:
    // The default buckets are for milliseconds.
    static std::unique_ptr<sdk::metrics::ViewRegistry> views() {
        auto buckets = std::make_shared<sdk::metrics::HistogramAggregationConfig>();
        buckets->boundaries_ = {
            0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60};
        auto out = sdk::metrics::ViewRegistryFactory::Create();
        for (const std::string name : {"redlock.operation.duration", "redlock.hold.duration"}) {
            out->AddView(
                sdk::metrics::InstrumentSelectorFactory::Create(
                    sdk::metrics::InstrumentType::kHistogram, name, "s"),
                sdk::metrics::MeterSelectorFactory::Create("redlock", "", ""),
                sdk::metrics::ViewFactory::Create(
                    name, "", "s", sdk::metrics::AggregationType::kHistogram, buckets));
        }
        return out;
    }

    std::shared_ptr<sdk::trace::TracerProvider> tracers_;
    std::shared_ptr<sdk::metrics::MeterProvider> meters_;
};

asio::awaitable<void> work(redlock::lock_manager& manager) {
    const auto tracer = otel::trace::Provider::GetTracerProvider()->GetTracer("example");
    const auto job = tracer->StartSpan("report");
    redlock::acquire_options options;
    options.ttl = std::chrono::seconds(2);
    redlock::lock lock = co_await manager.async_acquire("report", options, redlock::in_span(job));
    co_await lock.async_extend(std::chrono::seconds(2));
    // A second client is refused: a span with an error and the votes against it.
    options.wait = redlock::wait_for::none();
    try {
        co_await manager.async_acquire("report", options, redlock::in_span(job));
    } catch (const redlock::error_with_diagnostics& refused) {
        std::cout << refused.what() << '\n';
    }
    co_await lock.async_release();
    job->End();
}

} // namespace

int main(int argc, char** argv) {
    try {
        const telemetry sent;
        redlock::config config;
        config.masters.assign(argv + 1, argv + argc);
        config.max_ttl = std::chrono::seconds(2);
        config.observer = std::make_shared<redlock::opentelemetry_observer>();

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        manager.async_run(asio::detached);
        int status = 0;
        asio::co_spawn(io, work(manager), [&](const std::exception_ptr& error) {
            status = error ? 1 : 0;
            manager.async_close(asio::detached);
        });
        io.run();
        return status;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
