// An engine and the connections that it asks for. What drives an engine by hand derives from it:
// the unit tests, the fuzzer and the simulator. Each of them decides when the bytes travel, and
// notes what the engine reports.

#pragma once

#include "core/engine/engine.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::test {

/// Of a connection, for events that may come after its end.
using connection_id = std::uint32_t;
inline constexpr connection_id no_connection = ~connection_id{0};

/// No quarantine, 100 ms for a master, ttl at most 30 s, drift 1 % + 2 ms.
inline core::settings settings_for(std::size_t masters) {
    core::settings rules;
    for (std::size_t i = 0; i < masters; ++i) {
        rules.masters.emplace_back();
        rules.names.push_back("m" + std::to_string(i));
    }
    rules.key_prefix = "p:";
    rules.max_ttl = std::chrono::seconds(30);
    rules.drift = {0.01, std::chrono::milliseconds(2)};
    rules.quarantine = false;
    rules.connect_timeout = std::chrono::seconds(2);
    rules.master_timeout = std::chrono::milliseconds(100);
    rules.reconnect_delay_min = std::chrono::milliseconds(50);
    rules.reconnect_delay_max = std::chrono::seconds(2);
    rules.health_check_interval = std::chrono::hours(1);
    rules.retry_delay_min = std::chrono::milliseconds(2);
    rules.retry_delay_max = std::chrono::milliseconds(200);
    return rules;
}

class engine_host : protected core::engine_callbacks {
public:
    engine_host(const engine_host&) = delete;
    engine_host& operator=(const engine_host&) = delete;

protected:
    /// A derived class sets the id in `open`, and resets the link in `close`.
    struct link {
        connection_id id = no_connection;
        bool up = false;

        bool asked_for() const noexcept { return id != no_connection && !up; }
    };

    engine_host() = default;
    ~engine_host() = default;

    virtual time_point now() const noexcept = 0;
    virtual unsigned char random_byte() {
        random_ = random_ * 6364136223846793005U + 1442695040888963407U;
        return static_cast<unsigned char>(random_ >> 56U);
    }
    /// The token of an attempt, in the order of the attempts.
    virtual void token_drawn(std::string /*hex*/) {}

    /// Replaces the engine, if there is one.
    core::engine& make_engine(core::settings rules) {
        links_.assign(2 * rules.size(), {});
        core::engine_callbacks& reports = *this; // a protected base
        engine_ = std::make_unique<core::engine>(std::move(rules), reports);
        return *engine_;
    }
    void link_opened(std::size_t which) {
        links_[which].up = true;
        engine_->opened(which, now());
    }
    void link_closed(std::size_t which, std::string_view why) {
        links_[which] = {};
        engine_->closed(which, why, now());
    }
    /// Passes what waits to be written to `send`.
    template <typename F>
    void write(std::size_t which, F send) {
        std::string bytes = std::exchange(engine_->output(which), {});
        const std::size_t size = bytes.size();
        send(std::move(bytes)); // before the engine, which may then close the connection
        engine_->written(which, size, now());
    }

    std::vector<link> links_; // to the masters, then those for pushes
    std::unique_ptr<core::engine> engine_;

private:
    void random(std::span<unsigned char> out) final {
        std::string hex;
        for (unsigned char& byte : out) {
            byte = random_byte();
            hex += "0123456789abcdef"[byte >> 4U];
            hex += "0123456789abcdef"[byte & 15U];
        }
        if (hex.size() == core::owned_key::token_size) {
            token_drawn(std::move(hex));
        }
    }

    std::uint64_t random_ = 42;
};

} // namespace redlock::test
