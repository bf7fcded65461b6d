// One timer that fires at a moment of `redlock::clock`. On Linux it is a timerfd on CLOCK_BOOTTIME:
// after a suspend it fires at once if the time has passed; a monotonic timer would continue to
// wait.

#pragma once

#include "platform.hpp"
#include "socket_callbacks.hpp"

#include <redlock/clock.hpp>

#if REDLOCK_LINUX
#include <boost/asio/posix/stream_descriptor.hpp>
#else
#include <boost/asio/steady_timer.hpp>
#endif

#include <cstdint>

namespace redlock::net {

class wake_timer {
public:
    wake_timer(const boost::asio::any_io_executor& io, socket_callbacks& owner);

    /// Calls the owner's `time_came` at `moment` at the latest. An earlier moment that was set
    /// before stays: the timer fires early, and the callee sets the next moment. So a steady load
    /// does not touch the timer.
    void wake_by(time_point moment);

    /// Stops the timer.
    void cancel() noexcept;

private:
    void wait();

    socket_callbacks& owner_;
    time_point armed_ = time_point::max();
    bool waiting_ = false;
#if REDLOCK_LINUX
    boost::asio::posix::stream_descriptor timer_;
    std::uint64_t expirations_ = 0;
#else
    boost::asio::steady_timer timer_;
#endif
};

} // namespace redlock::net
