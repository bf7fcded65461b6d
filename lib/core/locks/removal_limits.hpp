// Limits the removals in flight to each master, and remembers where the search for pending ones
// continues.
//
// A master that comes back may have pending removals of very many claims. Sent in one burst, they
// would keep it from replying within `master_timeout`, and it would lose its vote. So both the
// number in flight and the work of one turn are limited.

#pragma once

#include "core/base/validity.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace redlock::core {

class removal_limits {
public:
    /// Places that one turn searches.
    static constexpr std::size_t searched_max = 4'096;

    removal_limits(std::size_t masters, std::size_t in_flight_max, std::size_t turn_max)
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

    /// Starts a search for pending removals of this master, or lets a running one start over.
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
    /// Stops the search, because the connection has changed.
    void stop_search(std::size_t master) noexcept { masters_[master].next = none; }

    /// When the next step of the search is due.
    time_point due() const noexcept { return due_; }
    void clear_due() noexcept { due_ = forever; }

    /// One step of the search: calls `send` for claims with a removal that is `pending` at this
    /// master, within the limits.
    template <typename Claims, typename Pending, typename Send>
    void turn(std::size_t master, Claims& claims, time_point now, Pending pending, Send send) {
        account& mine = masters_[master];
        if (mine.next == none) {
            return;
        }
        std::size_t left = turn_max_;
        mine.next = claims.for_some(mine.next, searched_max, [&](auto& one) {
            if (pending(one)) {
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

    /// Whether removals are in flight, or a search for pending ones is not finished.
    bool under_way() const noexcept {
        return std::ranges::any_of(
            masters_, [](const account& one) { return one.in_flight > 0 || one.next != none; });
    }

private:
    static constexpr std::size_t none = ~std::size_t{0};

    struct account {
        std::size_t in_flight = 0;
        std::size_t next = none; // place of the pool at which the search goes on
        bool again = false;      // a claim before that place got a pending removal
    };

    std::size_t in_flight_max_;
    std::size_t turn_max_;
    time_point due_ = forever;
    std::vector<account> masters_;
};

} // namespace redlock::core
