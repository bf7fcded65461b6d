// The engine: all masters and all acquires of one lock manager. It does no I/O, reads no clock and
// owns no thread. Input: events with a timestamp. Output: requests and reports to the host, the
// implementation of `engine_callbacks`.
//
// What an event means is decided by the type that owns the data: a `claim` for one token on the
// masters, a `wait_queue` for the waiters of one resource, `masters` for the votes of masters. The
// engine executes what they return: it sends commands by the `wire`, sets timers and reports.

#pragma once

#include "core/base/pool.hpp"
#include "core/base/timers.hpp"
#include "core/locks/claim.hpp"
#include "core/locks/removal_limits.hpp"
#include "core/locks/wire.hpp"
#include "core/masters/masters.hpp"
#include "core/masters/settings.hpp"
#include "core/waiting/acquire_call.hpp"
#include "core/waiting/wait_queues.hpp"
#include "engine_callbacks.hpp"
#include "queries.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/metrics.hpp>

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

/// The arguments of an acquire or an attach.
struct acquire_request {
    std::uint64_t cookie = 0;
    std::string_view resource = {};
    acquire_options options = {};
    std::string_view token = {}; // of the lock to attach to, or the caller's own (single attempt)
    bool attaches = false;
    bool default_ttl = false;                    // the ttl is shortened to the quorum's max_ttl
    lock_form form = lock_form::exclusive;       // the others are for the guarded protocol
    std::span<const std::string> resources = {}; // of the form `all`: sorted, none twice
    std::uint32_t slots = 0;                     // any slot of the pool of that name and size
    std::uint32_t wants = 1; // number of slots, all or none; more than one in the guarded protocol
};

class engine final : connection_events, wire_events, receiver {
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
    handle<acquire_call> acquire(const acquire_request& request, time_point now);
    void cancel(handle<acquire_call> acquire, time_point now);
    /// Whether no command was sent for this acquire.
    bool has_sent_nothing(handle<acquire_call> acquire) const noexcept;
    void extend(handle<claim> lease, std::chrono::milliseconds ttl, time_point now);
    /// Whether this is the lease of one resource, exclusive and guarded.
    bool may_downgrade(handle<claim> lease) const;
    /// Turns such a lease into that of a reader, and extends it. Reported as an extension.
    void downgrade(handle<claim> lease, time_point now);
    /// Ends a lease at its holder's request, even if it is lost: its keys stay until then, or until
    /// the last deadline that the holder was shown.
    void release(handle<claim> lease, time_point now);
    /// Ends a lease without removing its keys. Returns false if they are being removed already.
    bool abandon(handle<claim> lease);
    /// Asks for the owner of a lock or, with `slots`, for those of a pool of that size.
    void query(std::uint64_t cookie, std::string_view name, std::uint32_t slots, time_point now) {
        queries_.ask(cookie, name, slots, now);
    }
    /// Makes this change of the members from now on, and no other one; none: stops. What is planned
    /// stays so. Also before the start.
    void change_members(std::optional<member_change> what, time_point now) {
        masters_.change_members(std::move(what), now);
    }
    /// Reads the members from all masters again, until `members_confirmed`: by a majority.
    void read_members(time_point now) { masters_.read_members(now); }
    bool members_confirmed() const { return masters_.members_confirmed(); }
    /// Founds the quorum with the masters of this client, in place of a list that is not final.
    /// `unused`: no lock can have been on them. Before a master has replied.
    void found(bool unused) noexcept {
        rules_.founds = rules_.replaces = true;
        rules_.unused = unused;
    }
    /// Reports notifications of this lock by `heard` until `unlisten` was called as often.
    void listen(std::string_view resource, time_point now);
    void unlisten(std::string_view resource, time_point now);
    /// \}

    /// Returns the bytes to be written. Call `written` after taking some.
    std::string& output(std::size_t link) { return wire_.output(link); }

    /// Formats the commands that were queued. `output` does it as well.
    void flush() { wire_.flush(); }

    /// Whether output may have been queued since the last call.
    bool wants_write() noexcept { return wire_.wants_write(); }

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
    std::chrono::milliseconds ttl_limit() const { return masters_.ttl_limit(); }
    /// An argument was refused because of it: it may be longer by now.
    void look_at_limit(time_point now);
    /// Describes votes as text.
    std::vector<master_vote> describe(const ballots& votes, time_point now) const {
        return core::describe(votes, rules_, masters_, now);
    }

private:
    enum class life : std::uint8_t { created, running, closing, closed };

