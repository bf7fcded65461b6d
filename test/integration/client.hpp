// A client of the library, driven by the test's own thread: an operation is begun with a callback,
// and the context runs until it is done. Between two calls nothing runs, so a test knows what
// cannot have happened.
#pragma once

#include "support/run.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::test {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// The masters are young, and the machine may be slow. Plain unless a test says otherwise: it then
/// sees the keys and commands that it knows. `REDLOCK_TEST_PROTOCOL=guarded` in the environment
/// runs the tests that do not look at these in the other protocol.
inline config config_for(const std::vector<std::string>& urls) {
    config result;
    result.masters.assign(urls.begin(), urls.end());
    const char* const wanted = std::getenv("REDLOCK_TEST_PROTOCOL");
    const bool guarded = wanted != nullptr && std::string_view(wanted) == "guarded";
    result.protocol = guarded ? protocol::guarded : protocol::plain;
    result.quarantine = quarantine::off;
    result.master_timeout = 2s;
    result.connect_timeout = 5s;
    result.reconnect_delay_min = 10ms;
    result.reconnect_delay_max = 100ms;
    return result;
}

/// One attempt.
inline acquire_options once(milliseconds ttl = 10s) {
    acquire_options options;
    options.ttl = ttl;
    options.wait = wait_for::none();
    return options;
}

/// One attempt, and nothing is extended.
inline acquire_options once_unrenewed(milliseconds ttl) {
    acquire_options options = once(ttl);
    options.renew = renewal::off;
    return options;
}

inline acquire_options waiting(milliseconds wait, milliseconds ttl = 10s) {
    acquire_options options = once(ttl);
    options.wait = wait;
    return options;
}

/// An acquire that was begun. Goes away with its last owner, the handler being one.
struct acquisition {
    bool done = false;
    error_code error;
    redlock::lock lock;
    diagnostics why;
    asio::cancellation_signal cancel;

    std::string explained() const { return error.message() + " | " + to_string(why); }
};
using acquisition_ptr = std::shared_ptr<acquisition>;

/// The handler that records the result of an acquire there. The acquire can be cancelled from there
/// as well.
inline auto noted_in(const acquisition_ptr& result) {
    return asio::bind_cancellation_slot(
        result->cancel.slot(), [result](error_code error, redlock::lock lock) {
            result->error = error;
            result->lock = std::move(lock);
            result->done = true;
        });
}

/// A loss that is waited for.
struct loss {
    bool signalled = false;
    error_code error;
    loss_reason reason = loss_reason::none;
    diagnostics why;
};

class client {
public:
    client(asio::io_context& io, config configuration)
        : io_(io),
          manager_(io.get_executor(), std::move(configuration)) {
        manager_.async_run([ended = run_](error_code error) {
            ended->done = true;
            ended->error = error;
        });
    }
    client(const client&) = delete;
    client& operator=(const client&) = delete;
    ~client() {
        try {
            close();
        } catch (const std::exception&) { // the test has failed before and says so
        }
    }

    lock_manager& manager() noexcept { return manager_; }
    metrics count() const { return manager_.get_metrics(); }
    redlock::health health() const { return manager_.get_health(); }
    std::optional<error_code> run_result() const {
        return run_->done ? std::optional(run_->error) : std::nullopt;
    }

    acquisition_ptr begin(std::string resource, acquire_options options = once()) {
        const auto result = std::make_shared<acquisition>();
        manager_.async_acquire(
            std::move(resource), options, with_diagnostics(result->why, noted_in(result)));
        return result;
    }

    const acquisition_ptr& finish(const acquisition_ptr& begun) {
        run_until(io_, [&] { return begun->done; });
        return begun;
    }

    acquisition_ptr acquire(std::string resource, acquire_options options = once()) {
        return finish(begin(std::move(resource), options));
    }

    /// An acquire that has to succeed.
    redlock::lock take(std::string resource, acquire_options options = once()) {
        const acquisition_ptr result = acquire(std::move(resource), options);
        INFO(result->explained());
        REQUIRE(!result->error);
        return std::move(result->lock);
    }

    release_result release(redlock::lock& lock, diagnostics* why = nullptr) {
        struct outcome {
            bool done = false;
            error_code error;
            release_result result{};
            diagnostics why;
        };
        const auto state = std::make_shared<outcome>();
        lock.async_release(
            with_diagnostics(state->why, [state](error_code error, release_result result) {
                *state = {true, error, result, std::move(state->why)};
            }));
        run_until(io_, [&] { return state->done; });
        CHECK(!state->error);
        if (why != nullptr) {
            *why = state->why;
        }
        return state->result;
    }

    error_code extend(
        redlock::lock& lock,
        milliseconds ttl,
        diagnostics* why = nullptr,
        extend_result* how = nullptr) {
        struct outcome {
            bool done = false;
            error_code error;
            extend_result result = extend_result::extended;
            diagnostics why;
        };
        const auto state = std::make_shared<outcome>();
        lock.async_extend(
            ttl, with_diagnostics(state->why, [state](error_code error, extend_result result) {
                state->error = error;
                state->result = result;
                state->done = true;
            }));
        run_until(io_, [&] { return state->done; });
        if (how != nullptr) {
            *how = state->result;
        }
        if (why != nullptr) {
            *why = state->why;
        }
        return state->error;
    }

    std::shared_ptr<loss> watch(redlock::lock& lock) {
        const auto result = std::make_shared<loss>();
        lock.async_wait_lost(
            with_diagnostics(result->why, [result](error_code error, loss_reason reason) {
                result->error = error;
                result->reason = reason;
                result->signalled = true;
            }));
        return result;
    }

    lock_status query(std::string resource) {
        const auto state = std::make_shared<std::pair<std::optional<error_code>, lock_status>>();
        manager_.async_query(std::move(resource), [state](error_code error, lock_status status) {
            state->first = error;
            state->second = std::move(status);
        });
        run_until(io_, [&] { return state->first.has_value(); });
        CHECK(!*state->first);
        return state->second;
    }

    void close() {
        const auto done = std::make_shared<bool>(false);
        manager_.async_close([done](error_code) { *done = true; });
        run_until(io_, [&] { return *done && run_->done; });
    }

    void until_admitted(std::size_t masters) {
        run_until(io_, [&] { return health().admitted == masters; });
    }

private:
    struct run_state {
        bool done = false;
        error_code error;
    };

    asio::io_context& io_;
    std::shared_ptr<run_state> run_ = std::make_shared<run_state>();
    lock_manager manager_;
};

inline std::size_t count_votes(const diagnostics& why, vote what) {
    return static_cast<std::size_t>(
        std::count_if(why.votes.begin(), why.votes.end(), [what](const master_vote& one) {
            return one.vote == what;
        }));
}

} // namespace redlock::test
