// The faults of a run: which, when, and on which master or worker; and whether the expected effects
// happened.
#pragma once

#include "crew.hpp"
#include "masters.hpp"
#include "observer.hpp"
#include "settings.hpp"
#include "timeline.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace demo {

// One thing that has to have happened.
struct check {
    std::string what;
    bool done = false;
};

class plan {
public:
    plan(masters& servers, crew& workers, observer& watcher, timeline& events, const settings&);

    // Waits for the quorum to open, then injects the faults, spread over what is left of the run.
    boost::asio::awaitable<void> run();

    // All must be done for the run to count.
    std::vector<check> checks() const;
    // How long the master that came back without memory was kept from voting.
    std::optional<std::chrono::duration<double>> kept_out() const noexcept { return kept_out_; }

private:
    boost::asio::awaitable<void> until(double share);
    boost::asio::awaitable<void> pause(std::chrono::milliseconds duration);
    boost::asio::awaitable<void> bring_back();
    boost::asio::awaitable<void> watch_return(redlock::time_point restarted);
    boost::asio::awaitable<void> freeze_worker();
    void kill();
    void hang();
    void resume();
    redlock::master_state state(std::size_t master);

    masters& masters_;
    crew& crew_;
    observer& observer_;
    timeline& timeline_;
    std::chrono::duration<double> length_;
    std::chrono::duration<double> opened_{};
    std::size_t victim_;  // is killed and comes back
    std::size_t sleeper_; // hangs for a while
    std::optional<std::chrono::duration<double>> kept_out_;
    check open_{"the quorum opened after the quarantine"};
    check killed_{"a master killed"};
    check back_{"... and brought back empty"};
    check quarantined_{"... kept from voting for its quarantine"};
    check readmitted_{"... and voting again"};
    check hung_{"another one hung"};
    check resumed_{"... and resumed"};
    check frozen_{"a worker frozen for longer than its lease"};
};

} // namespace demo
