// What a command says while it waits.

#pragma once

#include "session.hpp"

#include <redlock/metrics.hpp>

#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cli {

/// Returns the time after which a majority may vote, if the only obstacle is a quarantine.
std::optional<milliseconds> quarantine_left(const redlock::health& now);

/// Reports on standard error what a command waits for, while the object lives: at once if it is
/// known why too few masters vote, otherwise before two seconds have passed. What is known to help
/// is printed as well. The rest of a quarantine is counted down on a terminal, and reported once
/// elsewhere.
class patience {
public:
    /// For an acquire of this lock, or of a slot of this pool, with these options. A short wait
    /// reports its end itself.
    patience(session& now, std::string name, redlock::acquire_options wanted, bool pool = false);
    ~patience();
    patience(const patience&) = delete;
    patience& operator=(const patience&) = delete;

    struct probe;

    /// Whether `hint_at_causes` was called.
    bool told_causes() const noexcept { return told_causes_; }

private:
    void look();
    bool learned_more(const redlock::health& health);
    void tell_lock();
    void tell_refusals();
    void tell_masters(const redlock::health& health);
    void hint(const std::vector<std::string>& texts);
    void say_waiting(std::string_view why) const;
    void look_after(milliseconds time);

    session& now_;
    std::string name_;
    redlock::acquire_options wanted_;
    bool pool_;
    std::shared_ptr<patience*> self_; // of the handlers, which may run later
    asio::steady_timer timer_;
    std::vector<std::shared_ptr<probe>> probes_;
    std::vector<std::pair<std::size_t, std::string>> unknown_; // masters, and their texts
    bool told_ = false;                                        // the reason for the wait
    bool told_causes_ = false;                                 // and what to change
    bool told_left_ = false;                                   // how long the quarantine lasts
    bool counts_down_ = false; // the last line on the terminal is that of the countdown
};

} // namespace cli
