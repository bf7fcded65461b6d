// The removal of one claim: after its end, its key must be removed from every master that may have
// it.
//
// A removal is *pending* for each of these masters (`unconfirmed_`) until the master has confirmed
// it or the key must have expired there. It is in flight from its command until the reply, and
// *overdue* (`overdue_`) while it waits for another connection.
//
// Commands in flight on a broken connection may still be executed, after a removal on the next one.
// So a confirmation counts only once such a stray command (`strays`) can no longer set the key:
// guarded, when the server refuses it as late; plain, when the key must have expired. Then the
// removal is sent again.
//
// This type knows what is pending, when to check it again, and the result. Its owner sends.

#pragma once

#include "claim_record.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/outcome.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace redlock::core {

/// Whether this reply to a removal shows that the master did not have our key after it.
constexpr bool confirms_removal(vote what) noexcept {
    return what == vote::granted || what == vote::absent || what == vote::owned_by_other;
}

class removal {
public:
    /// Longest time that a caller waits for the result, in `master_timeout`.
    static constexpr int patience = 10;

    removal() noexcept = default;
    /// `late`: the lease has ended already, so removing the key is not a release. `decide_by`: when
    /// the result is due; `forever` if no caller waits for it.
    removal(bool late, time_point decide_by) noexcept : decide_by_(decide_by), late_(late) {}

    /// Sets the masters that may have the key, and those of them that can be reached.
    void begin(master_set masters, master_set reachable) noexcept {
        unconfirmed_ = masters;
        awaited_ = reachable;
        overdue_ = masters & ~reachable;
        pending_ = static_cast<std::uint8_t>(std::popcount(reachable));
    }

    /// Records that the removal was sent. Returns the masters to which it was not in flight already
    /// (it is repeated in another variant).
    master_set sent(master_set to) noexcept {
        return to & ~std::exchange(in_flight_, in_flight_ | to);
    }

    struct receipt {
        bool in_flight = false; // before this reply
        bool confirmed = false;
        bool was_overdue = false;
        bool pending = false; // it must be sent again, or a stray command may follow
    };
    /// A master has replied, or its connection broke. After an error it is retried after
    /// `pause`. `counts`: it is a member, so its reply counts for the result.
    receipt answered(
        const claim_record& mine,
        std::size_t master,
        vote what,
        time_point now,
        std::chrono::nanoseconds pause,
        bool counts = true);

    struct result {
        release_result what;
        master_set silent = 0; // those without a reply in time
    };
    /// Whether `decide` has a result now. Checked after each reply.
    bool decided(std::size_t quorum, time_point now) const noexcept {
        const std::size_t most = most_alike();
        return wanted() && (most >= quorum || most + pending_ < quorum || is_due(now));
    }
    /// Whether the result is due: then `wait_until` may put it off.
    bool is_due(time_point now) const noexcept { return now >= decide_by_; }
    /// Whether replies of these masters can still decide the result.
    bool may_wait(std::size_t quorum, master_set for_these) const noexcept {
        return most_alike() + static_cast<std::size_t>(std::popcount(awaited_ & for_these))
               >= quorum;
    }
    void wait_until(time_point decide_by) noexcept { decide_by_ = decide_by; }
    /// Returns the result. Requires `decided`, which it ends.
    result decide(std::size_t quorum) noexcept;

    struct repeat {
        master_set to = 0;
        bool last = false; // the key has expired; only a stray command could set it again
    };
    /// The masters, of those that are `up`, to which it must be sent now. Drops expired ones.
    repeat due(claim_record& mine, master_set up, time_point now) noexcept;

    /// When `due` or `decide` must be called next.
    time_point next_due(const claim_record& mine, time_point now) const noexcept {
        return std::min({decide_by_, retry_at_, now < mine.expires_at ? mine.expires_at : forever});
    }

