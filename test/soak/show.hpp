// Shows a run while it happens: what it sees goes into the timeline, and on a terminal into a
// picture. It queries the masters through a lock manager of its own, which acquires no locks.
#pragma once

#include "screen.hpp"
#include "site.hpp"
#include "timeline.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>

namespace redlock::soak {

class show {
public:
    using clock = std::chrono::steady_clock;

    show(site& where, timeline& events, const screen& output, std::string title);

    void go_on(clock::time_point until);

    // How long a restarted master was kept from voting, at least.
    std::optional<moment> kept_out() const noexcept { return kept_out_; }

private:
    void look();
    void query();
    std::vector<std::string> picture();
    void add_masters(std::vector<std::string>& lines) const;
    void add_timeline(std::vector<std::string>& lines) const;
    void add_lock(std::vector<std::string>& lines);
    void add_workers(std::vector<std::string>& lines);
    std::string holders();
    std::string heading(std::string_view text) const { return screen_.paint(style::bold, text); }

    site& site_;
    timeline& timeline_;
    const screen& screen_;
    std::string title_;
    boost::asio::io_context io_{1};
    lock_manager manager_;
    health health_;
    lock_status status_; // by the masters
    bool asked_ = false; // for that
    std::optional<moment> kept_out_;
    clock::time_point next_{};
};

std::string event_line(const screen& output, const event& one);

} // namespace redlock::soak
