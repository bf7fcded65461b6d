// The connection for commands to one master: introduces itself, and keeps the order of commands in
// flight. What it has in common with the subscriber is in session.hpp.
//
// Replies match commands first in, first out, so a late reply is never taken for another one. When
// the connection breaks, the outcome of each command in flight is *unknown*, and the owner is
// notified.

#pragma once

#include "admission.hpp"
#include "core/base/decisions.hpp"
#include "core/base/pool.hpp"
#include "core/base/ring_buffer.hpp"
#include "core/bytes/answer.hpp"
#include "core/bytes/command.hpp"
#include "membership.hpp"
#include "server_clock.hpp"
#include "session.hpp"
#include "settings.hpp"

#include <redlock/metrics.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace redlock::core {

class receiver;

/// The purpose of a command in flight.
struct sent_command {
    command_kind kind = command_kind::ping;
    command_variant how = command_variant::evalsha; // of commands with several variants
    lock_form form = lock_form::exclusive;          // of the claim
    std::uint16_t epoch = 0;  // identifies what the reply belongs to: a round, an attempt, a ticket
                              // request or a part of a scan
    bool publishes = false;   // the script publishes the removal
    bool in_frame = false;    // for several locks: the subject is the frame
    std::uint8_t locks = 1;   // their number
    std::uint8_t replies = 1; // number of outstanding replies: for native acquires one per lock,
                              // plus one for the certificate
    bool certified = false;   // its grants count only once the certificate has arrived
    std::uint32_t record = 0; // the memory record when it was sent; of a handshake: the look
    receiver* to = nullptr;   // null: the connection itself
    any_handle subject = {};  // what it is to the receiver
};

/// A command, and when its reply arrived or became impossible.
struct arrival {
    std::size_t master = 0;
    const sent_command& command;
    time_point sent = never;
    time_point now;
};

/// Whatever sends a command receives its reply.
class receiver {
public:
    /// `got`: null if the connection broke before: the command may have been executed.
    virtual void replied(const arrival& at, const reply* got) = 0;
    /// The usual reply to a call for several locks: the master has done what was asked for these, a
    /// bit each, the last lock lowest. `command.replies` includes theirs.
    virtual void usual_reply(const arrival& /*at*/, std::uint64_t /*locks*/) {}

protected:
    ~receiver() = default;
};

class connection final : public session {
public:
    /// Maximum number of locks without a reply from one master; further commands are not sent.
    static constexpr std::size_t in_flight_max = 65'536;

    connection(
        std::size_t master,
        const settings& rules,
        membership& members,
        connection_events& events,
        jitter& random)
        : session(master, master, rules, events, random),
          members_(members) {}

    /// \name What happened
    /// \{
    void stop(std::string_view why, time_point now);
    void received(std::span<const char> bytes, time_point now) override;
    void written(std::size_t bytes, time_point now = never) noexcept;
    void time_passed(time_point now) override;
    /// \}

    time_point next_due() const noexcept override {
        return std::min(
            {session::next_due(),
             confirms_soon() ? fitness_.votes_from : forever,
             up() && !silent() ? fitness_due_ : forever});
    }

    /// Up, but with too many commands in flight.
    bool overloaded() const noexcept { return awaited_ >= in_flight_max; }
    /// Round trip time of the latest reply on this connection.
    std::chrono::nanoseconds round_trip() const noexcept { return round_trip_; }
    /// When the latest reply came.
    time_point heard_at() const noexcept { return heard_at_; }
    /// When the latest command left, or the latest reply came.
    time_point active_at() const noexcept { return std::max(heard_at_, wrote_at_); }
    /// What the server reported; of the previous connection if there is none.
    const server_info& info() const noexcept { return info_; }
    /// The judgement on it. Whether it is a member is decided elsewhere (membership.hpp).
    const eligibility& judgement() const noexcept { return fitness_; }

    /// Up, and asked again what it was asked when it came up.
    bool introducing_again() const noexcept { return introducing_again_; }

