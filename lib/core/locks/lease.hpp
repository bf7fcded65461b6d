// A lease: the state of a claim from the grant of a majority until its holder ends it or it is
// lost.
//
// Each vote is valid until some moment. The deadline is the latest moment at which a majority of
// votes is still valid. While a round of an extension is open, its replies only move the deadline
// forward; a vote that a reply takes away shortens the deadline only after the result is decided
// (extension_round.hpp). The lease is lost `stop_margin` before the deadline, whatever is in
// flight.
//
// This type counts and decides. Its owner sends, sets a timer for `next_due`, and notifies the
// holder. The votes, and the current extension, are in the claim's record.

#pragma once

#include "claim_record.hpp"
#include "core/base/backoff.hpp"
#include "core/masters/settings.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/options.hpp>
#include <redlock/outcome.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace redlock::core {

class lease {
public:
    /// The terms of a lease.
    struct terms {
        renewal renew = renewal::automatic;
        std::chrono::milliseconds stop_margin{};
        time_point hold_limit = forever; // the deadline is never later than this
        time_point warn_at = forever;    // report that it is held for long
    };

    lease() noexcept = default;
    /// Requires that a majority of the votes in the record is valid until `deadline`. At `next_at`
    /// the first renewal begins, or an extension that is open already is given up.
    lease(const terms& how, time_point now, time_point deadline, time_point next_at)
        : renew_(how.renew),
          stop_margin_(shortened(how.stop_margin)),
          held_since_(now),
          deadline_(deadline),
          next_at_(next_at) {
        if (how.hold_limit != forever || how.warn_at != forever) {
            more_ = std::make_unique<particulars>();
            more_->hold_limit = how.hold_limit;
            more_->warn_at = how.warn_at;
        }
    }

    /// Returns the time of the next renewal: a third of the ttl after the last extension, minus a
    /// random part, rounded to 1 % of the ttl. The random part spreads locks that were acquired
    /// together; the rounding lets some of them share a write.
    static time_point
    renewal_time(time_point since, std::chrono::milliseconds ttl, jitter& random) noexcept;

    time_point held_since() const noexcept { return held_since_; }
    time_point deadline() const noexcept { return deadline_; }
    /// Until when the holder may rely on it.
    time_point held_until() const noexcept { return deadline_ - stop_margin_; }
    /// Whether the deadline is the end of `max_hold`, so that no extension moves it.
    bool capped() const noexcept { return deadline_ == hold_limit(); }
    /// When the lease is lost unless it is extended.
    time_point lost_at(const claim_record& mine) const noexcept {
        return wrong::heal_after_deadline ? held_until() + mine.ttl : held_until();
    }
    bool lost(const claim_record& mine, time_point now) const noexcept {
        return deadline_ == never || now >= lost_at(mine);
    }
    /// Returns the reason of a loss.
    loss_reason reason(const claim_record& mine, std::size_t quorum) const noexcept;

    /// Moves the deadline to where the votes reach. Returns true if it changed.
    bool move_deadline(claim_record& mine, std::size_t quorum) noexcept;

    /// The members of the quorum have changed: the deadline stays until an extension is counted by
    /// the new ones.
    void members_changed(claim_record& mine);

    /// \name Extensions, one at a time
    /// \{
    /// Queues an extension at the holder's request. Extensions run one at a time.
    void want(std::chrono::milliseconds ttl) { need_more().wanted.push_back(ttl); }
    std::optional<std::chrono::milliseconds> next_wanted(const claim_record& mine);
    /// Drops the requested extensions. Returns their number.
    std::size_t drop_wanted(claim_record& mine) noexcept;

    /// Starts an extension.
    void extend(
        claim_record& mine,
        std::chrono::milliseconds ttl,
        bool asked_for,
        time_point now,
        const settings& rules);
    /// Whether a command of that round may be sent: of the current round, before the deadline.
    bool may_send(const claim_record& mine, std::uint16_t round, time_point now) const noexcept {
        return (wrong::heal_after_deadline || now < deadline_) && round == mine.extending.round;
    }
    /// Records that HEAL is sent to a master.
    void heal(claim_record& mine, std::size_t master, drift_bound drift) const noexcept;

    enum class next : std::uint8_t {
        nothing,
        judge, // the round
        heal,  // where the key is missing
    };
    /// Handles a reply to a command of `round`. Requires that the record has counted it.
    static next answered(
        claim_record& mine,
        std::size_t master,
        vote said,
        key_state found,
        std::uint16_t round) noexcept;
    /// What follows from the replies so far. `heal`: send HEAL to the masters without the key, then
    /// judge again. Won or failed: the round has ended; call `end_extension`.
    ruling judge(
        claim_record& mine,
        std::size_t voters,
        std::size_t quorum,
        time_point now,
        const settings& rules) noexcept;
    void end_extension(
        claim_record& mine,
        bool extended,
        time_point now,
        std::chrono::nanoseconds retry_floor,
        jitter& random) noexcept;
    /// The round has timed out: counts masters without a reply as timed out.
    static master_set give_up(claim_record& mine) noexcept;
    /// \}

    enum class event : std::uint8_t {
        none,
        stop,    // it is lost
        warn,    // `held_warning` has passed
        give_up, // the round of an extension
        renew,
    };
    /// The next due action; call until there is none.
    event due(const claim_record& mine, time_point now) noexcept;
    time_point next_due(const claim_record& mine) const noexcept;

private:
    /// What few leases have.
    struct particulars {
        time_point hold_limit = forever;
        time_point warn_at = forever;
        time_point kept = never; // what earlier members have granted
        backoff renewal_delay;   // after an extension that failed
        std::vector<std::chrono::milliseconds> wanted;
    };

    particulars& need_more() {
        if (!more_) {
            more_ = std::make_unique<particulars>();
        }
        return *more_;
    }
    time_point hold_limit() const noexcept { return more_ ? more_->hold_limit : forever; }
    time_point warn_at() const noexcept { return more_ ? more_->warn_at : forever; }

    renewal renew_ = renewal::automatic;
    short_ttl stop_margin_{};
    time_point held_since_ = never;
    time_point deadline_ = never;
    time_point next_at_ = forever; // an open extension is given up, else the next renewal
    std::unique_ptr<particulars> more_;
};

} // namespace redlock::core
