// The acquires of callers, each in as many attempts as it takes: their beginning, their deadlines,
// their results and their end. Puts together what only knows a part of an acquire: `attempts` the
// votes, `waiting` the queues, `slot_scans` free slots, `leases` what was won, `removals` what must
// be rolled back.

#pragma once

#include "attempts.hpp"
#include "core/waiting/operation.hpp"
#include "essentials.hpp"
#include "leases.hpp"
#include "removals.hpp"
#include "slot_scans.hpp"
#include "waiting.hpp"

#include <redlock/errc.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

class acquires final : essentials, public receiver {
public:
    acquires(
        const essentials& with,
        attempts& tries,
        waiting& queues,
        slot_scans& scans,
        leases& won,
        removals& rollbacks) noexcept
        : essentials(with),
          attempts_(tries),
          waiting_(queues),
          scans_(scans),
          leases_(won),
          removals_(rollbacks) {}

    /// \name Requests of callers
    /// \{
    /// `refused`: it fails at once, because the engine does not run.
    handle begin(const acquire_request& request, std::optional<errc> refused, time_point now);
    void cancel(handle name, time_point now);
    /// Whether this acquire is queued and has never made an attempt.
    bool has_sent_nothing(handle name) const noexcept;
    /// Hands off a lease that its holder has released. Returns false if nobody gets it.
    bool hand_off(claim& lease, time_point now);
    /// Ends all of them; no lease is handed off any more.
    void close(time_point now);
    /// \}

    /// \name Events
    /// \{
    void due(std::uint32_t index, time_point now);
    /// A reply to an attempt.
    void answered(claim& attempt, const arrival& at, const answer& got);
    /// A mistake of the simulator: a grant for an ended claim counts for the newer attempt.
    void count_for_newer(const claim& ended, const arrival& at, const answer& got);
    /// Bytes were written, or a connection broke: ends acquires whose rollback has been sent.
    void end_finished(time_point now);
    /// The reply to a command of `waiting` or `slot_scans`.
    void replied(const arrival& at, const reply* got) override;
    /// `release` was announced by a master; if it is empty, a release may have been missed.
    void notified(
        std::string_view lock_key, std::size_t master, std::string_view release, time_point now);
    /// No majority announces releases any more.
    void poll_soon(time_point now);
    /// A majority is admitted again.
    void outage_over(time_point now);
    /// The members of the quorum have changed: votes of earlier members do not count.
    void break_off(claim& attempt, time_point now);
    /// \}

    operation* find(handle name) noexcept { return operations_.find(name); }
    /// Number of acquires that have not ended.
    std::size_t size() const noexcept { return operations_.size(); }
    /// Whether some have failed, and their rollback is not sent yet.
    bool finishing() const noexcept { return !finishing_.empty(); }

private:
    void name_keys(operation& wanted, const acquire_request& request) const;
    void try_it(operation& wanted, time_point now, std::string_view token = {});
    void act(operation& wanted, const attempt::decision& what, time_point now);
    void act(operation& wanted, waiting::step next, time_point now);
    void time_out(operation& wanted, time_point now);
    void finish(operation& wanted, time_point now);
    void drop_intent(operation& wanted, time_point now);
    void finish_if_on_wire(operation& wanted, time_point now);
    template <typename F>
    void for_each_front(F f);

    // acquires_results.cpp
    void win(operation& wanted, claim& attempt, time_point now);
    void fail(operation& wanted, claim& attempt, std::optional<errc> why, time_point now);
    void fail_attach(operation& wanted, claim& attempt, std::optional<errc> why, time_point now);
    void pause_or_finish(operation& wanted, claim& attempt, time_point now);

    // acquires_slots.cpp
    void slots_found(slot_scan& asking, time_point now);
    void start_scan(operation& wanted, time_point now);
    void end_scan(operation& wanted);
    void slots_found(operation& wanted, slot_scan& asking, time_point now);
    void look_on(wait_queue& waiters, operation& served, const claim& won, time_point now);
    bool try_next_slot(operation& wanted, claim& attempt, time_point now);

    attempts& attempts_;
    waiting& waiting_;
    slot_scans& scans_;
    leases& leases_;
    removals& removals_;
    pool<operation> operations_;
    std::vector<handle> finishing_;
    bool closing_ = false;
    bool outage_reported_ = false; // in the log, since the last time when a majority was admitted
};

} // namespace redlock::core
