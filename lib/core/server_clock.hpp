// What a master's wall clock can be at most, judged from the answers that carried it.
//
// An answer says T, read after its command was sent at S. So at a later moment the master's clock
// is T + (moment - S) at most, and a bit for the clocks' rates. Of all answers the one with the
// lowest bound counts, until the clock turns out to be past it: then it was stepped.

#pragma once

#include "settings.hpp"

#include <chrono>
#include <cstdint>

namespace redlock::core {

class server_clock {
public:
    /// Nothing is known of this server.
    void reset() noexcept { known_ = false; }

    /// An answer to a command that was sent at `sent` came at `now` and said `server_us`.
    void sample(
        std::int64_t server_us, time_point sent, time_point now, const settings& rules) noexcept {
        if (!known_ || server_us > not_after(now, rules)
            || bound(server_us, sent, now, rules) < bound(server_us_, sent_, now, rules)) {
            server_us_ = server_us;
            sent_ = sent;
            known_ = true;
        }
    }

    /// The server's clock, in us since 1970, that it cannot have passed before `moment`; 0 if
    /// nothing is known. The millisecond is what the server's own clock may be behind itself.
    std::int64_t not_after(time_point moment, const settings& rules) const noexcept {
        return known_ ? bound(server_us_, sent_, moment, rules) + 1'000 : 0;
    }

private:
    static std::int64_t bound(
        std::int64_t server_us,
        time_point sent,
        time_point moment,
        const settings& rules) noexcept {
        const auto since = moment - sent;
        return server_us
               + std::chrono::ceil<std::chrono::microseconds>(since + rules.rate_error(since))
                     .count();
    }

    std::int64_t server_us_ = 0;
    time_point sent_ = never;
    bool known_ = false;
};

} // namespace redlock::core
