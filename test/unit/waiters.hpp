// What the tests of waiters have in common.

#pragma once

#include "support/test.hpp"
#include "virtual_quorum.hpp"

namespace unit {

inline acquire_options waiting(redlock::wait_for wait = redlock::wait_for::forever()) {
    return {.ttl = seconds(10), .wait = wait};
}

inline redlock::core::settings
rules_with(std::size_t masters, std::chrono::milliseconds handoff_time, bool pushes) {
    redlock::core::settings rules = settings_for(masters);
    rules.local_handoff_time = handoff_time;
    rules.pushes = pushes;
    return rules;
}

/// Only pushes and local handoffs wake a waiter.
inline redlock::core::settings
rules_without_polling(std::size_t masters, std::chrono::milliseconds handoff_time = {}) {
    redlock::core::settings rules = rules_with(masters, handoff_time, true);
    rules.retry_delay_min = rules.retry_delay_max = std::chrono::hours(1);
    return rules;
}

/// On which a release of the lock `r` is published.
inline constexpr auto channel = "p:{r}:free";

inline std::string slot_key(std::uint32_t number) {
    return "p:{r}:slot:" + std::to_string(number);
}

} // namespace unit
