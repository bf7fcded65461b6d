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
#include <cstddef>
#include <cstdint>
#include <optional>

namespace redlock::core {

/// Whether this reply to a removal shows that the master did not have our key after it.
constexpr bool confirms_removal(vote what) noexcept {
    return what == vote::granted || what == vote::absent || what == vote::owned_by_other;
}

class removal {
public:
    removal() noexcept = default;
    /// `late`: the lease has ended already, so removing the key is not a release. `decide_by`: when
    /// the result is due; `forever` if no caller waits for it.
    removal(bool late, time_point decide_by) noexcept : decide_by_(decide_by), late_(late) {}

    /// Adds a master that may have the key.
    void add(std::size_t master, bool reachable) noexcept {
        unconfirmed_ |= set_of(master);
        (reachable ? awaited_ : overdue_) |= set_of(master);
        pending_ += reachable ? 1U : 0U;
    }

    /// Records that the removal was sent. Returns false if it was in flight already (repeated in
    /// another variant).
    bool sent(std::size_t master) noexcept {
        const bool first = !in_flight(master);
        in_flight_ |= set_of(master);
        return first;
    }

    struct receipt {
        bool in_flight = false; // before this reply
        bool confirmed = false;
        bool was_overdue = false;
        bool pending = false; // it must be sent again, or a stray command may follow
    };
    /// A master has replied, or its connection broke. After an error it is retried at `retry_at`.
    /// `counts`: it is a member, so its reply counts for the result.
    receipt answered(
        const claim_record& mine,
        std::size_t master,
        vote what,
        time_point now,
        time_point retry_at,
        bool counts = true);

    struct result {
        release_result what;
        master_set silent = 0; // those without a reply in time
    };
    /// Returns the result once, when it is known.
    std::optional<result> decide(std::size_t quorum, time_point now) noexcept;

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
    std::uint8_t absent_ = 0;
    std::uint8_t foreign_ = 0;
};

inline removal::receipt removal::answered(
    const claim_record& mine,
    std::size_t master,
    vote what,
    time_point now,
    time_point retry_at,
    bool counts) {
    const master_set one = set_of(master);
    receipt out{.in_flight = in_flight(master), .confirmed = confirms_removal(what)};
    in_flight_ &= ~one;
    const strays left = mine.left_behind();
    const bool early = now < left.until && left.may_follow(master, what);
    if ((out.confirmed && !early) || now >= mine.expires_at) {
        unconfirmed_ &= ~one;
        out.was_overdue = (overdue_ & one) != 0;
    } else {
        out.pending = true;
        overdue_ |= one;
        if (out.confirmed) {
            retry_at_ = std::min(retry_at_, left.until);
        } else if (what == vote::error) {
            retry_at_ = std::min(retry_at_, retry_at);
        }
    }
    pending_ -= (awaited_ & one) != 0 ? 1U : 0U;
    awaited_ &= ~one;
    if (out.confirmed && (confirmed_ & one) == 0) { // a repeated one is not counted again
        confirmed_ |= one;
        auto& found = what == vote::granted ? removed_ : what == vote::absent ? absent_ : foreign_;
        found += counts ? 1U : 0U;
    }
    return out;
}

inline std::optional<removal::result> removal::decide(std::size_t quorum, time_point now) noexcept {
    if (!wanted()) {
        return std::nullopt;
    }
    const std::size_t ours = late_ ? 0 : removed_;
    const std::size_t gone = late_ ? std::size_t{absent_} + removed_ : absent_;
    std::optional<result> out;
    if (ours >= quorum) {
        out = result{release_result::released};
    } else if (gone >= quorum) {
        out = result{release_result::expired};
    } else if (foreign_ >= quorum) {
        out = result{release_result::stolen};
    } else if (std::max({ours, gone, std::size_t{foreign_}}) + pending_ < quorum) {
        out = result{release_result::uncertain};
    } else if (now >= decide_by_) {
        out = result{release_result::uncertain, awaited_ & in_flight_};
    }
    if (out) {
        decide_by_ = forever;
    }
    return out;
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
