// A client of the library, driven by the test's own thread: an operation is begun with a callback,
// and the context runs until it is done. Between two calls nothing runs, so a test knows what
// cannot have happened.
#pragma once

#include "support/run.hpp"
#include "support/test.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

namespace redlock::test {

namespace asio = boost::asio;
using std::chrono::milliseconds;

/// The masters are young, and the machine may be slow. Plain unless a test says otherwise: it then
/// sees the keys and commands that it knows.
inline config config_for(const std::vector<std::string>& urls) {
    config result;
    result.masters.assign(urls.begin(), urls.end());
    result.protocol = protocol::plain;
    result.quarantine = false;
    result.master_timeout = 2s;
    result.connect_timeout = 5s;
    result.reconnect_delay_max = 100ms;
    return result;
}

/// One attempt.
inline acquire_options once(milliseconds ttl = 10s) {
    return {.ttl = ttl, .wait = wait_for::none()};
}

/// One attempt, and nothing is extended.
inline acquire_options once_unrenewed(milliseconds ttl) {
    return {.ttl = ttl, .wait = wait_for::none(), .renew = false};
}

inline acquire_options waiting(milliseconds wait, milliseconds ttl = 10s) {
    return {.ttl = ttl, .wait = wait};
}

/// An acquire that was begun. Goes away with its last owner, the handler being one.
struct acquisition {
    bool done = false;
    error_code error;
    redlock::lock lock;
    diagnostics why;
    asio::cancellation_signal cancel;

    std::string explained() const { return error.message() + " | " + to_string(why); }
    /// Whether the lock was granted. An assertion that fails shows how the masters voted.
    explicit operator bool() const { return !error; }
    template <typename Error>
    friend bool operator==(const acquisition& it, Error wanted) {
        return it.error == wanted;
    }
};
using acquisition_ptr = std::shared_ptr<acquisition>;

/// What an operation that `start` starts with a handler comes to.
template <typename Start>
acquisition_ptr begun(Start start) {
    const auto result = std::make_shared<acquisition>();
    auto handler = [result](error_code error, redlock::lock lock) {
        result->error = error;
        result->lock = std::move(lock);
        result->done = true;
    };
    start(with_diagnostics(
        result->why, asio::bind_cancellation_slot(result->cancel.slot(), std::move(handler))));
    return result;
}

/// What another operation comes to.
template <typename Result>
struct outcome {
    bool done = false;
    error_code error;
    Result result{};
};

/// The lock of an acquire that has to have succeeded.
inline redlock::lock granted(const acquisition_ptr& one) {
    REQUIRE(*one);
    return std::move(one->lock);
}

class client {
public:
    /// Returns once this number of masters has admitted it.
    client(asio::io_context& io, config configuration, std::size_t admitted = 0)
        : io_(io),
          manager_(io.get_executor(), std::move(configuration)) {
        manager_.async_run([ended = ended_](error_code) { *ended = true; });
        if (admitted > 0) {
            until_admitted(admitted);
        }
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

    acquisition_ptr begin(std::string resource, acquire_options options = once()) {
        return begun([&](auto handler) {
            manager_.async_acquire(std::move(resource), options, std::move(handler));
        });
    }

    template <typename Operation>
    const Operation& finish(const Operation& one) {
        run_until(io_, [&] { return one->done; });
        return one;
    }

    void cancel(const acquisition_ptr& one) {
        one->cancel.emit(asio::cancellation_type::terminal);
        finish(one);
    }

    acquisition_ptr acquire(std::string resource, acquire_options options = once()) {
        return finish(begin(std::move(resource), options));
    }

    /// An acquire that has to succeed.
    redlock::lock take(std::string resource, acquire_options options = once()) {
        return granted(acquire(std::move(resource), options));
    }

    release_result release(redlock::lock& lock) {
        return succeeded<release_result>([&](auto handler) { lock.async_release(handler); });
    }

    lock_status query(std::string resource) {
        return succeeded<lock_status>(
            [&](auto handler) { manager_.async_query(std::move(resource), handler); });
    }

    error_code extend(redlock::lock& lock, milliseconds ttl) {
        const auto of =
            noted<extend_result>([&](auto handler) { lock.async_extend(ttl, handler); });
        return finish(of)->error;
    }

    /// The loss of a lock, which need not come.
    static std::shared_ptr<outcome<loss_reason>> watch(redlock::lock& lock) {
        return noted<loss_reason>([&](auto handler) { lock.async_wait_lost(handler); });
    }

    void close() {
        const auto done = std::make_shared<bool>(false);
        manager_.async_close([done](error_code) { *done = true; });
        run_until(io_, [&] { return *done && *ended_; });
    }

    void until_admitted(std::size_t masters) {
        run_until(io_, [&] { return health().admitted == masters; });
    }

    /// Waits until that is true of each master.
    template <typename Predicate>
    void until_each(Predicate holds) {
        run_until(io_, [&] {
            const redlock::health now = health();
            return std::ranges::all_of(now.masters, holds);
        });
    }

private:
    template <typename Result, typename Start>
    static std::shared_ptr<outcome<Result>> noted(Start start) {
        const auto state = std::make_shared<outcome<Result>>();
        start([state](error_code error, Result result) {
            state->error = error;
            state->result = std::move(result);
            state->done = true;
        });
        return state;
    }
    template <typename Result, typename Start>
    Result succeeded(Start start) {
        const auto state = noted<Result>(start);
        CHECK(!finish(state)->error);
        return state->result;
    }

    asio::io_context& io_;
    std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);
    lock_manager manager_;
};

/// Whether a connection to it has failed, and it is known why.
inline bool is_down(const master_health& one) {
    return one.state == master_state::down && !one.text.empty();
}

/// Whether it has answered, and is not only about to found a quorum.
inline bool has_judged(const master_health& one) {
    return one.state != master_state::connecting && one.state != master_state::down
           && one.state != master_state::founding;
}

inline std::size_t count_votes(const diagnostics& why, vote what) {
    return static_cast<std::size_t>(std::ranges::count(why.votes, what, &master_vote::vote));
}

} // namespace redlock::test

template <>
struct Catch::StringMaker<redlock::test::acquisition> {
    static std::string convert(const redlock::test::acquisition& it) { return it.explained(); }
};
