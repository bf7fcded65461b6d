// What a command says while it waits.

#pragma once

#include "session.hpp"

#include <redlock/metrics.hpp>

#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cli {

/// Returns the time after which a majority may vote, if the only obstacle is a quarantine.
std::optional<milliseconds> quarantine_left(const redlock::health& now);

/// Reports on standard error what a command waits for, while the object lives: at once if it is
/// known why too few masters vote, otherwise before two seconds have passed. The rest of a
/// quarantine is counted down on a terminal, and reported once elsewhere.
class patience {
public:
    /// `what` is waited for, such as "'backup'". A shorter wait than `wait` reports its end itself.
    patience(session& now, std::string what, redlock::wait_for wait);
    ~patience();
    patience(const patience&) = delete;
    patience& operator=(const patience&) = delete;

    struct probe;

private:
    void look();
    void tell(const redlock::health& health);
    void look_after(milliseconds time);

    session& now_;
    std::string what_;
    asio::steady_timer timer_;
    std::vector<std::shared_ptr<probe>> probes_;
    bool told_ = false;        // the reason for the wait
    bool told_left_ = false;   // how long the quarantine lasts
    bool counts_down_ = false; // the last line on the terminal is that of the countdown
};

} // namespace cli
