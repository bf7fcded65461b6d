// What the two connections to a master have in common, that for commands (connection.hpp) and that
// for release notifications (subscriber.hpp). It decides when to connect, when to check the health
// of the server, when it counts as silent, and when to give up; and it logs in.
//
// The socket is elsewhere (lib/net). Input: events. Output: requests to `connection_events`.

#pragma once

#include "core/base/backoff.hpp"
#include "core/bytes/command.hpp"
#include "core/bytes/resp.hpp"
#include "settings.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace redlock::core {

/// The owner of the connections. Each call names the master by its number.
class connection_events {
public:
    /// Starts to connect; the result is `opened` or `closed`. `link`: of N masters, number i is the
    /// connection to master i, N + i its subscriber.
    virtual void open(std::size_t link) = 0;
    /// Closes the socket; no event of it may arrive later.
    virtual void close(std::size_t link) = 0;
    /// Bytes are to be written.
    virtual void queued() noexcept {}
    /// Its ability to vote has changed: introduced, lost, silent, replying again.
    virtual void admission_changed(std::size_t master, time_point now) = 0;
    /// A new memory record counts after this. What is queued was chosen by the previous one, and
    /// would pass the check of the master under the new one: it must be sent before.
    virtual void record_changes() {}
    /// The clock of this master or of this machine was stepped. `by` is the step if it was the
    /// master's.
    virtual void
    clock_stepped(std::size_t master, std::chrono::microseconds by, time_point now) = 0;
    /// A line for the log, at info level.
    virtual void noted(std::size_t master, std::string_view text) = 0;
    /// The server refused a PUBLISH, for the first time on this connection.
    virtual void publish_refused(std::size_t /*master*/, time_point /*now*/) {}

    /// The lock of that channel may be free: a message arrived, which names the release, or
    /// (without a name) a subscription was confirmed, and a message may have been missed before.
    /// May call `watch` and `unwatch`.
    virtual void release_notified(
        std::size_t master, std::string_view channel, std::string_view release, time_point now) = 0;

    /// Fills `out` with unpredictable bytes.
    virtual void random(std::span<unsigned char> out) = 0;

protected:
    ~connection_events() = default;
};

class session {
public:
    /// \name What happened
    /// \{
    void start(time_point now);
    void opened(time_point now);
    void closed(std::string_view why, time_point now); // also: could not be opened
    virtual void received(std::span<const char> bytes, time_point now) = 0;
    virtual void time_passed(time_point now);
    /// \}

    /// When `time_passed` must be called next.
    virtual time_point next_due() const noexcept;

    /// Connected, and its server has replied to the first commands.
    bool up() const noexcept { return state_ == state::up; }
    /// Whether `start` has been called, and it was not stopped since.
    bool started() const noexcept { return state_ != state::idle; }
    bool connecting() const noexcept {
        return state_ == state::opening || state_ == state::introducing;
    }
    /// Up, but without a reply for `master_timeout`.
    bool silent() const noexcept { return silent_; }
    /// Not up because the server refused, rather than because it could not be reached.
    bool refused() const noexcept { return refused_; }
    /// Why it is not up, or of no use.
    const std::string& why_down() const noexcept { return why_down_; }

    /// Bytes to be written.
    std::string& output() noexcept { return output_; }

protected:
    enum class state : std::uint8_t { idle, waiting, opening, introducing, up };

    session(
        std::size_t link,
        std::size_t master,
        const settings& rules,
        connection_events& events,
        jitter& random)
        : link_(link),
          master_(master),
          rules_(rules),
          events_(events),
          random_(random) {}
    ~session() = default;

    /// \name What the two connections do in their own way
    /// \{
    /// The moment at which the oldest command without a reply was sent, or `forever`.
    virtual time_point oldest() const noexcept = 0;
    /// Queues a command.
    virtual void
    say(command_kind what, std::initializer_list<std::string_view> words, time_point now) = 0;
    /// It is connected, and the login is queued.
    virtual void introduce(time_point now) = 0;
    /// The connection broke, or could not be opened.
    virtual void lost(time_point now) = 0;
    virtual void silence_changed(time_point now) = 0;
    /// No reply came for `health_check_interval`, or the server was ineligible.
    virtual void check_health(time_point now) = 0;
    /// \}

    /// Bytes can be exchanged.
    bool connected() const noexcept { return state_ == state::introducing || up(); }
    void came_up() noexcept;
    /// Returns the next reply in what was received, of which `bytes` are the last; null if none is
    /// complete, or if the server speaks another protocol: then the connection is lost.
    const reply* next_reply(std::span<const char> bytes, time_point now);
    /// Reads the reply to a command of the login.
    void logged_in(command_kind what, const reply& got, time_point now);
    /// Replies have arrived. `well`: the next health check is not due for a while.
    void heard(bool well, time_point now);
    void lose(std::string_view why, bool refused, time_point now);
    void stop(std::string_view why);
    /// The server's error when it refuses a command, without the password that was sent.
    std::string refusal_of(std::string_view command, std::string_view error) const;

    std::size_t link_;
    std::size_t master_;
    const settings& rules_;
    connection_events& events_;
    jitter& random_;
    reply_reader reader_;
    std::string output_;
    std::string secret_; // that was sent: the next one may be another
    std::string why_down_{not_connected_yet};
    time_point check_ = forever; // check its health

private:
    bool begun() const noexcept { return connecting() || up(); }
    void open(time_point now);
    bool overdue(time_point now) const noexcept {
        return now >= later(oldest(), rules_.master_timeout);
    }

    state state_ = state::idle;
    bool silent_ = false;
    bool refused_ = false;
    time_point wake_ = forever; // connect again, or stop connecting, or waiting for a silent server
    backoff delay_;
    std::string said_; // an error during the login that did not end the connection
};

} // namespace redlock::core
