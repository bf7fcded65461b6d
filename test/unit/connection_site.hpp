// What the tests of connections have in common.

#pragma once

#include "core/masters/connection.hpp"
#include "support/test.hpp"
#include "virtual_master.hpp"
#include "virtual_quorum.hpp"

namespace unit {

namespace core = redlock::core;
using lines = std::vector<std::string>;

/// One master.
inline core::settings checked_each_second() {
    core::settings rules = settings_for(1);
    rules.health_check_interval = seconds(1);
    return rules;
}

/// One connection, and a record of what it wanted. The test plays the socket and the server.
struct connection_site : core::connection_events, core::receiver {
    explicit connection_site(core::settings with) : rules(std::move(with)) {
        server.run_id = "abc";
    }
    connection_site() : connection_site(settings_for(1)) {}

    void open(std::size_t) override { ++opens; }
    void close(std::size_t) override { ++closes; }
    void admission_changed(std::size_t, time_point) override { ++changes; }
    void replied(const core::arrival& at, const core::reply* got) override {
        if (got != nullptr) {
            replies.emplace_back(at.command.subject.index, std::string(got->text));
        } else {
            drops.push_back(at.command.subject.index);
        }
    }
    void usual_reply(const core::arrival& at, std::uint64_t locks) override {
        grants.emplace_back(at.command.replies, locks);
    }
    void clock_stepped(std::size_t, std::chrono::microseconds, time_point) override {}
    void random(std::span<unsigned char> out) override { std::ranges::fill(out, ++drawn); }
    void noted(std::size_t, std::string_view) override {}
    void release_notified(std::size_t, std::string_view, std::string_view, time_point) override {}

    /// The commands in the output, which is taken as written.
    lines written() {
        link.written(link.output().size());
        return virtual_master::lines_of(std::exchange(link.output(), {}));
    }
    void hear(const std::string& bytes) { link.received({bytes.data(), bytes.size()}, now); }
    void wait(nanoseconds span) {
        now += span;
        link.time_passed(now);
    }
    /// Opened, and the commands of the introduction answered by `server`.
    void introduce() {
        link.opened(now);
        answer();
    }
    /// `server` answers what is in the output.
    void answer() {
        std::string bytes = std::exchange(link.output(), {});
        link.written(bytes.size());
        while (const auto words = virtual_master::take_command(bytes)) {
            hear(server.execute(*words, now));
        }
    }
    /// After a loss; `server` may be another by then.
    void reconnect() {
        link.closed("reset", now);
        wait(seconds(2));
        introduce();
    }
    void bring_up() {
        link.start(now);
        introduce();
    }
    void send(std::uint32_t name) {
        link.send(
            "*1\r\n$4\r\nWHAT\r\n",
            {.kind = core::command_kind::acquire, .to = this, .subject = {name, 1}},
            now);
    }

    core::settings rules;
    virtual_master server;
    core::jitter chance{1};
    time_point now{seconds(1'000)};
    int opens = 0;
    int closes = 0;
    int changes = 0;
    std::vector<std::pair<std::uint32_t, std::string>> replies;
    std::vector<std::pair<int, std::uint64_t>> grants; // replies outstanding, then the locks
    std::vector<std::uint32_t> drops;
    unsigned char drawn = 0; // random bytes
    core::membership members{rules};
    core::connection link{0, rules, members, *this, chance};
};

/// It is up.
struct up_site : connection_site {
    template <typename... Rules>
    explicit up_site(Rules... rules) : connection_site(std::move(rules)...) {
        bring_up();
    }
};

} // namespace unit
