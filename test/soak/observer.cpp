#include "observer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace redlock::soak {

observer::observer(boost::asio::any_io_executor executor, const site& where, timeline& events)
    : site_(where),
      events_(events),
      manager_(std::move(executor), quorum_config(where.urls(), where.max_ttl())),
      health_(manager_.get_health()) {
    manager_.async_run([](error_code) {});
}

void observer::look() {
    const auto before = std::exchange(health_, manager_.get_health());
    for (std::size_t i = 0; i < health_.masters.size(); ++i) {
        const auto state = health_.masters[i].state;
        const auto earlier = before.masters[i].state;
        // Each failing attempt to connect is a state of its own, and of no interest.
        const bool fails_again = state == master_state::down && earlier == master_state::connecting;
        if (state == earlier || state == master_state::connecting || fails_again) {
            continue;
        }
        events_.seen(fmt::format("{}: {}", master_name(i), state_text(health_.masters[i])));
        if (state == master_state::admitted && site_.restarted(i) != moment(0)) {
            const moment out = now() - site_.restarted(i);
            kept_out_ = std::min(out, kept_out_.value_or(out));
        }
    }
    if (health_.ready != before.ready) {
        events_.seen(fmt::format(
            "quorum {}: {} of {} masters vote, {} needed",
            health_.ready ? "open" : "CLOSED",
            health_.admitted,
            health_.masters.size(),
            health_.quorum));
    }
    if (!asked_) {
        query();
    }
}

void observer::query() {
    asked_ = true;
    manager_.async_query(resource, [this](error_code error, lock_status status) {
        asked_ = false;
        if (!error) {
            status_ = std::move(status);
        }
    });
}

std::string state_text(const master_health& master) {
    switch (master.state) {
    case master_state::admitted:
        return "votes";
    case master_state::quarantined:
        if (master.quarantine_left) {
            return fmt::format(
                "quarantined, {:.1f} s left",
                std::chrono::duration<double>(*master.quarantine_left).count());
        }
        return "quarantined";
    default: {
        const auto name = redlock::to_string(master.state);
        std::string text(name.data(), name.size());
        return master.text.empty() || master.text == text ? text : text + ": " + master.text;
    }
    }
}

} // namespace redlock::soak
