// The state of the subscriber connection to one master: subscribes to the channels of locks with
// waiters, and reports that one of them may be free.
//
// Everything it reports only saves time. A lost message (a broken connection, a refusal) costs the
// waiters time and nothing else, so nothing is retried or stored. RESP2: in subscribed mode each
// reply names its kind, and messages come in between.

#pragma once

#include "connection.hpp"
#include "core/base/ring_buffer.hpp"
#include "core/bytes/resp.hpp"
#include "liveness.hpp"
#include "settings.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace redlock::core {

class subscriber {
public:
    /// Maximum number of unconfirmed changes in addition to one per channel. With more, the
    /// connection is closed.
    static constexpr std::size_t in_flight_max = 65'536;

    subscriber(std::size_t master, const settings& rules, connection_events& events, jitter& random)
        : master_(master),
          rules_(rules),
          events_(events),
          liveness_(rules, random) {}

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

    /// \name What happened
    /// \{
    void stop(std::string_view why);
    void opened(time_point now);
    void closed(std::string_view why, time_point now); // also: could not be opened
    void received(std::span<const char> bytes, time_point now);
    void time_passed(time_point now);
    /// \}

    /// When `time_passed` must be called next.
    time_point next_due() const noexcept { return liveness_.next_due(oldest()); }

    /// Whether the connection is up and subscriptions are not refused. A channel is active once its
    /// confirmation was reported.
    bool live() const noexcept { return liveness_.up() && !refused_ && !liveness_.silent(); }
    /// Whether `watch` has ever opened the connection.
    bool wanted() const noexcept { return !liveness_.is(liveness::state::idle); }
    /// Connected, but the server refuses the subscription.
    bool refused() const noexcept { return refused_; }
    /// Why it is not live; the server's error if it refused.
    const std::string& why_not() const noexcept { return why_not_; }
    /// Number of messages.
    std::uint64_t messages() const noexcept { return messages_; }

    /// Bytes to be written.
    std::string& output() noexcept { return output_; }

private:
    enum class asked : std::uint8_t { login, name, ping, subscribe, unsubscribe };

    struct in_flight {
        asked what;
        time_point sent;
    };

    time_point oldest() const noexcept {
        return in_flight_.empty() ? forever : in_flight_.front().sent;
    }
    void open(time_point now);
    void lose(std::string_view why, time_point now);
    void say(asked what, std::initializer_list<std::string_view> arguments, time_point now);
    void change(asked what, std::initializer_list<std::string_view> arguments, time_point now);
    bool handle(const reply& got, time_point now);
    bool answered(asked what, const reply& got, time_point now);
    void notify(const reply& got, std::string_view release, time_point now);

    std::size_t master_;
    const settings& rules_;
    connection_events& events_;

    liveness liveness_;
    bool refused_ = false;
    std::string secret_; // that was sent: the next one may be another
    std::string why_not_ = "not connected yet";
    std::string said_; // an error before the first PONG that did not end the connection
    std::set<std::string, std::less<>> watched_;

    reply_reader reader_;
    ring_buffer<in_flight> in_flight_;
    std::string output_;
    std::uint64_t messages_ = 0;
};

} // namespace redlock::core
