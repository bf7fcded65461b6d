// Tracing: an observer that makes OpenTelemetry spans of what a manager does, and writes them in
// the form that every collector reads (OTLP as JSON, one request a line).
//
//     tracing redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103
//     tracing ... | while read -r line; do
//         curl -H 'Content-Type: application/json' -d "$line" http://localhost:4318/v1/traces
//     done
//
// One lock is one trace: its acquire is the root, the time for which it is held a span below it,
// and the operations on the lock are spans below that. Each vote is an event.
//
// With opentelemetry-cpp the observer has the same four functions. `started` begins a span,
//
//     opentelemetry::trace::StartSpanOptions options;
//     options.kind = opentelemetry::trace::SpanKind::kClient;
//     options.parent = spans_[what.lock]->GetContext();      // of an acquire: leave it out
//     spans_[what.id] = tracer_->StartSpan("redlock.acquire", attributes, options);
//
// `ended` calls AddEvent for each vote, SetStatus(StatusCode::kError, ...) on an error, and End(),
// and `acquired` and `released` (`lost`, `abandoned`) do so for the time between. Without a parent
// StartSpan takes the span that is active in the thread, which is the caller's: an operation starts
// inside the function that begins it. Choose the BatchSpanProcessor, whose End() does not block.

#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace asio = boost::asio;

namespace {

std::string json_text(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20 || byte > 0x7e) {
            char code[8];
            std::snprintf(code, sizeof code, "\\u%04x", byte);
            out += code;
        } else {
            out += c;
        }
    }
    return out + '"';
}

/// The parts of a JSON list.
class list {
public:
    void add(const std::string& part) { parts_ += (parts_.empty() ? "" : ",") + part; }
    void text(std::string_view key, std::string_view value) {
        attribute(key, "\"stringValue\":" + json_text(value));
    }
    void number(std::string_view key, std::uint64_t value) { // 64 bits are a string in OTLP
        attribute(key, "\"intValue\":\"" + std::to_string(value) + '"');
    }
    void real(std::string_view key, double value) {
        attribute(key, "\"doubleValue\":" + std::to_string(value));
    }
    std::string str() const { return '[' + parts_ + ']'; }

private:
    void attribute(std::string_view key, const std::string& value) {
        add("{\"key\":" + json_text(key) + ",\"value\":{" + value + "}}");
    }
    std::string parts_;
};

std::string unix_nanoseconds() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return '"' + std::to_string(std::chrono::nanoseconds(now).count()) + '"';
}

/// Makes spans. Called under the manager's guard, so it only takes notes; `take` is for the sender,
/// on a thread that may wait.
class tracer : public redlock::observer {
public:
    void started(const redlock::operation_start& what) override {
        const std::lock_guard guard(mutex_);
        span& mine = spans_[what.id];
        const auto lock = holds_.find(what.lock);
        mine = begin(
            "redlock." + std::string(to_string(what.kind)),
            lock == holds_.end() ? nullptr : &lock->second);
        mine.attributes.text("db.system.name", "redis");
        mine.attributes.text("db.operation.name", to_string(what.kind));
        mine.attributes.text("redlock.resource", what.resource);
        if (what.ttl.count() > 0) {
            mine.attributes.number("redlock.ttl_ms", static_cast<std::uint64_t>(what.ttl.count()));
        }
    }

    void ended(const redlock::operation_end& what, const redlock::diagnostics& votes) override {
        const std::lock_guard guard(mutex_);
        const auto at = spans_.find(what.id);
        if (at == spans_.end()) {
            return;
        }
        span mine = std::move(at->second);
        spans_.erase(at);
        mine.attributes.number("redlock.attempts", votes.attempts);
        mine.attributes.number("redlock.quorum", votes.quorum);
        if (what.released) {
            mine.attributes.text("redlock.released", to_string(*what.released));
        }
        if (what.found) {
            mine.attributes.text("redlock.found", to_string(*what.found));
        }
        add_votes(mine, votes);
        if (what.error) {
            mine.attributes.text("error.type", what.error.to_string()); // "redlock:1"
            mine.error = votes.message.empty() ? what.error.message() : votes.message;
        } else if (what.kind == redlock::operation_kind::acquire) {
            holds_[what.id] = begin("redlock.hold", &mine);
            holds_[what.id].attributes.text("redlock.resource", what.resource);
        }
        end(mine);
    }

    void released(const redlock::held_lock& lock, redlock::release_result) override {
        end_hold(lock, "released");
    }
    void abandoned(const redlock::held_lock& lock) override { end_hold(lock, "abandoned"); }
    void lost(
        const redlock::held_lock& lock,
        redlock::loss_reason reason,
        const redlock::diagnostics& votes) override {
        const std::string text = "lost: " + std::string(to_string(reason));
        end_hold(lock, text, &votes);
    }
    void held_long(const redlock::held_lock& lock, std::chrono::nanoseconds) override {
        const std::lock_guard guard(mutex_);
        if (const auto at = holds_.find(lock.id); at != holds_.end()) {
            add_event(at->second, "redlock.held_long", list());
        }
    }

