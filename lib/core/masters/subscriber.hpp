// The connection for release notifications of one master: subscribes to the channels of locks with
// waiters, and reports that one of them may be free. What it has in common with the connection for
// commands is in session.hpp.
//
// Everything it reports only saves time. A lost message (a broken connection, a refusal) costs the
// waiters time and nothing else, so nothing is retried or stored. RESP2: in subscribed mode each
// reply names its kind, and messages come in between.

#pragma once

#include "core/base/ring_buffer.hpp"
#include "session.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace redlock::core {

class subscriber final : public session {
public:
    /// Maximum number of unconfirmed changes in addition to one per channel. With more, the
    /// connection is closed.
    static constexpr std::size_t in_flight_max = 65'536;

    subscriber(std::size_t master, const settings& rules, connection_events& events, jitter& random)
        : session(rules.size() + master, master, rules, events, random) {}

    /// \name Channels. Changes are sent with the next write.
    /// \{

    /// Subscribes, now and after each reconnection; each confirmation is reported. The first call
    /// opens the connection, which then stays.
    void watch(std::string_view channel, time_point now);
    void unwatch(std::string_view channel, time_point now);
    bool watches(std::string_view channel) const { return watched_.contains(channel); }
    /// Number of watched channels.
    std::size_t watched() const noexcept { return watched_.size(); }
    /// \}

    void stop(std::string_view why);
    void received(std::span<const char> bytes, time_point now) override;

    /// Whether the connection is up and subscriptions are not refused. A channel is active once its
    /// confirmation was reported.
    bool live() const noexcept { return up() && !forbidden_ && !silent(); }
    /// Connected, but the server refuses the subscription: `why_down` is its error.
    bool forbidden() const noexcept { return forbidden_; }
    /// Number of messages.
    std::uint64_t messages() const noexcept { return messages_; }

private:
    struct in_flight {
        command_kind what;
        time_point sent;
    };

    time_point oldest() const noexcept override {
        return in_flight_.empty() ? forever : in_flight_.front().sent;
    }
    void
    say(command_kind what, std::initializer_list<std::string_view> words, time_point now) override;
    void introduce(time_point now) override;
    void lost(time_point now) override;
    void silence_changed(time_point /*now*/) override {}
    void check_health(time_point now) override;

    void change(command_kind what, std::string_view channel, time_point now);
    bool handle(const reply& got, time_point now);
    void notify(const reply& got, std::string_view release, time_point now);

    bool forbidden_ = false;
    std::set<std::string, std::less<>> watched_;
    ring_buffer<in_flight> in_flight_;
    std::uint64_t messages_ = 0;
};

} // namespace redlock::core
