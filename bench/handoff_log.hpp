// The holders of the lock with their times, in memory shared between worker and program, because
// 100,000 handoffs per second leave no time for messages.
#pragma once

#include "wire.hpp"

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>

namespace bench {

// Moments are those of CLOCK_MONOTONIC in nanoseconds, which is one clock for all processes.
struct holding {
    std::int64_t asked = 0;
    std::int64_t acquired = 0;
    // Just before the release is started.
    std::int64_t releasing = 0;
    std::uint32_t waiter = 0;
    std::uint32_t process = 0;
};

inline std::int64_t monotonic_now() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// Room for `holdings_max` entries in a file that has no name. Pages that are not used cost nothing.
class handoff_log {
public:
    static constexpr std::size_t holdings_max = 1U << 22U;

    // Creates a log that child processes inherit.
    handoff_log();
    // The one that was inherited.
    explicit handoff_log(int inherited);
    handoff_log(const handoff_log&) = delete;
    handoff_log(handoff_log&& other) noexcept;
    ~handoff_log();

    int fd() const noexcept { return file_.get(); }
    // Returns all entries; the worker reports how many are used.
    std::span<holding> holdings() const noexcept { return {mapped_, holdings_max}; }

private:
    void map();

    descriptor file_;
    holding* mapped_ = nullptr;
};

} // namespace bench
