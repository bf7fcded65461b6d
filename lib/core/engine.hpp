// The engine: all masters and all operations of one lock manager. It decides; it does no I/O, reads
// no clock and owns no thread. Input: events with a timestamp. Output: requests and reports to the
// host, the implementation of `engine_callbacks`.
//
// One acquire, from the top. `acquire` makes an operation. `start_attempt` makes a claim with a
// fresh token and queues its command for every admitted master, or first for the arbiter. `replied`
// counts votes until the round is decided. Then the claim becomes a lease, or is rolled back and
// the operation pauses or ends. Of the waiters for one lock, only the front of their queue makes
// attempts.
//
//   engine.cpp         start and close, time, events
//   acquire.cpp        acquires: beginning, deadlines, end, cancellation
//   attempts.cpp       attempts of acquires and local handoffs
//   forms.cpp          what differs for several resources, readers and writers
//   waiting.cpp        what the wait queues decide, and local handoff
//   fair_queue.cpp     the order between the wait queues of several processes
//   attach.cpp         attach: locks that were acquired elsewhere
//   slots.cpp          the slots of a pool: which to try
//   notifications.cpp  release notifications

#pragma once

#include "engine_callbacks.hpp"
#include "form.hpp"
#include "leases.hpp"
#include "listeners.hpp"
#include "queries.hpp"
#include "quorum.hpp"
#include "removals.hpp"
#include "replies.hpp"
#include "sender.hpp"
#include "slot_scans.hpp"
#include "subscriptions.hpp"
#include "wait_queues.hpp"

#include <redlock/metrics.hpp>

#include <functional>
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
    lock_form form = lock_form::exclusive;       // the others are for the guarded protocol
    std::span<const std::string> resources = {}; // of the form `all`: sorted, none twice
    std::uint32_t slots = 0;                     // any slot of the pool of that name and size
    std::uint32_t wants = 1; // number of slots, all or none; more than one in the guarded protocol
};

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
    void closed(std::size_t link, std::string_view why, time_point now);
    void received(std::size_t link, std::span<const char> bytes, time_point now);
    void written(std::size_t link, std::size_t bytes, time_point now);
    /// \}

    /// When `time_passed` must be called next; `forever` if nothing is due.
    time_point next_due() const noexcept;
    void time_passed(time_point now);

    /// \name Requests of callers, with validated arguments
    /// \{
    handle acquire(const acquire_request& request, time_point now);
    /// The result is reported by `acquired` or `not_acquired`.
    handle attach(const acquire_request& request, time_point now);
    void cancel(handle acquire, time_point now);
    /// Whether this acquire is queued and has never made an attempt.
    bool has_sent_nothing(handle acquire) const noexcept;
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
    query_slots(std::uint64_t cookie, std::string_view pool, std::uint32_t slots, time_point now);
    /// Reports notifications of this lock by `heard` until `unlisten` was called as often.
    void listen(std::string_view resource, time_point now);
    void unlisten(std::string_view resource, time_point now);
    /// \}

    /// Returns the bytes to be written. Call `written` after taking some.
    std::string& output(std::size_t link) { return sender_.output(link); }

    /// Whether output may have been queued since the last call.
    bool wants_write() noexcept { return sender_.wants_write(); }

    std::size_t size() const noexcept { return masters_.size(); }
    bool running() const noexcept { return life_ == life::running; }
    bool closing() const noexcept { return life_ == life::closing || life_ == life::closed; }
    bool closed_down() const noexcept { return life_ == life::closed; }
    bool ready() const noexcept { return masters_.ready(); }
    std::size_t needed() const noexcept { return masters_.needed(); }

    const settings& rules() const noexcept { return rules_; }
    metrics count() const;
    health examine(time_point now) const;
    /// Describes votes as text.
    std::vector<master_vote> describe(const ballots& votes, time_point now) const;

