// The ledger of all removals: the number in flight to each master, and where the search for those
// that it is owed goes on.
//
// A master that comes back may be owed a removal by each of very many claims. Sent in one burst,
// they would keep it from replying within `master_timeout`, and it would lose its vote. So both the
// number in flight and the work of one turn are limited.

#pragma once

#include "validity.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace redlock::core {

class removals {
public:
    /// Places that one turn searches.
    static constexpr std::size_t searched_max = 4'096;

    removals(std::size_t masters, std::size_t in_flight_max, std::size_t turn_max)
        : in_flight_max_(in_flight_max),
          turn_max_(turn_max),
          masters_(masters) {}

    bool has_room(std::size_t master) const noexcept {
        return masters_[master].in_flight < in_flight_max_;
    }
    void sent(std::size_t master) noexcept { ++masters_[master].in_flight; }
    /// A reply arrived for one in flight, or its connection broke.
    void answered(std::size_t master, time_point now) noexcept {
        account& mine = masters_[master];
        --mine.in_flight;
        if (mine.next != none && mine.in_flight <= in_flight_max_ / 2) {
            due_ = std::min(due_, now);
        }
    }

    /// Schedules the search for what this master is owed, if there is room.
    void search(std::size_t master, time_point now) noexcept {
        account& mine = masters_[master];
        if (mine.next == none) {
            mine.next = 0;
        } else {
            mine.again = true;
        }
        if (has_room(master)) {
            due_ = std::min(due_, now);
        }
    }
    /// Its connection has changed.
    void stop_search(std::size_t master) noexcept { masters_[master].next = none; }

    /// When the turns of all masters are due.
    time_point due() const noexcept { return due_; }
    void clear_due() noexcept { due_ = forever; }

    /// One turn of the search for a master in `claims`, a pool: calls `send` with those that `owe`
    /// it.
    template <typename Claims, typename Owe, typename Send>
    void turn(std::size_t master, Claims& claims, time_point now, Owe owe, Send send) {
        account& mine = masters_[master];
        if (mine.next == none) {
            return;
        }
        std::size_t left = turn_max_;
        mine.next = claims.for_some(mine.next, searched_max, [&](auto& one) {
            if (owe(one)) {
                if (left == 0 || !has_room(master)) {
                    return false;
                }
                --left;
                send(one);
            }
            return true;
        });
        if (mine.next == claims.end()) {
            mine.next = mine.again ? 0 : none;
            mine.again = false;
        }
        if (mine.next != none && has_room(master)) {
            due_ = now;
        }
    }

    /// Whether any is in flight, or may still be found.
    bool under_way() const noexcept {
        return std::ranges::any_of(
            masters_, [](const account& one) { return one.in_flight > 0 || one.next != none; });
    }

private:
    static constexpr std::size_t none = ~std::size_t{0};

    struct account {
        std::size_t in_flight = 0;
        std::size_t next = none; // place of the pool at which the search goes on
        bool again = false;      // one before that place has become owed since
    };

    std::size_t in_flight_max_;
    std::size_t turn_max_;
    time_point due_ = forever;
    std::vector<account> masters_;
};

} // namespace redlock::core
