// A manager for the time of one command, on one thread.

#pragma once

#include "settings.hpp"

#include <redlock/lock_manager.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <future>
#include <utility>

namespace cli {

namespace asio = boost::asio;

/// How much of the quorum an operation needs before it can say something.
enum class need {
    most, ///< a majority, and the others unless they take longer than `master_timeout` more
    all,  ///< each of them, unless it is known why it does not vote
};

class session {
public:
    /// Connects to nothing yet. Throws `failure` where the configuration is refused.
    explicit session(redlock::config configuration);
    /// Closes the manager: what was let go is released.
    ~session();
    session(const session&) = delete;
    session& operator=(const session&) = delete;

private:
    milliseconds patience_;
    milliseconds master_timeout_;

public:
    asio::io_context io;
    redlock::lock_manager manager;

    /// Waits until so many masters vote, or it is known of each why it does not: a single attempt
    /// on connections that are not there yet would be a verdict on nothing. No longer than `limit`.
    void settle(need how_many, milliseconds limit = milliseconds::max());
    /// Before an acquire with this wait: gives what is left of it.
    redlock::wait_for settle_for(redlock::wait_for wait);

    /// Runs the loop until the operation has ended, and gives its value. A signal that ends the
    /// program cancels it: throws `interrupted` then.
    template <typename Start>
    auto wait(Start start) {
        auto future = start(asio::bind_cancellation_slot(cancel_.slot(), asio::use_future));
        while (future.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
            io.run_one();
        }
        return future.get();
    }

    /// Lets the loop run for so long, or until a signal comes; says whether one came.
    bool pause(milliseconds time);

    /// The signal that asked the program to end; 0 if none has.
    int signal() const noexcept { return signal_; }

private:
    void listen();

    asio::signal_set signals_;
    asio::cancellation_signal cancel_;
    int signal_ = 0;
};

/// As long as it lives somebody waits for a lock, and is told for what: at once where too few
/// masters vote and it is known why, else after some seconds.
class patience {
public:
    patience(session& now, const std::string& resource, redlock::wait_for wait);

private:
    asio::steady_timer timer_;
};

/// Whether an acquire failed because another client holds the lock, by the votes of the masters:
/// slow masters, or a wait that was too short to hear them all, say nothing about that.
bool held_by_another(const redlock::error_code& error, const redlock::diagnostics& why);

/// What `system_error` the library threw, as the tool ends with it. `why` says how the masters
/// voted on `resource`.
int ended_with(
    const std::string& resource, const redlock::error_code& error, const redlock::diagnostics& why);

/// Adds the signals that end a program, except those that are ignored, as nohup does.
void add_ending_signals(asio::signal_set& to);

} // namespace cli
