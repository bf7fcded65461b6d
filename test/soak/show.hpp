// Shows a run while it happens: a picture on a terminal, else a line a second.
#pragma once

#include "observer.hpp"
#include "screen.hpp"
#include "site.hpp"
#include "timeline.hpp"
#include "view.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>

namespace redlock::soak {

class show {
public:
    using clock = std::chrono::steady_clock;

    show(site& where, timeline& events, screen& output, std::string title);

    void go_on(clock::time_point until);
    // The last picture stays readable when the terminal is back.
    void end();

    const observer& watcher() const noexcept { return observer_; }

private:
    boost::asio::io_context io_{1};
    screen& screen_;
    observer observer_;
    view view_;
    clock::time_point next_{};
};

} // namespace redlock::soak
