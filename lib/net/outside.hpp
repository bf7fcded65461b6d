// All that a manager has of the world: connections to the masters, somebody who wakes it, and
// chance. In production `sockets`; in the testing kit, masters in memory and time that a test
// moves.

#pragma once

#include <redlock/clock.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace redlock::net {

/// Called with the guard of the owner held; answers through `link_owner`, never from inside a call.
class outside {
public:
    virtual ~outside() = default;

    /// Connects; answered by `link_opened` or `link_closed`.
    virtual void open(std::size_t link) = 0;
    /// Drops the connection or the attempt, with the bytes that were not sent yet. Nothing of it is
    /// reported afterwards.
    virtual void close(std::size_t link) = 0;
    /// The same, but what was written is still delivered.
    virtual void finish(std::size_t link) { close(link); }
    /// Takes what it can of `bytes`. Gives how much was written at once; the rest is reported by
    /// `link_written`.
    virtual std::size_t write(std::size_t link, std::string& bytes) = 0;
    /// `time_came` at `moment` at the latest; it may come early.
    virtual void wake_by(time_point moment) = 0;
    /// Wakes no more.
    virtual void sleep() noexcept = 0;
    /// Bytes that nobody can guess.
    virtual void random(std::span<unsigned char> out) = 0;

protected:
    outside() = default;
    outside(const outside&) = default;
    outside& operator=(const outside&) = default;
};

} // namespace redlock::net
