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
        note(masters.admission_changed(master, at));
    }
    void replied(const core::arrival&, const core::reply*) override {}
    void usual_reply(const core::arrival&, std::uint64_t) override {}
    void clock_stepped(std::size_t, std::chrono::microseconds, time_point) override {}
    void noted(std::size_t, std::string_view) override {}
    void random(std::span<unsigned char> out) override { std::ranges::fill(out, 7); }
    void release_notified(std::size_t, std::string_view, std::string_view, time_point) override {}

    void note(const core::admission_change& change) {
        changed |= change.masters;
        readied += change.ready ? 1U : 0U;
    }
    /// Takes what is to be written on a link, and has it answered.
    std::vector<std::string> talk(std::size_t link) {
        std::vector<std::string> said;
        std::string bytes = std::exchange(masters.output(link), {});
        while (const auto words = virtual_master::take_command(bytes)) {
            said.push_back(words->front());
            const std::string reply = servers[link % servers.size()].execute(*words, now);
            masters.received(link, reply, now);
        }
        return said;
    }
    void introduce(std::size_t link) {
        masters.opened(link, now);
        talk(link);
    }
    void bring_up() {
        masters.start(now);
        for (std::size_t i = 0; i < servers.size(); ++i) {
            introduce(i);
        }
    }
    void wait(nanoseconds span) {
        now += span;
        for (std::size_t i = 0; i < servers.size(); ++i) {
            note(masters.time_passed(i, now));
        }
    }
    /// A command of the test's own is sent, and not answered.
    void ask(std::size_t master) {
        masters.send(
            master, "*1\r\n$4\r\nPING\r\n", {.kind = core::command_kind::get, .to = this}, now);
    }
    std::vector<vote> votes() {
        std::vector<vote> out;
        for (const core::master& one : masters) {
            out.push_back(one.otherwise);
        }
        return out;
    }

    core::settings rules;
    std::vector<virtual_master> servers;
    core::jitter chance{1};
    time_point now{seconds(1'000'000)};
    unsigned changed = 0;
    unsigned readied = 0;
    core::masters masters{rules, *this, chance};
};

} // namespace unit