private:
    enum class life : std::uint8_t { created, running, closing, closed };

    // engine.cpp
    void open(std::size_t master) override;
    void close(std::size_t master) override;
    void admission_changed(std::size_t master, time_point now) override;
    void noted(std::size_t master, std::string_view text) override;
    void clock_stepped(std::size_t master, std::chrono::microseconds by, time_point now) override;
    void publish_refused(std::size_t master, time_point now) override;
    void random(std::span<unsigned char> out) override { host_.random(out); }
    void voters_changed(const admission_change& change, time_point now) override;
    void members_changed(time_point now);
    void scan_answered(
        std::size_t master, const sent_command& command, const reply* answer, time_point now);
    void end_of_event(time_point now);
    void finish_closing(time_point now);
    bool waits_to_close() const noexcept {
        return !finishing_.empty() || leaving_ > 0 || lost_ > 0 || removals_.under_way();
    }
    void closing_moved(time_point now) noexcept {
        if (life_ == life::closing) {
            close_by_ = later(now, rules_.master_timeout);
        }
    }
    void fire(timer& due, time_point now);

    // notifications.cpp
    void open_subscriber(std::size_t master) override;
    void close_subscriber(std::size_t master) override;
    bool watch(wait_queue& waiters, time_point now);
    void unwatch(wait_queue& waiters, time_point now);
    void notify(wait_queue& mine, std::size_t master, std::string_view release, time_point now);
    void notifications_changed(time_point now);
    void release_notified(
        std::size_t master,
        std::string_view channel,
        std::string_view release,
        time_point now) override;

    void replied(
        std::size_t master,
        const sent_command& command,
        const reply& answer,
        time_point sent,
        time_point now) override;
    void dropped(std::size_t master, const sent_command& command, time_point now) override;
    void answered(claim& owner, const arrival& at, const answer& got) override;
    void again(claim& owner, const arrival& at, const answer& got) override;

    // acquire.cpp (and the public acquire, cancel)
    void finish(operation& wanted, time_point now);
    void finish_if_on_wire(operation& wanted, time_point now);
    void operation_due(operation& wanted, time_point now);

    // attempts.cpp
    void start_attempt(operation& wanted, time_point now, std::string_view token = {});
    claim& new_claim(operation& wanted, time_point now, std::string_view token = {});
    void refuse_absent(claim& attempt);
    void ask_masters(claim& attempt, std::size_t arbiter, time_point now);
    void acquire_answered(
        claim& attempt,
        std::size_t master,
        std::uint16_t handoffs,
        const answer& got,
        time_point now);
    static attempt::limits limits_of(const operation& wanted) noexcept;
    void give_up_in_time(operation& wanted, const claim& attempt, time_point now);
    void follow(claim& attempt, const attempt::decision& next, time_point now);
    bool works(const claim& attempt, time_point now) const noexcept {
        return attempt.asking().works(
            attempt, masters_.may_be_slow(attempt.asked_at, now), masters_.needed());
    }
    void raise(operation& wanted, claim& attempt, const attempt::decision& what, time_point now);
    void raise_answered(
        claim& attempt,
        std::size_t master,
        std::uint16_t handoffs,
        const answer& got,
        time_point now);
    void accept_handoff(operation& next, claim& lease, time_point deadline, time_point now);
    void win(operation& wanted, claim& attempt, time_point now);
    void fail(operation& wanted, claim& attempt, std::optional<errc> why, time_point now);

    // forms.cpp (and the public downgrade)
    void name_keys(operation& wanted, const acquire_request& request) const;
    void name_intent(operation& wanted);
    void drop_intent(operation& wanted, time_point now);

    // waiting.cpp
    wait_view view_of(const wait_queue& waiters, time_point now);
    static operation* front_of(const wait_queue& waiters) noexcept {
        return static_cast<operation*>(waiters.front());
    }
    void ask_lease_left(operation& wanted, const claim& attempt, time_point now);
    void lease_left_answered(
        std::size_t master, const sent_command& command, const reply& answered, time_point now);
    void join(operation& wanted, time_point now);
    void leave(operation& wanted, time_point now);
    void end_queue(wait_queue& waiters);
    void wake(wait_queue& waiters, time_point due);
    void front_due(operation& wanted, time_point now);
    void time_out(operation& wanted, time_point now);
    const claim* held_here(const wait_queue& waiters);
    void pause_or_finish(operation& wanted, claim& attempt, time_point now);
    void pause(operation& wanted, time_point until, time_point now);
    void poll_again(time_point now);
    time_point next_try(operation& wanted, const claim& attempt, time_point now);
    void retry_after_outage(time_point now);
    bool hand_off_locally(claim& lease, time_point now);
    void wake_queue(const claim& ended, time_point now);

    // fair_queue.cpp
    bool take_turn(operation& wanted, time_point now);
    void send_turn(const wait_queue& waiters, command_variant how, time_point now);
    void queue_answered(
        std::size_t master,
        const sent_command& command,
        const reply& answer,
        time_point sent,
        time_point now);
    void queue_dropped(const sent_command& command, time_point now);
    void wait_for_turn(operation& wanted, wait_queue& waiters, const answer& got, time_point now);
    void give_up_turns(wait_queue& waiters, std::string_view why, time_point now);
    void leave_queue(wait_queue& waiters, time_point now);

    // attach.cpp
    claim& new_attach(operation& wanted, std::string_view token, time_point now);
    void end_attach(operation& wanted, claim& attempt, std::optional<errc> why, time_point now);

    void lose(claim& lease, loss_reason reason, time_point now);
    void lose_if(claim& lease, leases::loss lost, time_point now) {
        if (lost) {
            lose(lease, *lost, now);
        }
    }
    void end_lost(claim& lease, time_point now);

    // slots.cpp
    static void name_slots(claim& attempt, operation& wanted);
    void start_scan(operation& wanted, time_point now);
    void end_scan(operation& wanted);
    void slots_found(operation& wanted, slot_scan& asking, time_point now);
    void wait_for_slot(operation& wanted, time_point now);
    void look_on(wait_queue& waiters, operation& served, const claim& won, time_point now);
    bool try_next_slot(operation& wanted, claim& attempt, time_point now);

    settings rules_;
    engine_callbacks& host_;
    jitter random_;
    listeners listeners_;
    life life_ = life::created;
    time_point close_by_ = forever;
    quorum masters_;
    timers timers_;
    mutable pool<claim> claims_;
    sender sender_;
    replies replies_;
    removals removals_;
    leases leases_;
    mutable pool<operation> operations_;
    queries queries_;
    slot_scans scans_;
    wait_queues queues_;
    subscriptions subscriptions_;
    std::vector<handle> finishing_;
    metrics counters_;
    std::size_t lost_ = 0;    // leases that were lost, and whose holders have not let go
    std::size_t leaving_ = 0; // commands in flight that give up a ticket of a fair queue
};

} // namespace redlock::core