    /// Nothing is pending any more, and no caller waits for the result.
    bool settled() const noexcept { return unconfirmed_ == 0 && !wanted(); }
    /// A caller still waits for the result.
    bool wanted() const noexcept { return decide_by_ != forever; }
    bool in_flight(std::size_t master) const noexcept { return (in_flight_ & set_of(master)) != 0; }
    /// Pending, and not in flight.
    bool unsent(std::size_t master) const noexcept { return (unsent() & set_of(master)) != 0; }
    /// It was not sent to a reachable master, because too many are in flight.
    bool waits_for_room() const noexcept { return (unsent() & ~overdue_) != 0; }
    /// Returns the masters to which it must be sent, without those that confirmed it and get it
    /// again only because of a stray command.
    master_set overdue(const claim_record& mine) const noexcept {
        const strays left = mine.left_behind();
        return unsent() & ~(overdue_ & confirmed_ & (left.sets | left.heals));
    }

private:
    master_set unsent() const noexcept { return unconfirmed_ & ~in_flight_; }
    std::size_t most_alike() const noexcept { return std::max({removed_, absent_, foreign_}); }

    time_point decide_by_ = forever;
    time_point retry_at_ = forever;
    master_set unconfirmed_ = 0;
    master_set in_flight_ = 0;
    master_set overdue_ = 0;
    master_set awaited_ = 0;   // reachable at the start, without a reply
    master_set confirmed_ = 0; // by a reply that was counted
    bool late_ : 1 = false;
    std::uint8_t pending_ : 7 = 0; // replies awaited
    std::uint8_t removed_ = 0;     // by result, the replies that confirmed it
    std::uint8_t absent_ = 0;      // or removed too late
    std::uint8_t foreign_ = 0;
};

inline removal::receipt removal::answered(
    const claim_record& mine,
    std::size_t master,
    vote what,
    time_point now,
    std::chrono::nanoseconds pause,
    bool counts) {
    const master_set one = set_of(master);
    receipt out{.in_flight = in_flight(master), .confirmed = confirms_removal(what)};
    in_flight_ &= ~one;
    if ((awaited_ & one) != 0) {
        awaited_ &= ~one;
        --pending_;
    }
    if (out.confirmed && (confirmed_ & one) == 0) { // a repeated one is not counted again
        confirmed_ |= one;
        auto& alike = what == vote::owned_by_other      ? foreign_
                      : what == vote::granted && !late_ ? removed_
                                                        : absent_;
        alike += counts ? 1U : 0U;
    }
    const strays left = mine.left_behind();
    const bool early = now < left.until && left.may_follow(master, what);
    if ((out.confirmed && !early) || now >= mine.expires_at) {
        unconfirmed_ &= ~one;
        out.was_overdue = (overdue_ & one) != 0;
        return out;
    }
    out.pending = true;
    overdue_ |= one;
    if (out.confirmed) {
        retry_at_ = std::min(retry_at_, left.until);
    } else if (what == vote::error) {
        retry_at_ = std::min(retry_at_, later(now, pause));
    }
    return out;
}

inline removal::result removal::decide(std::size_t quorum) noexcept {
    decide_by_ = forever;
    if (removed_ >= quorum) {
        return {release_result::released};
    }
    if (absent_ >= quorum) {
        return {release_result::expired};
    }
    if (foreign_ >= quorum) {
        return {release_result::stolen};
    }
    const bool all_replied = most_alike() + pending_ < quorum;
    return {release_result::uncertain, all_replied ? 0 : awaited_ & in_flight_};
}

inline removal::repeat removal::due(claim_record& mine, master_set up, time_point now) noexcept {
    repeat out;
    if (now >= mine.expires_at) {
        const strays left = mine.left_behind();
        out = {unsent() & up & (left.sets | left.heals), true};
        unconfirmed_ &= in_flight_ | out.to; // the keys of the others have expired
        if (out.to != 0) {
            mine.more->left_behind.sets &= ~out.to;
            mine.more->left_behind.heals &= ~out.to;
        }
    } else if (now >= retry_at_) {
        out.to = unsent() & up;
    } else {
        return out;
    }
    retry_at_ = forever;
    return out;
}

} // namespace redlock::core
