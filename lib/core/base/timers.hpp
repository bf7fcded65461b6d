// The times at which something is due, in order: a binary heap. Most timers are cancelled or moved
// further away before they are due, so that costs nothing: the entry stays where it is, and is
// moved when its old time has come. Reads no clock.

#pragma once

#include "validity.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace redlock::core {

/// The owner of a timer.
enum class timer_owner : std::uint32_t { claim, acquire, query, wait_queue };

/// One entry; a member of the object that it wakes, at a stable address as long as the timers
/// exist. Every lock has one: kept small.
struct timer {
    static constexpr std::uint32_t idle = (std::uint32_t{1} << 29U) - 1;

    time_point due = forever;
    std::uint32_t subject = 0; // `handle::index` of that object
    std::uint32_t place : 29 = idle;
    timer_owner owner : 3 = timer_owner::claim;
};

class timers {
public:
    /// Makes `entry` due at `due`; `forever` cancels it.
    void set(timer& entry, time_point due);
    void cancel(timer& entry) noexcept;
    /// Cancels `entry`, which may be destroyed afterwards.
    void remove(timer& entry) noexcept;
    /// Makes `entry` due at `due` at the latest: an earlier time stays. For owners that accept an
    /// early call and then check again.
    void set_by(timer& entry, time_point due) {
        if (entry.place == timer::idle || due < entry.due) {
            set(entry, due);
        }
    }

    /// When `pop` must be called next: a lower bound. `forever` if nothing is due.
    time_point next() const noexcept { return active_ == 0 ? forever : heap_.front().looked_at; }

    /// Looks at the earliest entry, if `next` has come. Removes and returns it if it is due at
    /// `now`. Returns null otherwise, for example if it was moved: then `next` tells whether to
    /// call this again.
    timer* pop(time_point now) noexcept;

private:
    struct place {
        time_point looked_at; // not later than it is due
        timer* entry;
    };

    void up(std::size_t at, const place& what) noexcept;
    void down(std::size_t at, const place& what) noexcept;
    void put(std::size_t at, const place& what) noexcept;

    static constexpr std::size_t spare_max = 8'192;

    std::vector<place> heap_;
    std::size_t active_ = 0; // those that are due some time
};

} // namespace redlock::core
