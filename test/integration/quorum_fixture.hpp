// A quorum of real masters and a client that all of them have admitted.
#pragma once

#include "client.hpp"
#include "support/master_process.hpp"

namespace redlock::test {

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// A server that does not lose what it has replied to, even if it is killed.
inline master_options fsyncing_always() {
    master_options options;
    options.appendonly = true;
    options.appendfsync = "always";
    return options;
}

struct quorum_fixture {
    explicit quorum_fixture(
        std::size_t n,
        const std::function<void(config&)>& change = [](config&) {},
        master_options options = {})
        : masters(n, std::move(options)),
          me(io, changed(change), n) {}

    config changed(const std::function<void(config&)>& change) const {
        config result = config_for(masters.urls());
        change(result);
        return result;
    }

    /// A lock, once the vote of every master is in: an acquire ends at the deciding one.
    redlock::lock take_everywhere(const std::string& resource, acquire_options options = once()) {
        const auto votes = [this] {
            std::uint64_t sum = 0;
            for (const master_metrics& one : me.count().masters) {
                sum += one.acquire_votes[vote::granted];
            }
            return sum;
        };
        const std::uint64_t before = votes();
        redlock::lock result = me.take(resource, options);
        run_until(io, [&] { return votes() == before + masters.size(); });
        return result;
    }

    /// Lets the context run for a while.
    void pass(milliseconds time) {
        const auto end = std::chrono::steady_clock::now() + time;
        run_until(io, [&] { return std::chrono::steady_clock::now() >= end; });
    }

    /// Whether it comes true while the context runs. For what is expensive to look at.
    bool eventually(const std::function<bool()>& holds, std::chrono::seconds limit = 20s) {
        const auto end = std::chrono::steady_clock::now() + limit;
        while (!holds()) {
            if (std::chrono::steady_clock::now() >= end) {
                return false;
            }
            pass(10ms);
        }
        return true;
    }

    /// Whether all masters that run end up without a key.
    bool no_key_left() {
        return eventually([this] { return masters.total_keys() == 0; });
    }

    /// Whether nothing is under way or owed any more.
    bool settled() {
        return eventually([this] {
            const metrics now = me.count();
            return now.waiting == 0 && now.held == 0 && now.pending_removals == 0;
        });
    }

    void everywhere(const std::vector<std::string>& command) {
        for (master_process& master : masters) {
            master.command(command);
        }
    }

    asio::io_context io;
    quorum_of_masters masters;
    client me;
};

} // namespace redlock::test
