// Turns: the order of arrival between processes, on request. One master, usually the arbiter of the
// lock, keeps a fair queue of the wait queues that want one. The front of a wait queue requests its
// turn there, and makes an attempt on all masters when its turn has come.
//
// The fair queue only filters attempts. So safety does not depend on it, and if no master keeps a
// queue the front continues without one. A wait queue renews its ticket; a ticket that is not
// renewed is dropped.

#pragma once

#include "core/bytes/answer.hpp"
#include "core/waiting/wait_queue.hpp"
#include "engine_callbacks.hpp"

#include <cstddef>
#include <string_view>

namespace redlock::core {

/// Sends the requests of this process, and reads the replies.
class fair_queue : tools {
public:
    /// `replies`: receives them, and passes them to `answered`.
    fair_queue(const tools& with, receiver& replies) noexcept : tools(with), replies_(replies) {}

    /// Requests a ticket for the front. Returns false if it continues without one: it wants no
    /// order, or no master keeps the queue.
    bool ask(wait_queue& waiters, const acquire_options& front, time_point now);
    /// Gives up the ticket. If the connection is down, the ticket expires by itself.
    void leave(wait_queue& waiters, time_point now);

    /// What a reply means for the front, if that still waits for it.
    struct meaning {
        enum class what {
            nothing, // the reply is not the awaited one
            come,
            wait, // as the answer says
            none, // no ticket: ask again, or continue without
        };
        what next = what::nothing;
        answer got = {};
    };
    /// `waiters`: the subject of the command; null if it is gone. `answered`: null if the
    /// connection broke before the reply.
    meaning answered(wait_queue* waiters, const arrival& at, const reply* answered);

    /// Whether commands that give up a ticket are in flight.
    bool leaving() const noexcept { return leaving_ > 0; }

private:
    void call(const wait_queue& waiters, command_kind kind, time_point now);

    receiver& replies_;
    std::size_t leaving_ = 0;
};

} // namespace redlock::core
