// What was asked for on the command line, and the times that everything agrees on.
#pragma once

#include <redlock/config.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace demo {

struct settings {
    std::size_t masters = 5;
    std::size_t workers = 6;
    std::chrono::seconds seconds{20};
    std::uint64_t seed = 0;
    bool unlocked = false; // the workers take no lock, to show what the verdict is then
};

// A lease: long against the pauses of a busy machine, short against the demo.
inline constexpr std::chrono::milliseconds ttl{1'000};
// A holder stops this long before its lease ends. It covers a worker that loses the processor
// between its last look at the lock and its write.
inline constexpr std::chrono::milliseconds stop_margin{250};
// The quarantine of a master that has no memory. Short, so that it can be watched.
inline constexpr std::chrono::milliseconds max_ttl{2'000};
// One call of a worker's acquire.
inline constexpr std::chrono::milliseconds wait_limit{500};

// The quorum, as all processes of the demo see it.
inline redlock::config
quorum_config(const std::vector<std::string>& urls, std::string client_name) {
    redlock::config config;
    config.masters.assign(urls.begin(), urls.end());
    config.key_prefix = "redlock-demo:";
    config.max_ttl = max_ttl;
    config.reconnect_delay_max = std::chrono::milliseconds(500);
    config.health_check_interval = std::chrono::milliseconds(500);
    config.client_name = std::move(client_name);
    return config;
}

} // namespace demo
