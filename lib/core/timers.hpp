// The moments at which something is due, in order: a binary heap whose entries know their place, so
// that moving or cancelling one costs a logarithm and leaves nothing behind. Reads no clock.

#pragma once

#include "pool.hpp"
#include "validity.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace redlock::core {

/// Whose timer it is.
enum class timer_owner : std::uint8_t { claim, operation, query, survey };

/// One entry; lives in the object that it wakes, at a stable address.
struct timer {
    static constexpr std::size_t idle = ~std::size_t{0};

    timer_owner owner = timer_owner::claim;
    handle subject;
    time_point due = forever;
    std::size_t place = idle;
};

class timers {
public:
    /// Makes `entry` due at `due`; `forever` cancels it.
    void set(timer& entry, time_point due);
    void cancel(timer& entry) noexcept;
    /// Makes `entry` due at `due` at the latest: one that comes earlier stays. For whoever bears
    /// to be woken too early, and then looks again: a moment that only ever moves away costs
    /// nothing so.
    void set_by(timer& entry, time_point due) {
        if (entry.place == timer::idle || due < entry.due) {
            set(entry, due);
        }
    }

    /// The earliest moment at which something is due, or `forever`.
    time_point next() const noexcept { return heap_.empty() ? forever : heap_.front()->due; }

    /// Takes out the earliest entry if it is due at `now`, else gives null.
    timer* pop(time_point now) noexcept;

    std::size_t size() const noexcept { return heap_.size(); }

private:
    void up(std::size_t place) noexcept;
    void down(std::size_t place) noexcept;
    void put(std::size_t place, timer* entry) noexcept;

    std::vector<timer*> heap_;
};

} // namespace redlock::core
