// Watches the quorum through a lock manager of its own that acquires no locks: the state of each
// master, and the holders according to the masters.
#pragma once

#include "board.hpp"
#include "timeline.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace demo {

class observer {
public:
    observer(boost::asio::any_io_executor executor, redlock::config config, timeline& events);

    // Observes until the manager is closed, and adds each change to the timeline.
    boost::asio::awaitable<void> watch_health();
    boost::asio::awaitable<void> watch_locks();

    redlock::lock_manager& manager() noexcept { return manager_; }
    const redlock::health& health() const noexcept { return health_; }
    const redlock::lock_status& lock_of(std::size_t counter) const { return locks_.at(counter); }

private:
    void note_changes(const redlock::health& now);

    redlock::lock_manager manager_;
    timeline& events_;
    redlock::health health_;
    std::array<redlock::lock_status, counters_max> locks_;
};

// "votes", "down: connection refused", "quarantined, 1.2 s left", ...
std::string state_text(const redlock::master_health& master);

} // namespace demo
