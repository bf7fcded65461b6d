// The waiters and listeners of the releases of each lock: subscribes to its channel while there is
// one.

#pragma once

#include "quorum.hpp"
#include "wait_queues.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core {

class subscriptions {
public:
    subscriptions(quorum& masters, wait_queues& queues) : masters_(masters), queues_(queues) {}

    /// For a wait queue. Returns true if a channel was subscribed already: then no confirmation
    /// follows, and a notification may have been missed.
    bool watch(wait_queue& waiters, time_point now);
    void unwatch(wait_queue& waiters, time_point now);

    /// Counts one more listener of a lock. Returns true for the first one, whose channel is
    /// subscribed by `subscribe`.
    bool listen(std::string_view lock_key);
    void subscribe(std::string_view lock_key, time_point now);
    /// Returns true for the last one.
    bool unlisten(std::string_view lock_key, time_point now);
    bool has_listener(std::string_view lock_key) const { return listened_.contains(lock_key); }

    /// The wait queues of a lock that was released. Valid until the next call of any function.
    const std::vector<wait_queue*>& waiting_for(std::string_view lock_key);

private:
    void unsubscribe_if_unused(std::string_view lock_key, time_point now);

    quorum& masters_;
    wait_queues& queues_;
    std::map<std::string, std::size_t, std::less<>> listened_; // number of listeners by lock key
    std::vector<wait_queue*> found_;
    std::string channel_;
};

} // namespace redlock::core
