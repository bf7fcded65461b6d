// A quorum of masters without an engine.

#pragma once

#include "core/masters/masters.hpp"
#include "support/test.hpp"
#include "virtual_master.hpp"
#include "virtual_quorum.hpp"

namespace unit {

namespace core = redlock::core;

/// A quorum and its masters. The test plays the sockets.
struct quorum_site : core::connection_events, core::receiver {
    explicit quorum_site(core::settings with) : rules(std::move(with)), servers(rules.size()) {
        for (std::size_t i = 0; i < servers.size(); ++i) {
            servers[i].run_id = "server " + std::to_string(i);
        }
    }
    explicit quorum_site(std::size_t size) : quorum_site(settings_for(size)) {}

    void open(std::size_t) override {}
    void close(std::size_t) override {}
    void admission_changed(std::size_t master, time_point at) override {
        masters.admission_changed(master, at);
    }
    void replied(const core::arrival&, const core::reply*) override {}
    void usual_reply(const core::arrival&, std::uint64_t) override {}
    void clock_stepped(std::size_t, std::chrono::microseconds, time_point) override {}
    void noted(std::size_t, std::string_view) override {}
    void random(std::span<unsigned char> out) override { std::ranges::fill(out, 7); }
    void release_notified(std::size_t, std::string_view, std::string_view, time_point) override {}

    /// Has what is to be written on a link answered.
    void talk(std::size_t link) {
        std::string bytes = std::exchange(masters.output(link), {});
        while (const auto words = virtual_master::take_command(bytes)) {
            const std::string reply = servers[link % servers.size()].execute(*words, now);
            masters.received(link, reply, now);
        }
    }
    void bring_up() {
        masters.start(now);
        for (std::size_t i = 0; i < servers.size(); ++i) {
            masters.opened(i, now);
            talk(i);
        }
    }

    core::settings rules;
    std::vector<virtual_master> servers;
    core::jitter chance{1};
    time_point now{seconds(1'000'000)};
    core::masters masters{rules, *this, chance};
};

} // namespace unit
