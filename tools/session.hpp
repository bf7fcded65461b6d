// A manager for one command, on one thread.

#pragma once

#include "settings.hpp"

#include <redlock/lock_manager.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_future.hpp>

#include <signal.h>

#include <chrono>
#include <functional>
#include <future>
#include <utility>

namespace cli {

namespace asio = boost::asio;

/// How much of the quorum an operation needs for its result.
enum class need {
    most, ///< a majority, and the others unless they take longer than `master_timeout` more
    all,  ///< each of them, unless it is known why it does not vote
};

class session {
public:
    /// Does not connect yet. Throws `failure` if the configuration is refused.
    explicit session(redlock::config configuration);
    /// Closes the manager, which releases locks without a handle.
    ~session();
    session(const session&) = delete;
    session& operator=(const session&) = delete;

private:
    redlock::config how_;

public:
    /// The configuration of the manager.
    const redlock::config& how() const noexcept { return how_; }

    asio::io_context io;
    redlock::lock_manager manager;

    /// Waits until enough masters vote, or until the reason is known for each that does not. An
    /// attempt on connections that do not exist yet would prove nothing. At most `limit`.
    void settle(need how_many, milliseconds limit = milliseconds::max());
    /// Called before an acquire with this wait. Returns the rest of the wait.
    redlock::wait_for settle_for(redlock::wait_for wait);

    /// Runs the loop until the operation has ended, and returns its value. A signal that ends the
    /// program cancels it: throws `interrupted` then.
    template <typename Start>
    auto wait(Start start) {
        auto future = start(asio::bind_cancellation_slot(cancel_.slot(), asio::use_future));
        while (future.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
            io.run_one();
        }
        return future.get();
    }

    /// Runs the loop until `done()`, a moment or a signal that ends the program. The state of the
    /// manager and of its locks changes in the handlers of this loop only: `done` is asked after
    /// each of them. Returns whether it is done.
    template <typename Done>
    bool run_until(std::chrono::steady_clock::time_point end, Done done) {
        bool is_done = done();
        while (!is_done && signal_ == 0 && std::chrono::steady_clock::now() < end) {
            io.run_one_until(end);
            is_done = done();
        }
        return is_done;
    }
    /// Runs the loop for this long, or until a signal comes. Returns whether one came.
    bool pause(milliseconds time);

    /// The signal that asked the program to end; 0 if none.
    int signal() const noexcept { return signal_; }
    /// Runs the handlers that are ready, so that `signal` shows one that has already come.
    void look_for_signal() { io.poll(); }
    /// Also passes each later signal on; one that has come but that `signal` does not show yet
    /// counts as later.
    void forward_signals(std::function<void(int)> to) { forward_ = std::move(to); }

private:
    void listen();

    asio::signal_set signals_;
    asio::cancellation_signal cancel_;
    int signal_ = 0;
    std::function<void(int)> forward_;
};

/// Whether it is known if a master votes, or why it does not.
bool decided(const redlock::master_health& one);

/// Whether an acquire failed because others have too many votes: one of them holds the lock, or
/// each has some. Slow masters, or a wait that was too short for all votes, prove nothing.
bool held_by_another(const redlock::error_code& error, const redlock::diagnostics& why);

redlock::lock_status query(session& now, redlock::target asked);

/// Whether one client holds the lock, or readers do. Keys of another program prove nothing: nobody
/// may ever remove them. If a majority has such keys, `why` then has what the masters said of them.
bool is_held(session& now, const std::string& resource, redlock::diagnostics& why);

/// Converts a `system_error` of the library to the end of the tool. `why` has the votes on
/// `resource`.
int ended_with(
    const std::string& resource, const redlock::error_code& error, const redlock::diagnostics& why);
/// The same for an acquire, whose conflict may have an exit status of its own.
int ended_with(
    const lock_wishes& wishes, const redlock::error_code& error, const redlock::diagnostics& why);

/// Adds the signals that end a program, except for ignored ones, as with nohup.
void add_ending_signals(asio::signal_set& to);

/// While it lives, the signals that `add_ending_signals` adds are pending. Afterwards they have
/// their effect. Only for a program of one thread.
class pending_signals {
public:
    pending_signals() noexcept;
    ~pending_signals();
    pending_signals(const pending_signals&) = delete;
    pending_signals& operator=(const pending_signals&) = delete;

    /// Takes those that have come, and returns whether there was one.
    bool take() const noexcept;

private:
    sigset_t blocked_{};
    sigset_t before_{};
};

} // namespace cli
