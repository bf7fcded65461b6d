// Tracks whether the server at the other end of a connection is alive. Decides when to connect,
// when to stop connecting, when to check the health of the server, and when it counts as silent.

#pragma once

#include "core/base/backoff.hpp"
#include "settings.hpp"

#include <algorithm>
#include <cstdint>

namespace redlock::core {

/// An action that is due because time has passed.
enum class duty : std::uint8_t {
    nothing,
    open,             // the delay after the last break has passed
    give_up_opening,  // `connect_timeout` passed
    fall_silent,      // `master_timeout` passed without a reply
    give_up_silent,   // then silent for `health_check_interval` as well
    ask_after_health, // a health check is due: no reply for `health_check_interval`, or the server
                      // was ineligible
};

class liveness {
public:
    enum class state : std::uint8_t { idle, waiting, opening, introducing, up };

    liveness(const settings& rules, jitter& random) : rules_(rules), random_(random) {}

    /// \name State
    /// \{
    bool is(state which) const noexcept { return state_ == which; }
    bool up() const noexcept { return state_ == state::up; }
    /// Bytes can be exchanged.
    bool connected() const noexcept { return state_ == state::introducing || up(); }
    /// There is a socket, or will be.
    bool begun() const noexcept { return state_ == state::opening || connected(); }
    /// Up, but without a reply for `master_timeout`.
    bool silent() const noexcept { return silent_; }
    /// \}

    /// \name What happened
    /// \{
    void open(time_point now) noexcept {
        state_ = state::opening;
        wake_ = later(now, rules_.connect_timeout);
    }
    void opened() noexcept { state_ = state::introducing; }
    void introduced() noexcept {
        state_ = state::up;
        wake_ = forever;
        delay_.reset();
    }
    void lost(time_point now) noexcept {
        state_ = state::waiting;
        wake_ = now + delay_.next(rules_.reconnect_delay_min, rules_.reconnect_delay_max, random_);
        check_ = forever;
        silent_ = false;
    }
    void stop() noexcept {
        state_ = state::idle;
        wake_ = check_ = forever;
        silent_ = false;
    }
    /// Schedules the next health check after `health_check_interval`.
    void checked(time_point now) noexcept { check_ = later(now, rules_.health_check_interval); }
    /// Schedules a health check of an ineligible server after a delay that grows.
    void ailing(time_point now) noexcept {
        const auto longest = std::max(rules_.reconnect_delay_min, rules_.health_check_interval / 5);
        check_ = later(now, recheck_.next(rules_.reconnect_delay_min, longest, random_));
    }
    void well() noexcept { recheck_.reset(); }
    void fall_silent(time_point now) noexcept {
        silent_ = true;
        silent_since_ = now;
    }
    void answers_again() noexcept { silent_ = false; }
    /// \}

    /// \name What is due
    /// `oldest`: when the oldest command without a reply was sent, or `forever`.
    /// \{
    bool overdue(time_point oldest, time_point now) const noexcept {
        return now >= later(oldest, rules_.master_timeout);
    }
    time_point next_due(time_point oldest) const noexcept {
        if (!up()) {
            return wake_;
        }
        return silent_ ? later(silent_since_, rules_.health_check_interval)
                       : std::min(later(oldest, rules_.master_timeout), check_);
    }
    duty due(time_point oldest, time_point now) const noexcept {
        if (state_ == state::idle || now < next_due(oldest)) {
            return duty::nothing;
        }
        if (!up()) {
            return state_ == state::waiting ? duty::open : duty::give_up_opening;
        }
        if (silent_) {
            return duty::give_up_silent;
        }
        return overdue(oldest, now) ? duty::fall_silent : duty::ask_after_health;
    }
    /// \}

private:
    const settings& rules_;
    jitter& random_;
    state state_ = state::idle;
    time_point wake_ = forever;  // connect again, or stop connecting
    time_point check_ = forever; // check its health
    time_point silent_since_ = never;
    bool silent_ = false;
    backoff delay_;
    backoff recheck_;
};

} // namespace redlock::core
