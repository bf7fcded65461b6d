// The times at which something is due, in order: a binary heap whose entries know their place, so
// that moving or cancelling one costs a logarithm. Reads no clock.

#pragma once

#include "validity.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace redlock::core {

/// The owner of a timer.
enum class timer_owner : std::uint32_t { claim, operation, query, slot_scan };

/// One entry; a member of the object that it wakes, at a stable address. Every lock has one: kept
/// small.
struct timer {
    static constexpr std::uint32_t idle = (std::uint32_t{1} << 30U) - 1;

    time_point due = forever;
    std::uint32_t subject = 0; // `handle::index` of that object
    std::uint32_t place : 30 = idle;
    timer_owner owner : 2 = timer_owner::claim;
};

class timers {
public:
    /// Makes `entry` due at `due`; `forever` cancels it.
    void set(timer& entry, time_point due);
    void cancel(timer& entry) noexcept;
    /// Makes `entry` due at `due` at the latest: an earlier time stays. For owners that accept an
    /// early call and then check again: moving a time further away costs nothing.
    void set_by(timer& entry, time_point due) {
        if (entry.place == timer::idle || due < entry.due) {
            set(entry, due);
        }
    }

    /// The earliest due time, or `forever`.
    time_point next() const noexcept { return heap_.empty() ? forever : heap_.front()->due; }

    /// Removes and returns the earliest entry if it is due at `now`, else null.
    timer* pop(time_point now) noexcept;

    std::size_t size() const noexcept { return heap_.size(); }

private:
    void up(std::size_t place) noexcept;
    void down(std::size_t place) noexcept;
    void put(std::size_t place, timer* entry) noexcept;

    std::vector<timer*> heap_;
};

} // namespace redlock::core