    /// The spans that have ended since the last call, as one request; empty if there are none.
    std::string take(std::string_view service) {
        const std::lock_guard guard(mutex_);
        const list spans = std::exchange(ended_, list());
        if (spans.str() == "[]") {
            return {};
        }
        list about;
        about.text("service.name", service);
        return "{\"resourceSpans\":[{\"resource\":{\"attributes\":" + about.str()
               + "},\"scopeSpans\":[{\"scope\":{\"name\":\"redlock\"},\"spans\":" + spans.str()
               + "}]}]}";
    }

private:
    struct span {
        std::string trace;
        std::string id;
        std::string parent;
        std::string name;
        std::string began;
        list attributes;
        list events;
        std::string error;
    };

    std::string random_hex(int words) {
        std::string out;
        for (int i = 0; i < words; ++i) {
            char text[17];
            std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(random_()));
            out += text;
        }
        return out;
    }

    span begin(std::string name, const span* parent) {
        span out;
        out.trace = parent != nullptr ? parent->trace : random_hex(2);
        out.parent = parent != nullptr ? parent->id : "";
        out.id = random_hex(1);
        out.name = std::move(name);
        out.began = unix_nanoseconds();
        return out;
    }

    static void add_event(span& mine, std::string_view name, const list& attributes) {
        mine.events.add(
            "{\"timeUnixNano\":" + unix_nanoseconds() + ",\"name\":" + json_text(name)
            + ",\"attributes\":" + attributes.str() + '}');
    }

    static void add_votes(span& mine, const redlock::diagnostics& votes) {
        for (const redlock::master_vote& one : votes.votes) {
            list attributes;
            attributes.text("server.address", one.endpoint);
            attributes.text("redlock.vote", to_string(one.vote));
            attributes.real("redlock.latency_ms", static_cast<double>(one.latency.count()) / 1000);
            if (!one.text.empty()) {
                attributes.text("redlock.text", one.text);
            }
            add_event(mine, "redlock.vote", attributes);
        }
    }

    void end(const span& mine) {
        const std::string status =
            mine.error.empty() ? "{}" : "{\"code\":2,\"message\":" + json_text(mine.error) + '}';
        ended_.add(
            "{\"traceId\":\"" + mine.trace + "\",\"spanId\":\"" + mine.id + "\",\"parentSpanId\":\""
            + mine.parent + "\",\"name\":" + json_text(mine.name)
            + ",\"kind\":3,\"startTimeUnixNano\":" + mine.began + ",\"endTimeUnixNano\":"
            + unix_nanoseconds() + ",\"attributes\":" + mine.attributes.str()
            + ",\"events\":" + mine.events.str() + ",\"status\":" + status + '}');
    }

    void end_hold(
        const redlock::held_lock& lock,
        std::string_view how,
        const redlock::diagnostics* votes = nullptr) {
        const std::lock_guard guard(mutex_);
        const auto at = holds_.find(lock.id);
        if (at == holds_.end()) {
            return;
        }
        at->second.attributes.text("redlock.ended", how);
        if (votes != nullptr) { // a lost lock is an error without a call
            at->second.error = how;
            add_votes(at->second, *votes);
        }
        end(at->second);
        holds_.erase(at);
    }

    std::mutex mutex_;
    std::mt19937_64 random_{std::random_device()()};
    std::map<std::uint64_t, span> spans_; // operations under way
    std::map<std::uint64_t, span> holds_; // locks that are held
    list ended_;
};

asio::awaitable<void> work(redlock::lock_manager& manager) {
    redlock::acquire_options options;
    options.ttl = std::chrono::seconds(2);
    redlock::lock lock = co_await manager.async_acquire("report", options, asio::use_awaitable);
    co_await lock.async_extend(std::chrono::seconds(2), asio::use_awaitable);
    // A second client is refused: a trace of its own, with an error and the votes against it.
    options.wait = redlock::wait_for::none();
    auto second =
        co_await manager.async_acquire("report", options, asio::as_tuple(asio::use_awaitable));
    static_cast<void>(second);
    co_await lock.async_release(asio::use_awaitable);
}

} // namespace

int main(int argc, char** argv) {
    try {
        const auto spans = std::make_shared<tracer>();
        redlock::config config;
        config.masters.assign(argv + 1, argv + argc);
        config.max_ttl = std::chrono::seconds(2);
        config.observer = spans;
        config.held_warning = std::chrono::seconds(60);

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        manager.async_run(asio::detached);
        int status = 0;
        asio::co_spawn(io, work(manager), [&](const std::exception_ptr& error) {
            status = error ? 1 : 0;
            manager.async_close(asio::detached);
        });
        io.run();
        // A service calls it every few seconds.
        std::cout << spans->take("example") << '\n';
        return status;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
