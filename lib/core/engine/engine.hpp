// The engine: all masters and all operations of one lock manager. It decides; it does no I/O, reads
// no clock and owns no thread. Input: events with a timestamp. Output: requests and reports to the
// host, the implementation of `engine_callbacks`.
//
// It passes what one part has decided, and timers, to the others. `acquires` makes locks out of
// attempts, with `attempts`, `waiting` and `slot_scans`; `leases` keeps what was won, `removals`
// removes what has ended; `replies` says which claim a reply belongs to, `queries` answers
// questions. Replies go to the part that has sent the command (`receiver`).

#pragma once

#include "acquires.hpp"
#include "attempts.hpp"
#include "core/masters/audience.hpp"
#include "essentials.hpp"
#include "holders.hpp"
#include "leases.hpp"
#include "masters_report.hpp"
#include "queries.hpp"
#include "removals.hpp"
#include "replies.hpp"
#include "slot_scans.hpp"
#include "waiting.hpp"

#include <redlock/diagnostics.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::core {

class engine final : private connection_events, private subscriber_events, private reply_events {
public:
    engine(settings rules, engine_callbacks& outside);
    ~engine();
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;

    /// \name Life
    /// \{
    void start(time_point now);
    void close(time_point now);
    /// \}

    /// \name What happened to a connection
    /// There are two connections to each of N masters: number i is for commands, number N + i for
    /// release notifications.
    /// \{
    void opened(std::size_t link, time_point now);
    /// Changes the password for connections to this master that open from now on.
    void set_password(std::size_t master, std::string password) {
        rules_.masters[master].password = std::move(password);
    }
    void closed(std::size_t link, std::string_view why, time_point now);
    void received(std::size_t link, std::span<const char> bytes, time_point now);
    void written(std::size_t link, std::size_t bytes, time_point now);
    /// \}

    /// When `time_passed` must be called next; `forever` if nothing is due.
    time_point next_due() const noexcept;
    void time_passed(time_point now);

    /// \name Requests of callers, with validated arguments
    /// \{
    /// An acquire or an attach. The result is reported by `acquired` or `not_acquired`.
    handle acquire(const acquire_request& request, time_point now) {
        return acquires_.begin(request, refusal(), now);
    }
    void cancel(handle acquire, time_point now);
    /// Whether this acquire is queued and has never made an attempt.
    bool has_sent_nothing(handle acquire) const noexcept {
        return acquires_.has_sent_nothing(acquire);
    }
    void extend(handle lease, std::chrono::milliseconds ttl, time_point now);
    /// Whether this is the lease of a writer.
    bool writes(handle lease) const;
    /// Turns the lease of a writer into that of a reader, and extends it. Reported as an extension.
    void downgrade(handle lease, time_point now);
    /// Ends a lease at its holder's request, even if it is lost: its keys stay until then, or until
    /// the last deadline that the holder was shown.
    void release(handle lease, time_point now);
    /// Ends a lease without removing its keys. Returns false if they are being removed already.
    bool abandon(handle lease);
    void ask(std::uint64_t cookie, std::string_view resource, time_point now) {
        queries_.ask(cookie, resource, now);
    }
    void
    query_slots(std::uint64_t cookie, std::string_view pool, std::uint32_t slots, time_point now) {
        scans_.ask(cookie, pool, slots, now);
    }
    /// Reports notifications of this lock by `heard` until `unlisten` was called as often.
    void listen(std::string_view resource, time_point now) {
        waiting_.listen(resource, running(), now);
    }
    void unlisten(std::string_view resource, time_point now) { waiting_.unlisten(resource, now); }
    /// \}

    /// Returns the bytes to be written. Call `written` after taking some.
    std::string& output(std::size_t link) { return sender_.output(link); }

    /// Formats the commands that were queued. `output` does it as well.
    void flush() { sender_.flush(); }

    /// Whether output may have been queued since the last call.
    bool wants_write() noexcept { return sender_.wants_write(); }

    std::size_t size() const noexcept { return masters_.size(); }
    bool running() const noexcept { return life_ == life::running; }
    bool closing() const noexcept { return life_ == life::closing || life_ == life::closed; }
    bool closed_down() const noexcept { return life_ == life::closed; }
    bool ready() const noexcept { return masters_.ready(); }
    std::size_t majority() const noexcept { return masters_.majority(); }

    const settings& rules() const noexcept { return rules_; }
    metrics count() const;
    health examine(time_point now) const;
    /// The longest ttl that this client may use. 0: not known yet.
    std::chrono::milliseconds ttl_limit() const;
    /// An argument was refused because of it: it may be longer by now.
    void look_at_limit(time_point now);
    /// Describes votes as text.
    std::vector<master_vote> describe(const ballots& votes, time_point now) const;

private:
    enum class life : std::uint8_t { created, running, closing, closed };

    // connection_events
    void open(std::size_t master) override { host_.open(master); }
    void close(std::size_t master) override { host_.close(master); }
    void admission_changed(std::size_t master, time_point now) override;
    void noted(std::size_t master, std::string_view text) override { log_.noted(master, text); }
    void clock_stepped(std::size_t master, std::chrono::microseconds by, time_point now) override;
    void publish_refused(std::size_t master, time_point now) override;
    void record_changes() override { sender_.flush(); }
    void random(std::span<unsigned char> out) override { host_.random(out); }

    // subscriber_events
    void open_subscriber(std::size_t master) override { host_.open(size() + master); }
    void close_subscriber(std::size_t master) override { host_.close(size() + master); }
    void release_notified(
        std::size_t master,
        std::string_view channel,
        std::string_view release,
        time_point now) override;

    // reply_events
    void answered(claim& owner, const arrival& at, const answer& got) override;
    void removed(const arrival& at, std::span<const batch::item> locks) override {
        if (removals_.removed(at, locks)) {
            closing_moved(at.now);
        }
    }
    void again(claim& owner, const arrival& at, const answer& got) override;
    void voters_changed(const admission_change& change, time_point now) override;

    void members_changed(time_point now);
    void notifications_changed(time_point now);
    void fire(const timer& due, time_point now);
    void end_of_event(time_point now);
    void finish_closing(time_point now);
    bool waits_to_close() const noexcept {
        return acquires_.finishing() || waiting_.leaving() || holders_.lost() > 0
               || removals_.under_way();
    }
    void closing_moved(time_point now) noexcept {
        if (life_ == life::closing) {
            close_by_ = later(now, rules_.master_timeout);
        }
    }
    std::optional<errc> refusal() const noexcept {
        return running() ? std::nullopt
                         : std::optional(closing() ? errc::closed : errc::not_running);
    }

    settings rules_;
    engine_callbacks& host_;
    jitter random_;
    metrics counters_;
    timers timers_;
    audience audience_;
    masters masters_;
    mutable pool<claim> claims_;
    essentials essentials_{rules_, masters_, sender_, timers_, claims_, random_, counters_, host_};
    replies replies_;
    sender sender_;
    acquires acquires_;
    queries queries_{essentials_};
    slot_scans scans_{essentials_, acquires_};
    leases leases_{essentials_};
    removals removals_{essentials_};
    attempts attempts_{essentials_};
    waiting waiting_{essentials_, acquires_};
    holders holders_;
    master_log log_{essentials_};
    life life_ = life::created;
    time_point close_by_ = forever;
};

} // namespace redlock::core
