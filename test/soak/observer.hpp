// Watches the quorum through a lock manager of its own that acquires no locks: the state of each
// master, and the holder according to the masters.
#pragma once

#include "site.hpp"
#include "timeline.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <optional>

namespace redlock::soak {

class observer {
public:
    observer(boost::asio::any_io_executor executor, const site& where, timeline& events);

    // To be called often: adds each change to the timeline.
    void look();

    const redlock::health& health() const noexcept { return health_; }
    const lock_status& status() const noexcept { return status_; }
    // How long a restarted master was kept from voting, at least.
    std::optional<moment> kept_out() const noexcept { return kept_out_; }

private:
    void query();

    const site& site_;
    timeline& events_;
    lock_manager manager_;
    redlock::health health_;
    lock_status status_;
    std::optional<moment> kept_out_;
    bool asked_ = false;
};

// "votes", "down: connection refused", "quarantined, 1.2 s left", ...
std::string state_text(const master_health& master);

} // namespace redlock::soak
