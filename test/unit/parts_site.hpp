// What a part of the engine needs, without an engine.

#pragma once

#include "core/engine/engine_callbacks.hpp"
#include "core/engine/essentials.hpp"
#include "core/engine/queries.hpp"
#include "quorum_site.hpp"
#include "support/test.hpp"

namespace unit {

/// Notes the reports of a part.
struct reports_noted final : core::engine_callbacks {
    void open(std::size_t) override {}
    void close(std::size_t) override {}
    void closed() override {}
    void random(std::span<unsigned char> out) override { std::ranges::fill(out, ++drawn); }
    bool logs(redlock::log_level) const override { return true; }
    void log(redlock::log_level, std::string_view line) override { note(std::string(line)); }
    void acquired(const core::operation& done, const core::claim& lease) override {
        note("acquired " + std::to_string(done.cookie));
        won = lease.self;
    }
    void not_acquired(const core::operation& done) override {
        note("not acquired " + std::to_string(done.cookie));
    }
    void lease_changed(const core::claim&) override { note("changed"); }
    void lease_lost(const core::claim&, loss_reason) override { note("lost"); }
    void renewing(const core::claim&) override { note("renewing"); }
    void renewed(const core::claim&, std::optional<errc> error) override {
        note(error ? "not renewed" : "renewed");
    }
    void extended(const core::claim&, std::optional<errc> error) override {
        note(error ? "not extended" : "extended");
    }
    void removed(const core::claim&, release_result result) override {
        note(std::string(to_string(result)));
    }
    void queried(core::query& done) override { statuses.push_back(done.result); }
    void slots_told(std::uint64_t, redlock::pool_status&& found) override {
        pools.push_back(std::move(found));
    }

    void note(std::string line) { lines.push_back(std::move(line)); }
    /// What was reported since the last call.
    std::vector<std::string> taken() { return std::exchange(lines, {}); }

    std::vector<std::string> lines;
    std::vector<redlock::lock_status> statuses;
    std::vector<redlock::pool_status> pools;
    core::handle won;
    unsigned char drawn = 0;
};

struct parts_site : quorum_site {
    explicit parts_site(std::size_t size) : quorum_site(size) { bring_up(); }

    /// All masters answer what was sent.
    void talk_all() {
        commands.flush();
        for (std::size_t i = 0; i < masters.size(); ++i) {
            talk(i);
        }
    }
    /// The connection to a master breaks, and later there is another one.
    void disconnect(std::size_t master) { masters.closed(master, "reset", now); }
    void reconnect(std::size_t master) {
        wait(seconds(2));
        introduce(master);
    }
    /// The commands to one master that were not answered.
    std::vector<std::string> said(std::size_t master) {
        return virtual_master::lines_of(std::exchange(commands.output(master), {}));
    }
    /// A claim on `key` that all masters have granted.
    core::claim& granted(std::string_view key) {
        core::claim& made = claims.create();
        made.wake.subject = made.self.index;
        made.key = core::owned_key(key, std::string(core::owned_key::token_size, 't'));
        made.ttl = made.ttl_max = made.asked_ttl = seconds(10);
        made.asked_at = now;
        made.expires_at = now + seconds(11);
        made.votes.reset(masters.size());
        for (core::ballot& one : made.votes.of) {
            one.asked = true;
            one.said = vote::granted;
            one.confirm(now + usable(seconds(10)));
        }
        for (virtual_master& one : servers) {
            one.put(std::string(key), std::string(made.token_text()), now + seconds(10));
        }
        return made;
    }

    reports_noted host;
    core::timers due;
    core::pool<core::claim> claims;
    core::audience heard;
    redlock::metrics counters;
    core::sender commands{rules, masters, claims, heard, *this};
    core::essentials with{rules, masters, commands, due, claims, chance, counters, host};
};

} // namespace unit