    const server_capabilities& commands() const noexcept { return info_.commands; }
    /// Learns from a reply whether the server has the script and accepts this variant.
    void learn(const sent_command& command, const reply& got, const answer& meaning) noexcept;
    /// The result of a PUBLISH: empty if it was executed, otherwise the server's error.
    void published(std::string_view refusal, time_point now);
    /// The server's error for our PUBLISH; empty if there is none.
    const std::string& unpublished() const noexcept { return unpublished_; }
    /// Reads the server's clock from a reply.
    void learn_clock(std::int64_t server_us, time_point sent, time_point now);
    /// How much later than at `moment` the server may execute a command that must not run after it.
    std::chrono::nanoseconds clock_error(time_point moment) const noexcept {
        return clock_.error(moment, rules_);
    }
    /// Requires `up()`.
    void ask_for_clock(time_point now);
    /// Asks whether the server is still fit to vote if that was longer ago than
    /// `fitness_interval`. Called before each command, so that no vote is older than that.
    void keep_fit(time_point now) {
        if (now >= fitness_due_) {
            check_fitness(now);
        }
    }

    /// The argument of a script that must not run after `moment` (guarded protocol).
    master_guard guard_until(time_point moment) const noexcept;
    /// Appends this guard as the last arguments of a frame.
    void append_guard(std::string& out, time_point moment) const;
    /// \name The certificate
    /// A native SET does not check the master's memory record. The certificate does: a GET that
    /// follows on the same connection. If the record is still that of the handshake, the master has
    /// lost nothing since, and what it granted in between is a vote.
    /// \{
    /// Returns the number of the current memory record, for `sent_command::record`.
    std::uint32_t record() const noexcept { return record_number_; }
    /// Whether the memory record in the reply is the one that was current when the command was
    /// sent.
    bool certifies(const sent_command& sent, const reply& got) const noexcept;
    /// Returns the locks of the current call that the master has granted so far, a bit each, the
    /// last one lowest; and forgets them.
    std::uint64_t take_granted() noexcept { return std::exchange(granted_, 0); }
    /// \}

    /// The master itself reported that it must not vote for this long, until `ends_us` of its
    /// clock. The time is also counted on our clock. The master votes when it has passed on both
    /// clocks, because the master's may be stepped. Then another handshake must show that it was
    /// not: after a step, keys that were healed in the quarantine have expired.
    void quarantine(std::chrono::microseconds left, std::int64_t ends_us, time_point now);
    /// Whether the master is in quarantine by the clock of this client. Afterwards it may vote for
    /// others, even if this client still waits for the confirmation.
    bool quarantined(time_point now) const noexcept { return now < fitness_.votes_from; }
    /// Whether its record says that it has lost nothing ever, as that of a master declared new.
    bool declared_new() const noexcept { return fitness_.fit && quarantine_ends_us_ == 0; }
    /// The longest that its record asks for, as last read. At least that of this client.
    std::chrono::microseconds quarantine_time() const noexcept {
        return std::max(rules_.quarantine_time(), recorded_quarantine_);
    }
    /// The longest lease for which this master votes: one that its recorded quarantine outlasts,
    /// and no longer than a change of `max_ttl` that is planned there.
    std::chrono::milliseconds ttl_limit() const noexcept { return ttl_limit_; }
    /// Whether its quarantine is not over because it became longer.
    bool raised() const noexcept { return raised_; }
    /// Starts a new memory record, because the master's clock was stepped.
    void restart_memory(time_point now);
    /// Requests its clock if no reply has contained it for a while. Requires `up()`.
    void keep_clock(time_point now);

    /// Queues one formatted command. Requires `up()`. Returns the position of its end in the
    /// stream: it is written once `written_mark` has reached this.
    std::uint64_t send(std::string_view bytes, const sent_command& what, time_point now);
    std::uint64_t written_mark() const noexcept { return written_; }

    /// Requests a new introduction of the server, after a change.
    void introduce_again(time_point now);

