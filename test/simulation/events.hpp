// The queue of future events, ordered by time and then by insertion.

#pragma once

#include "plan.hpp"

#include <algorithm>

namespace simulation {

enum class event_kind : std::uint8_t {
    arrive_there, // a: connection
    arrive_back,  // a: connection
    connect,      // a: connection
    hang_up,      // a: connection: the client is notified
    wake,         // a: client, b: incarnation
    flush,        // a: client, b: incarnation
    resume,       // a: client
    start_client, // a: client
    close_client, // a: client, b: the fault's number
    next_op,      // a: client, b: worker, c: incarnation
    end_op,       // a: client, b: worker, c: hold
    stop,         // a: client, b: which of the holders that lost their locks
    extend,       // a: client, b: worker, c: hold
    downgrade,    // a: client, b: worker, c: hold
    cancel,       // a: client, b: worker, c: cookie
    write,        // a: the write's number
    fault,        // a: the fault's number
    fault_over,   // a: the fault's number
    snapshot,     // a: the fault's number
    boot,         // a: the fault's number
    milestone,    // a: which
    look,         // at all waiters
};

struct event {
    nanos at = 0;
    std::uint64_t order = 0;
    event_kind kind = event_kind::wake;
    std::uint32_t a = 0;
    std::uint32_t b = 0;
    std::uint32_t c = 0;
};

class event_queue {
public:
    void
    push(nanos at, event_kind kind, std::uint32_t a, std::uint32_t b = 0, std::uint32_t c = 0) {
        heap_.push_back({at, ++order_, kind, a, b, c});
        std::ranges::push_heap(heap_, later);
    }
    bool empty() const noexcept { return heap_.empty(); }
    const event& next() const noexcept { return heap_.front(); }
    event pop() {
        std::ranges::pop_heap(heap_, later);
        const event first = heap_.back();
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