    // connection_events
    void open(std::size_t link) override { host_.open(link); }
    void close(std::size_t link) override { host_.close(link); }
    void queued() noexcept override { wire_.write_soon(); }
    void admission_changed(std::size_t master, time_point now) override;
    void noted(std::size_t master, std::string_view text) override {
        log(log_level::info, master, text);
    }
    void clock_stepped(std::size_t master, std::chrono::microseconds by, time_point now) override;
    void publish_refused(std::size_t master, time_point now) override;
    void record_changes() override { wire_.flush(); }
    void random(std::span<unsigned char> out) override { host_.random(out); }
    void release_notified(
        std::size_t master,
        std::string_view channel,
        std::string_view release,
        time_point now) override;

    // wire_events
    void answered(claim& owner, const told& from, const answer& got) override;
    void removed(const told& from, std::span<const frame::item> locks) override;
    void again(claim& owner, const told& from, bool alone) override;
    void voters_changed(const admission_change& change, time_point now) override;

    // receiver: of scans and tickets, and of what a waiter asks about the holder
    void replied(const arrival& at, const reply* got) override;

    // engine.cpp
    std::uint64_t drawn() const; // a random number
    const circumstances& at(time_point now) noexcept {
        here_.now = now;
        return here_;
    }
    /// After a change of the masters.
    void look_around() noexcept {
        here_.majority = masters_.majority();
        here_.voters = masters_.voters();
        here_.up = masters_.up();
        here_.retry_floor = masters_.retry_floor();
    }
    void decided(claim& one, steps what, time_point now);
    void fire(const timer& due, time_point now);
    void claim_due(claim& one, time_point now);
    void end_of_event(time_point now);
    void finish_closing(time_point now);
    bool waits_to_close() const noexcept {
        return !finishing_.empty() || leaving_ > 0 || lost_ > 0 || limits_.under_way();
    }
    void closing_moved(time_point now) noexcept {
        if (life_ == life::closing) {
            close_by_ = later(now, rules_.master_timeout);
        }
    }

    // masters_events.cpp
    void log(log_level level, std::string_view line) const {
        if (host_.logs(level)) {
            host_.log(level, line);
        }
    }
    void log(log_level level, std::size_t master, std::string_view text) const {
        log(level, (rules_.names[master] + ": ").append(text));
    }
    void log_outage(time_point now) const;
    void members_changed(time_point now);
    void notifications_changed(time_point now);
    void
    wake_fronts(time_point (wait_queue::*when)(const wait_view&) const noexcept, time_point now);

    // acquires.cpp: an acquire from its beginning to its end
    void name_keys(acquire_call& wanted, const acquire_request& request) const;
    void act(acquire_call& wanted, next_step next, time_point now);
    void acquire_due(acquire_call& wanted, time_point now);
    void time_out(acquire_call& wanted, time_point now);
    void end(acquire_call& wanted, std::optional<errc> why, time_point now);
    void finish(acquire_call& wanted, time_point now);
    void finish_if_on_wire(acquire_call& wanted, time_point now);
    void end_finished(time_point now);
    void drop_intent(acquire_call& wanted, time_point now);
    bool on_wire(const claim& ended) const noexcept;

    // attempts.cpp: from its first command to its result
    claim& make_claim(acquire_call& wanted, std::string_view token, time_point now);
    void try_it(acquire_call& wanted, time_point now, std::string_view token = {});
    void attach(acquire_call& wanted, std::string_view token, time_point now);
    void begin(acquire_call& wanted, claim& attempt);
    void vote_for_unasked(claim& attempt);
    void ask(acquire_call& wanted, claim& attempt, std::size_t arbiter, time_point now);
    steps ask_others(claim& attempt, time_point now);
    void raise(claim& attempt, bool anew, time_point now);
    void win(acquire_call& wanted, claim& attempt, time_point now);
    void fail(acquire_call& wanted, claim& attempt, std::optional<errc> why, time_point now);
    void roll_back(acquire_call& wanted, claim& attempt, bool last, time_point now);
    void pause_or_finish(acquire_call& wanted, claim& attempt, time_point now);
    void count_for_newer(const claim& ended, const told& from, const answer& got);