    master_metrics& counters() noexcept { return counters_; }

private:
    struct in_flight {
        sent_command what;
        time_point sent;
    };

    time_point oldest() const noexcept override {
        return in_flight_.empty() ? forever : in_flight_.front().sent;
    }
    void
    say(command_kind what, std::initializer_list<std::string_view> words, time_point now) override {
        ask({.kind = what}, words, now);
    }
    void introduce(time_point now) override;
    void lost(time_point now) override;
    void silence_changed(time_point now) override;
    void check_health(time_point now) override;

    bool take_usual(time_point now);
    bool take_grants(time_point now);
    void settle(std::size_t locks, std::size_t replies, time_point now);
    void handle(const in_flight& command, const reply& answer, time_point now);
    void handle_introduction(const in_flight& command, const reply& answer, time_point now);
    std::chrono::milliseconds fitness_interval() const noexcept;
    void ask_for_info(bool checks, time_point now);
    void check_fitness(time_point now);
    /// Whether it votes, or would if it were not silent.
    bool serves(time_point now) const {
        return fitness_.fit && members_.serves(master_)
               && !(rules_.guarded() && fitness_.quarantined(now));
    }
    void introduced(const in_flight& command, const reply& info, time_point now);
    void looked(const in_flight& command, const reply& got, time_point now);
    bool needs_handshake(const reply& seen) const;
    void send_handshake(bool fit, time_point now);
    void guard_with(std::string_view server);
    void ask_for_clock_and_record(time_point now);
    void shook_hands(const in_flight& command, const reply& got, time_point now);
    time_point known_since(const server_info& next, time_point now);
    void learn_clock_enough(time_point now);
    void introduction_done(time_point now);
    void
    ask(const sent_command& what, std::initializer_list<std::string_view> words, time_point now);
    /// Whether the end of the quarantine, at `votes_from`, must be confirmed by a handshake.
    bool confirms_soon() const noexcept {
        return !fitness_.confirmed && up() && !introducing_again_;
    }

    membership& members_; // of the quorum

    bool introducing_again_ = false;
    bool looking_ = false;       // the reply to the look decides whether there is a handshake
    bool asking_clock_ = false;  // the introduction ends once its clock is known well enough
    backoff recheck_;            // of a server that does not vote
    std::string script_refusal_; // why it runs no scripts (plain protocol); empty: it does
    std::string unpublished_;
    bool warned_ = false; // `publish_refused` was reported on this connection
    server_info info_;
    std::string record_;      // its memory record, by the last handshake
    std::string certificate_; // the reply that contains it
    std::uint32_t record_number_ = 0;
    std::string server_; // the second word of the record; before it was read, the run id
    std::string guard_;  // formatted arguments of a script: `server_` and the quarantine
    eligibility fitness_;
    time_point fitness_due_ = forever; // when INFO is sent again
    std::string evicting_;             // run id of a server that was seen to evict keys
    server_clock clock_;
    std::string promoted_from_;             // the last one that this server reported
    time_point met_ = never;                // when it was first seen, if its uptime
                                            // does not show the age of its data
    std::int64_t quarantine_ends_us_ = 0;   // by the server's clock, as last reported
    time_point quarantine_counted_ = never; // its end by our clock, at the first report
    std::string restarts_;                  // run id of the server whose memory is to begin now
    std::chrono::microseconds recorded_quarantine_{0};
    bool raised_ = false;
    std::chrono::milliseconds ttl_limit_{0};

    ring_buffer<in_flight> in_flight_;
    std::size_t awaited_ = 0;   // locks of the commands in flight
    std::uint64_t granted_ = 0; // of the first of them, until its certificate arrives
    std::string scratch_;
    std::chrono::nanoseconds round_trip_{0};
    time_point heard_at_ = never;
    time_point wrote_at_ = never;
    time_point clock_asked_at_ = never; // or when a reply last contained the clock
    std::uint64_t queued_ = 0;
    std::uint64_t written_ = 0;
    master_metrics counters_;
};

} // namespace redlock::core
