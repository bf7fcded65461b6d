// The queue of future events, ordered by time and then by insertion.

#pragma once

#include "plan.hpp"

#include <algorithm>
#include <functional>

namespace simulation {

/// Of an event that happens even while clients are paused.
inline constexpr unsigned nobody = ~0U;

struct event {
    nanos at = 0;
    std::uint64_t order = 0;
    unsigned client = nobody; // while its process is paused, the event waits
    std::function<void()> happens;
};

class event_queue {
public:
    void push(nanos at, std::function<void()> happens, unsigned client = nobody) {
        heap_.push_back({at, ++order_, client, std::move(happens)});
        std::ranges::push_heap(heap_, later);
    }
    bool empty() const noexcept { return heap_.empty(); }
    event pop() {
        std::ranges::pop_heap(heap_, later);
        event first = std::move(heap_.back());
        heap_.pop_back();
        return first;
    }

private:
    static bool later(const event& a, const event& b) noexcept {
        return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
    std::vector<event> heap_;
    std::uint64_t order_ = 0;
};

} // namespace simulation
