// The masters of one lock manager, with a connection for commands and a subscriber for
// release notifications to each. Decides which masters may vote and what the others vote instead,
// and which master contenders ask first. Measures the round trip time of a majority, and whether
// notifications from a majority can be received.
//
// It knows neither locks nor waiters. It returns changes for its owner to act on. Connections
// report to the engine directly. The engine must pass `admission_changed` and `clock_stepped` on.

#pragma once

#include "connection.hpp"
#include "core/base/decisions.hpp"
#include "core/base/hash.hpp"
#include "subscriber.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/metrics.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::core {

/// One master.
struct master {
    std::unique_ptr<connection> link;
    std::unique_ptr<subscriber> pushes;
    bool admitted = false;
    bool duplicate = false;
    vote otherwise = vote::unreachable; // its vote while it is not admitted
    bool queue_refused = false;         // whether the refusal of the fair queue was logged
    bool stepped = false;               // its clock or ours was stepped, see `judge_steps`

    /// Whether its grants count: false if it is a replica or may evict keys, for example.
    bool is_fit() const noexcept { return wrong::ineligible_votes_count || link->judgement().fit; }
    /// Whether release notifications of this master can be relied on. If this client is not
    /// permitted to publish, others may not be either.
    bool notifies() const noexcept { return pushes->live() && link->unpublished().empty(); }
};

/// A change in which masters may vote.
struct admission_change {
    master_set masters = 0; // whose vote has changed
    bool ready = false;     // whether a majority has become able to vote
    bool members = false;   // whether the members of the quorum have changed
};

class masters {
public:
    masters(const settings& rules, connection_events& events, jitter& random);

    /// \name The masters, in the order of the configuration
    /// \{
    std::size_t size() const noexcept { return all_.size(); }
    master& operator[](std::size_t master) noexcept { return all_[master]; }
    const master& operator[](std::size_t master) const noexcept { return all_[master]; }
    master_metrics& counters(std::size_t master) noexcept { return all_[master].link->counters(); }
    auto begin() noexcept { return all_.begin(); }
    auto end() noexcept { return all_.end(); }
    /// \}

    /// \name What happened to a socket
    /// Number i is the connection to master i, N + i its subscriber.
    /// \{
    void start(time_point now);
    void stop(std::string_view why, time_point now);
    void opened(std::size_t link, time_point now);
    void closed(std::size_t link, std::string_view why, time_point now);
    void received(std::size_t link, std::span<const char> bytes, time_point now);
    std::string& output(std::size_t link) noexcept { return socket(link).output(); }
    /// \}

    /// Queues one command on the connection to a master that is up; as `connection::send`.
    std::uint64_t
    send(std::size_t master, std::string_view bytes, const sent_command& what, time_point now) {
        links_due_ = std::min(links_due_, later(now, rules_.master_timeout));
        all_[master].link->keep_fit(now);
        return all_[master].link->send(bytes, what, now);
    }
    /// Requests a new introduction of a server.
    void introduce_again(std::size_t master, time_point now);

    /// \name Time
    /// \{
    /// A lower bound: a call that comes too early finds nothing to do.
    time_point next_due() const noexcept {
        return std::min({links_due_, names_due_, judge_steps_at_, list_.next_due()});
    }
    /// Does what is due for the list of members and for all masters, then for one of them.
    void time_passed(time_point now);
    admission_change time_passed(std::size_t master, time_point now);
    /// Computes the next due time again, after what may have moved it.
    void refresh_due() noexcept;
    /// \}

    /// \name Who may vote
    /// \{
    /// The number of votes that is needed, and of members.
    std::size_t majority() const noexcept { return list_.quorum(); }
    std::size_t voters() const noexcept { return list_.voters(); }
    const generation& members() const noexcept { return list_.members(); }
    bool is_member(std::size_t master) const { return list_.is_member(master); }
    bool is_known_member(std::size_t master) const { return list_.is_known_member(master); }
    /// As `membership::make`, `read_again` and `confirmed`.
    void change_members(std::optional<member_change> what, time_point now);
    void read_members(time_point now);
    bool members_confirmed() const { return list_.confirmed(); }
    /// The progress of the change that this client makes, with the masters that hold it up.
    std::string change_text(time_point now) const;
    bool ready() const noexcept { return admitted_ >= majority(); }
    std::size_t admitted() const noexcept { return admitted_; }
    /// Returns a time before which quarantines leave no majority, whatever happens to the masters
    /// without one; `never` if they may be enough.
    time_point quarantined_until(time_point now) const;
    /// Whether this master may vote for a lease of this ttl.
    bool takes(std::size_t master, std::chrono::milliseconds ttl) const noexcept {
        return wrong::any_ttl_votes || !rules_.guarded() || ttl <= all_[master].link->ttl_limit();
    }
    /// The longest ttl that this client may use, for which a majority votes. 0: not known yet.
    std::chrono::milliseconds ttl_limit() const noexcept { return ttl_limit_; }
    /// The same of those that vote now: the longest with which a renewal is confirmed.
    std::chrono::milliseconds renewal_limit() const {
        return ttl_limit_of(set_where(size(), [this](std::size_t i) { return all_[i].admitted; }));
    }
    /// The longest quarantine that the members have recorded, or that this client asks for.
    std::chrono::microseconds quarantine_time() const;
    /// The longest ttl that any client may have used.
    std::chrono::milliseconds longest_ttl() const {
        return rules_.guarded()
                   ? std::max(rules_.usual_max_ttl(), rules_.ttl_within(quarantine_time()))
                   : rules_.max_ttl;
    }
    /// Its connection came up, broke, fell silent or introduced its server again.
    admission_change admission_changed(std::size_t master, time_point now);
    /// The master itself reported that it must not vote for this long; as `connection::quarantine`.
    admission_change quarantine(
        std::size_t master, std::chrono::microseconds left, std::int64_t ends_us, time_point now);
    /// Why it does not vote; empty if it does.
    std::string why_not(std::size_t master, time_point now) const;
    master_health health_of(std::size_t master, time_point now) const;
    /// \}

