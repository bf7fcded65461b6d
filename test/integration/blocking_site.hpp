// What the tests of blocking use share: masters, and managers with threads of their own.
#pragma once

#include "quorum_fixture.hpp"
#include "support/error_of.hpp"

#include <redlock/blocking.hpp>

#include <thread>

namespace redlock::test::blocking_use {

/// Whether it comes true.
template <typename Holds>
bool soon(Holds holds, std::chrono::seconds limit = 20s) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!holds()) {
        if (std::chrono::steady_clock::now() >= end) {
            return false;
        }
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

struct site {
    explicit site(
        std::size_t n, const std::function<void(config&)>& change = [](config&) {})
        : masters(n) {
        settings = config_for(masters.urls());
        change(settings);
    }

    std::unique_ptr<blocking::manager> client() const {
        auto result = std::make_unique<blocking::manager>(settings);
        REQUIRE(soon([&] { return result->async().get_health().admitted == masters.size(); }));
        return result;
    }

    quorum_of_masters masters;
    config settings;
};

/// A writer that gave up keeps readers out for 2 s.
inline void guarded_and_brisk(config& c) {
    c.protocol = protocol::guarded;
    c.master_timeout = 500ms;
}

} // namespace redlock::test::blocking_use
