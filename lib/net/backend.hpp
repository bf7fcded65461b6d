// The transport of a manager: connections to the masters, a timer, and random bytes. `sockets` is
// the implementation for production. The testing kit has masters in memory and a time that a test
// sets.

#pragma once

#include <redlock/clock.hpp>

#include <boost/core/noncopyable.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace redlock::net {

/// Called with the owner's guard held; reports via `socket_callbacks`, never from inside a call.
class backend : boost::noncopyable {
public:
    virtual ~backend() = default;

    /// Connects. The result is `socket_opened` or `socket_closed`.
    virtual void open(std::size_t link) = 0;
    /// Closes the connection or the attempt, and drops unsent bytes. Reports nothing afterwards.
    virtual void close(std::size_t link) = 0;
    /// The same, but delivers what was written.
    virtual void finish(std::size_t link) { close(link); }
    /// Takes what it can of `bytes`. Returns how much was written at once; `socket_written` reports
    /// the rest.
    virtual std::size_t write(std::size_t link, std::string& bytes) = 0;
    /// Reports bytes that have arrived, unless `wait` waits for them already.
    virtual void read() {}
    /// Waits for more bytes. Called after `all_received`, possibly later: the owner may write and
    /// call `read` first.
    virtual void wait() {}
    /// Calls `time_came` at `moment` at the latest, possibly earlier.
    virtual void wake_by(time_point moment) = 0;
    /// Stops the timer.
    virtual void sleep() noexcept = 0;
    /// Returns unpredictable bytes.
    virtual void random(std::span<unsigned char> out) = 0;
};

} // namespace redlock::net