    /// \name Clocks
    /// \{
    /// Handles a step of this master's clock or of ours: asks the other masters for theirs, to find
    /// out which. The master does not vote until that is known. Empty if the step is known already.
    std::optional<admission_change> clock_stepped(std::size_t master, time_point now);
    /// Decides which clock was stepped, once the replies are due. One master: it starts a new
    /// memory record, because its quarantine may have ended too early. Several: ours. Returns the
    /// number of masters; 0 if nothing is due.
    std::size_t judge_steps(time_point now);
    /// From what a fencing counter that is missing starts, so that the masters' counters agree:
    /// ahead of all their clocks, also if this command takes longer than those that read them.
    first_counter first_counter_at(time_point now) const noexcept;
    /// \}

    /// \name Release notifications
    /// \{
    /// Whether a majority can notify: then each release reaches this client at least once.
    bool notified_by_quorum() const noexcept {
        return static_cast<std::size_t>(std::ranges::count_if(all_, &master::notifies))
               >= majority();
    }
    /// Returns true once each time notifications from a majority have ended.
    bool lost_notifications() noexcept {
        return std::exchange(heard_, notified_by_quorum()) && !heard_;
    }
    /// \}

    /// \name Choice of masters
    /// \{
    /// The master that contenders for this lock ask first: the same for all clients that see the
    /// same masters vote. Different locks are spread over the masters. `nobody`: they ask all
    /// masters.
    std::size_t arbiter_of(std::string_view key) const noexcept {
        return arbiter_of(hash_of_key(key));
    }
    std::size_t arbiter_of(std::uint64_t hash_of_key) const noexcept;
    /// The master that keeps the fair queue for this lock.
    std::size_t queue_master_of(std::string_view key) const noexcept;
    /// Those to which commands can be sent.
    master_set up() const noexcept { return up_; }
    /// Those of them on which a key that is missing may be created again.
    master_set healing(std::chrono::milliseconds ttl, time_point now) const noexcept {
        return up() & set_where(size(), [&](std::size_t i) {
                   return takes(i, ttl) && all_[i].is_fit() && !all_[i].link->quarantined(now);
               });
    }
    /// Returns the masters that may merely be slow: they have replied since `asked_at`, or that was
    /// less than four round trips or 20 ms ago.
    master_set may_be_slow(time_point asked_at, time_point now) const noexcept;
    /// \}

    /// \name Smoothed round trip time of a majority; 0: not measured yet
    /// \{
    std::chrono::nanoseconds round_trip() const noexcept { return round_trip_; }
    /// Minimum pause before a repetition.
    std::chrono::nanoseconds retry_floor() const noexcept {
        return std::max<std::chrono::nanoseconds>(rules_.retry_delay_min, round_trip_);
    }
    /// How long a process that has released a lock lets waiters of others go first: a notification
    /// and a command to the arbiter take one round trip.
    std::chrono::nanoseconds yield() const noexcept { return 2 * retry_floor(); }
    void measured(std::chrono::nanoseconds took) noexcept {
        if (took.count() > 0) {
            round_trip_ = round_trip_.count() == 0 ? took : (7 * round_trip_ + took) / 8;
        }
    }
    /// \}

private:
    session& socket(std::size_t link) noexcept {
        if (link < size()) {
            return *all_[link].link;
        }
        return *all_[link - size()].pushes;
    }
    std::chrono::milliseconds ttl_limit_of(master_set these) const;
    admission_change assess(std::size_t master, time_point now);
    vote vote_of(std::size_t master, time_point now) const;
    void shake_hands(time_point now);
    void find_duplicates(std::size_t changed);
    std::size_t heir_of(const master& one) const;
    time_point vote_passes_at(const master& one) const;
    void pass_on_votes(time_point now);

    const settings& rules_;
    membership list_;
    std::vector<master> all_;
    std::size_t admitted_ = 0;
    master_set up_ = 0;
    std::chrono::milliseconds ttl_limit_{0};
    time_point links_due_ = forever; // no connection is due before
    time_point names_due_ = forever; // the vote of a server passes to another name of it
    time_point judge_steps_at_ = forever;
    std::uint32_t adopted_ = 0; // generations of members, at the last look
    bool heard_ = false; // result of `notified_by_quorum` at the last call of `lost_notifications`
    std::chrono::nanoseconds round_trip_{0};
};

} // namespace redlock::core