    // slots.cpp: an acquire of slots of a pool
    void ask_masters(slot_scan& asking, time_point now);
    void send_scan(const slot_scan& asking, std::size_t master, unsigned command, time_point now);
    void scan_answered(const arrival& at, const reply* answer);
    void start_scan(acquire_call& wanted, time_point now);
    void end_scan(acquire_call& wanted);
    void slots_found(acquire_call& wanted, slot_scan& asking, time_point now);
    next_step no_slot(acquire_call& front, time_point now);
    void look_on(wait_queue& waiters, acquire_call& served, const claim& won, time_point now);
    bool try_next_slot(acquire_call& wanted, claim& attempt, time_point now);

    // holders.cpp: a lease from its grant to its end, but for its release
    bool
    start_extension(claim& lease, std::chrono::milliseconds ttl, bool asked_for, time_point now);
    void start_wanted(claim& lease, time_point now);
    void report_round(claim& lease);
    void end_extensions(claim& lease, errc why);
    void lose(claim& lease, time_point now);
    void end_lost(claim& lease, time_point now);
    void end_late(claim& lease, time_point now);

    // releases.cpp: a release, what the end of a lease of this process means to waiters, and what
    // must be removed from the masters
    void release_held(claim& lease, time_point now);
    bool hand_off(claim& lease, time_point now);
    acquire_call* next_owner(claim& lease, time_point now);
    void lease_ended(const claim& lease, time_point now);
    void remove(claim& ended, time_point now);
    void send_removal(claim& ended, master_set to, time_point now);
    void send_pending(std::size_t master, time_point now);
    void removal_answered(claim& ended, std::size_t master, steps what, time_point now);
    steps settle(claim& ended, time_point now);
    void settled(claim& ended, steps what, time_point now);
    void removal_due(claim& ended, time_point now);

    // waiting.cpp: the waiters of this process
    wait_queue* queue_of(const claim& of) noexcept {
        return queues_.find(of.waiting_form(), of.queue_key());
    }
    wait_view view_of(const wait_queue& waiters, time_point now);
    const claim* held_here(const wait_queue& waiters);
    void wake(const wait_queue& waiters, time_point due);
    next_step join(acquire_call& wanted, time_point now);
    next_step ask_or_yield(acquire_call& front, time_point now);
    time_point yields_until(lock_form form, std::string_view key) noexcept;
    void leave(acquire_call& wanted, time_point now);
    void end_if_unused(wait_queue& waiters);
    next_step pause_over(acquire_call& front, time_point now);
    void pause(acquire_call& front, time_point until, time_point now);
    time_point retry_at(acquire_call& front, const claim& attempt, time_point now);
    bool watch(wait_queue& waiters, time_point now);
    void ask_holder(command_kind what, const acquire_call& front, std::size_t who, time_point now);
    void holder_told(acquire_call* wanted, const arrival& at, const reply* answered);

    // fair_queue.cpp: the order between processes
    bool take_ticket(acquire_call& front, time_point now);
    void call_queue(const wait_queue& waiters, command_kind kind, time_point now);
    void ticket_answered(const arrival& at, const reply* answered);
    next_step wait_with_ticket(acquire_call& front, const answer& got, time_point now);
    void leave_queue(wait_queue& waiters, time_point now);

    settings rules_;
    engine_callbacks& host_;
    jitter random_;
    metrics counters_;
    timers timers_;
    masters masters_;
    circumstances here_{never, rules_, 0, 0, 0, {}, random_};
    mutable pool<claim> claims_;
    wire wire_{rules_, masters_, claims_, *this};
    pool<acquire_call> acquires_;
    wait_queues queues_{masters_};
    queries queries_{rules_, masters_, wire_, timers_, host_};
    pool<slot_scan> scans_;
    removal_limits limits_;
    std::vector<handle<acquire_call>> finishing_; // failed acquires whose rollback is not sent yet
    std::size_t leaving_ = 0;      // commands in flight that give up a ticket of the fair queue
    std::size_t lost_ = 0;         // lost leases that their holders have not ended
    bool outage_reported_ = false; // in the log, since the last time when a majority was admitted
    life life_ = life::created;
    time_point close_by_ = forever;
};

} // namespace redlock::core
