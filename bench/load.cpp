// Names, addresses and clocks that both sides of the benchmark share.
#include "load.hpp"

#include <redlock/config.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <ctime>
#include <stdexcept>

namespace bench {

address parse_address(const std::string& text) {
    const bool is_url = text.find("://") != std::string::npos;
    const redlock::endpoint parsed(is_url ? text : "redis://" + text);
    const auto refuse = [&parsed](const char* why) {
        return std::invalid_argument(fmt::format("master '{}': {}", to_string(parsed), why));
    };
    if (parsed.tls || !parsed.path.empty()) {
        throw refuse("the floor speaks plain TCP only");
    }
    if (parsed.database != 0) {
        throw refuse("databases are not supported");
    }
    return {parsed.host, parsed.port, parsed.username, parsed.password, parsed.name};
}

std::string to_string(const address& master) {
    return master.host.find(':') == std::string::npos
               ? fmt::format("{}:{}", master.host, master.port)
               : fmt::format("[{}]:{}", master.host, master.port);
}

std::string_view to_string(side who) noexcept {
    switch (who) {
    case side::floor:
        return "floor";
    case side::plain:
        return "plain";
    case side::guarded:
        return "guarded";
    case side::fenced:
        return "fenced";
    case side::pipeline:
        return "pipeline";
    case side::scope:
        return "scope";
    case side::threads:
        return "threads";
    }
    return "";
}

std::vector<std::string> resource_names(std::size_t in_flight) {
    std::vector<std::string> names;
    names.reserve(in_flight);
    for (std::size_t i = 0; i < in_flight; ++i) {
        names.push_back(fmt::format("bench-{:07}-{:05}", ::getpid(), i));
    }
    return names;
}

std::string lock_key(const std::string& resource) {
    return "redlock:{" + resource + "}";
}

void require_valid(const load& work) {
    if (work.in_flight == 0) {
        throw std::invalid_argument("in_flight is 0, at least 1 lock must be in flight");
    }
    if (work.duration <= std::chrono::milliseconds::zero() && work.pairs_max == 0) {
        throw std::invalid_argument("the load has neither a duration nor a number of pairs");
    }
    if (work.ttl <= std::chrono::milliseconds::zero()) {
        throw std::invalid_argument("the ttl must be positive");
    }
}

std::chrono::nanoseconds process_cpu_time() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

} // namespace bench
