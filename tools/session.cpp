#include "session.hpp"

#include "config/sizing.hpp"
#include "exit_code.hpp"
#include "terminating_signals.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace cli {
namespace {

// Connections that take longer than this are waited for by the acquire itself.
constexpr milliseconds settling_max{500};

redlock::lock_manager made_of(asio::io_context& io, redlock::config configuration) {
    try {
        return {io.get_executor(), std::move(configuration)};
    } catch (const std::invalid_argument& error) {
        throw failure(exit_code::configuration, error.what());
    }
}

template <typename Visit>
void for_each_ending_signal(Visit visit) {
    for (const int number : terminating_signals) {
        struct sigaction now {};
        if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
            visit(number);
        }
    }
}

} // namespace

session::session(redlock::config configuration)
    : how_(std::move(configuration)),
      manager(made_of(io, how_)),
      signals_(io) {
    add_ending_signals(signals_);
    listen();
    manager.async_run(asio::detached);
}

session::~session() {
    signals_.cancel();
    bool closed = false;
    manager.async_close([&](const redlock::error_code&) { closed = true; });
    try {
        while (!closed && io.run_one() > 0) {
        }
    } catch (...) { // NOLINT(bugprone-empty-catch)
        // The operation of a handler reports its exception.
    }
}

void session::listen() {
    signals_.async_wait([this](const redlock::error_code& error, int number) {
        if (!error) {
            signal_ = number;
            cancel_.emit(asio::cancellation_type::terminal);
            if (forward_) {
                forward_(number);
            }
            listen();
        }
    });
}

void session::settle(need how_many, milliseconds limit) {
    using clock = std::chrono::steady_clock;
    auto end = clock::now() + std::min(limit, how_.connect_timeout + how_.master_timeout);
    redlock::health now;
    const auto all_decided = [&] {
        now = manager.get_health();
        const bool unfounded = !how_.founds_quorum && now.generation == 0; // and stays so
        return std::ranges::all_of(now.masters, [&](const redlock::master_health& one) {
            return decided(one) || (unfounded && one.state == redlock::master_state::founding);
        });
    };
    if (how_many == need::most) {
        run_until(end, [&] { return all_decided() || now.ready; });
        end = std::min(end, clock::now() + how_.master_timeout);
    }
    run_until(end, all_decided);
}

redlock::wait_for session::settle_for(redlock::wait_for wait) {
    if (wait == redlock::wait_for::none()) {
        settle(need::most);
        return wait;
    }
    // An acquire that may retry waits for the connections itself.
    const auto began = std::chrono::steady_clock::now();
    settle(need::most, std::min({wait.limit() / 2, how_.master_timeout, settling_max}));
    if (wait == redlock::wait_for::forever()) {
        return wait;
    }
    const auto took = std::chrono::ceil<milliseconds>(std::chrono::steady_clock::now() - began);
    return std::max(wait.limit() - took, milliseconds::zero());
}

bool session::pause(milliseconds time) {
    run_until(std::chrono::steady_clock::now() + time, [] { return false; });
    return signal_ != 0;
}

bool decided(const redlock::master_health& one) {
    return one.state != redlock::master_state::connecting
           && one.state != redlock::master_state::founding;
}

int ended_with(
    const std::string& resource,
    const redlock::error_code& error,
    const redlock::diagnostics& why) {
    const bool untold = why.votes.empty() && why.message.empty();
    const bool outage = error == redlock::errc::no_quorum;
    say(fmt::format(
        "'{}': {}{}",
        printable(resource),
        untold ? error.message() : printable(to_string(why)),
        outage ? "; run redlock doctor for details" : ""));
    if (error == redlock::errc::lost || error == redlock::errc::released) {
        return static_cast<int>(exit_code::lost);
    }
    if (error == redlock::condition::not_acquired) {
        return static_cast<int>(exit_code::held);
    }
    if (error == redlock::condition::unavailable || error == redlock::condition::stopped) {
        return static_cast<int>(exit_code::no_quorum);
    }
    if (error == redlock::errc::invalid_argument) {
        return static_cast<int>(exit_code::configuration);
    }
    return static_cast<int>(exit_code::internal);
}

int ended_with(
    const lock_wishes& wishes, const redlock::error_code& error, const redlock::diagnostics& why) {
    const int status = ended_with(wishes.resource, error, why);
    return status == static_cast<int>(exit_code::held) ? wishes.conflict_exit_code : status;
}

bool held_by_another(const redlock::error_code& error, const redlock::diagnostics& why) {
    return error == redlock::errc::contended
           || (error == redlock::errc::wait_timed_out
               && std::ranges::any_of(why.votes, [](const redlock::master_vote& one) {
                      return one.vote == redlock::vote::held;
                  }));
}

redlock::lock_status query(session& now, redlock::target asked) {
    return now.wait(
        [&](auto token) { return now.manager.async_query(std::move(asked), std::move(token)); });
}

bool is_held(session& now, const std::string& resource, redlock::diagnostics& why) {
    redlock::lock_status found = query(now, resource);
    const auto strange = std::ranges::count(
        found.masters, redlock::vote::owned_by_other, &redlock::master_vote::vote);
    if (static_cast<std::size_t>(strange) < redlock::detail::votes_needed(found.masters.size())) {
        return found.state == redlock::lock_state::held;
    }
    why.votes = std::move(found.masters);
    return false;
}

void add_ending_signals(asio::signal_set& to) {
    for_each_ending_signal([&to](int number) { to.add(number); });
}

pending_signals::pending_signals() noexcept {
    ::sigemptyset(&blocked_);
    for_each_ending_signal([this](int number) { ::sigaddset(&blocked_, number); });
    ::sigprocmask(SIG_BLOCK, &blocked_, &before_);
}

pending_signals::~pending_signals() {
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

bool pending_signals::take() const noexcept {
    constexpr timespec no_wait{};
    bool any = false;
    while (::sigtimedwait(&blocked_, nullptr, &no_wait) > 0) {
        any = true;
    }
    return any;
}

} // namespace cli
