// What the tests of the guarded protocol share: its configuration, and its keys seen from outside.
#pragma once

#include "quorum_fixture.hpp"

namespace redlock::test {

inline void guarded(config& c) {
    c.protocol = protocol::guarded;
}

inline acquire_options with_token(acquire_options options = once()) {
    options.fencing = true;
    return options;
}

// Keys of the default prefix.
inline std::string lock_key(const std::string& resource) {
    return "redlock:{" + resource + "}";
}
inline std::string fence_key_of(const std::string& resource) {
    return lock_key(resource) + ":fence";
}
inline const std::string record_key = "redlock::epoch";

inline bool exists(const master_process& master, const std::string& key) {
    return master.command({"EXISTS", key}) == "1";
}

/// How often a command was called since the server began, calls in scripts included.
inline std::uint64_t calls_of(const master_process& master, const std::string& command) {
    const std::string stats = master.command({"INFO", "commandstats"});
    const std::string field = "cmdstat_" + command + ":calls=";
    const std::size_t at = stats.find(field);
    return at == std::string::npos ? 0 : std::stoull(stats.substr(at + field.size()));
}

/// Waits until this client has seen this master that way.
inline void
until_state(asio::io_context& io, const client& one, std::size_t master, master_state state) {
    run_until(io, [&] { return one.health().masters[master].state == state; });
}

/// A site with a second manager, which is what a second process is to the masters.
struct two_processes : quorum_fixture {
    explicit two_processes(std::size_t n = 3, const std::function<void(config&)>& change = guarded)
        : quorum_fixture(n, change),
          other(io, changed(change), n) {}
    client other;
};

} // namespace redlock::test
