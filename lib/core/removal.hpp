// The removal of one claim: once a claim has ended, its key must go from every master that may have
// it.
//
// A removal is owed to each of these masters, and in flight from when it is sent until the master
// answers. One that had to wait for another connection is a debt. It is owed until the master has
// confirmed it or the key must have expired there.
//
// What was in flight on a connection that broke may still be executed, after a removal on the next
// one. So a removal does not settle such a debt before the stray command can set the key no more:
// guarded, when the server refuses it as late; plain, when the key must have expired. It is
// repeated then.
//
// This type says what is owed, when to look at it again, and what the result is. Its owner sends.

#pragma once

#include "validity.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/outcome.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace redlock::core {

/// Whether that is an answer to a removal after which the key is not ours, at that moment.
constexpr bool confirms_removal(vote what) noexcept {
    return what == vote::granted || what == vote::absent || what == vote::foreign;
}

/// Commands that set a key and were in flight on a connection that broke: the server may have them
/// in a buffer, and read them after what comes on the next connection.
struct strays {
    master_set sets = 0;      // acquires
    master_set heals = 0;     // commands that put the key back
    time_point until = never; // afterwards they do nothing, or the key has expired

    /// Whether one may come after a removal with that answer. An acquire sets the key once: where
    /// it is removed it was executed.
    bool may_follow(std::size_t master, vote what) const noexcept {
        return ((heals | (what == vote::granted ? 0U : sets)) & set_of(master)) != 0;
    }
};

class removal {
public:
    removal() noexcept = default;
    /// `late`: the lease had ended before. Then a key that is still there is a leftover, and its
    /// removal is not a release. The result is due at `decide_by`; `forever`: nobody wants it. From
    /// `expires_at` on no master can have the key.
    removal(time_point now, bool late, time_point decide_by, time_point expires_at) noexcept
        : began_(now),
          decide_by_(decide_by),
          expires_at_(expires_at),
          late_(late) {}

    /// The key may be on that master, which can be reached or not.
    void owe(std::size_t master, bool reachable) noexcept {
        owed_ |= set_of(master);
        (reachable ? awaited_ : debts_) |= set_of(master);
        pending_ += reachable ? 1U : 0U;
    }

    /// It was sent. False where it was in flight already, and was said again in another way.
    bool sent(std::size_t master) noexcept {
        const bool first = !in_flight(master);
        in_flight_ |= set_of(master);
        return first;
    }

    struct receipt {
        bool in_flight = false; // as it was, before this answer
        bool confirmed = false;
        bool debt_paid = false;
    };
    /// A master has answered, or its connection broke. An error is tried again at `retry_at`.
    receipt answered(
        std::size_t master, vote what, const strays& left, time_point now, time_point retry_at);

    struct result {
        release_result what;
        master_set silent = 0; // their answers were waited for in vain
    };
    /// The result, once: when it is known.
    std::optional<result> decide(std::size_t quorum, time_point now) noexcept;

    struct repeat {
        master_set to = 0;
        bool last = false; // the key has expired, and only a stray command could set it again
    };
    /// To which of the masters that are `up` it is to be sent now. Forgives what has expired.
    repeat due(time_point now, master_set up, strays& left) noexcept;

    /// When `due` or `decide` want to be called next.
    time_point next_due(time_point now) const noexcept {
        return std::min({decide_by_, retry_at_, now < expires_at_ ? expires_at_ : forever});
    }

    /// Nothing is owed any more, and nobody waits for the result.
    bool settled() const noexcept { return owed_ == 0 && !wanted(); }
    /// Somebody still waits for the result.
    bool wanted() const noexcept { return decide_by_ != forever; }
    time_point began() const noexcept { return began_; }
    bool in_flight(std::size_t master) const noexcept { return (in_flight_ & set_of(master)) != 0; }
    /// Owed, and not in flight.
    bool unsent(std::size_t master) const noexcept { return (unsent() & set_of(master)) != 0; }
    /// To a master that could be reached it was not sent, as too many are in flight.
    bool waits_for_room() const noexcept { return (unsent() & ~debts_) != 0; }
    /// Those that wait to be sent for the first time: one that was confirmed is only repeated.
    master_set debts(const strays& left) const noexcept {
        return unsent() & ~(debts_ & confirmed_ & (left.sets | left.heals));
    }

private:
    master_set unsent() const noexcept { return owed_ & ~in_flight_; }

    time_point began_ = never;
    time_point decide_by_ = forever;
    time_point expires_at_ = never;
    time_point retry_at_ = forever;
    master_set owed_ = 0;
    master_set in_flight_ = 0;
    master_set debts_ = 0;
    master_set awaited_ = 0;   // were sent it in time, and have not answered
    master_set confirmed_ = 0; // by an answer that was counted
    bool late_ = false;
    std::uint8_t pending_ = 0; // how many are awaited; and of the confirmed ones, what they said
    std::uint8_t removed_ = 0;
    std::uint8_t absent_ = 0;
    std::uint8_t foreign_ = 0;
};

inline removal::receipt removal::answered(
    std::size_t master, vote what, const strays& left, time_point now, time_point retry_at) {
    const master_set one = set_of(master);
    receipt out{.in_flight = in_flight(master), .confirmed = confirms_removal(what)};
    in_flight_ &= ~one;
    const bool early = now < left.until && left.may_follow(master, what);
    if ((out.confirmed && !early) || now >= expires_at_) {
        owed_ &= ~one;
        out.debt_paid = (debts_ & one) != 0;
    } else {
        debts_ |= one;
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
        ++(what == vote::granted ? removed_ : what == vote::absent ? absent_ : foreign_);
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

inline removal::repeat removal::due(time_point now, master_set up, strays& left) noexcept {
    repeat out;
    if (now >= expires_at_) {
        out = {unsent() & up & (left.sets | left.heals), true};
        owed_ &= in_flight_ | out.to; // the others' key is gone by itself
        left.sets &= ~out.to;
        left.heals &= ~out.to;
    } else if (now >= retry_at_) {
        out.to = unsent() & up;
    } else {
        return out;
    }
    retry_at_ = forever;
    return out;
}

} // namespace redlock::core
