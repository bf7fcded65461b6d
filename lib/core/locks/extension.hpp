// One extension: counts the replies of the masters and decides the result.
//
// An extension never creates a key. A majority that still has the key decides the round at once.
// Otherwise the result is decided once, when all masters have replied or at `master_timeout`. So
// the order of replies does not matter. A missing key is created by a second step, HEAL. It is sent
// only while at least N - q + 1 masters (q: a majority) cannot have voted for another owner, so no
// other owner can have had a majority. No function here reads a clock.

#pragma once

#include "core/base/decisions.hpp"
#include "core/base/validity.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace redlock::core {

/// The state of the lease's key on one master in the current round.
enum class key_state : std::uint8_t {
    unknown,        // not asked, no reply, an error, or a command that came too late
    pending,        // asked: its reply may still arrive
    kept,           // there, and extended
    healed,         // it was missing, and HEAL has created it
    missing,        // missing, although the master has lost nothing
    quarantined,    // missing, on a master that may have lost it
    owned_by_other, // the key of another owner
    ineligible,     // its master must not vote, and may have voted for another owner
};

/// Until when the vote of one master counts. Every lock has one per master: kept small, so there is
/// one moment, and whether the key is known to be there until then.
class vote_term {
public:
    /// The key is there until then; `never` if the master may have lost it.
    time_point until() const noexcept { return forgotten_ ? never : blocks_until_; }
    /// The master cannot have voted for another owner before then.
    time_point blocks_until() const noexcept { return blocks_until_; }

    /// It set, extended or healed the key.
    void confirm(time_point moment) noexcept {
        blocks_until_ = std::max(until(), moment);
        forgotten_ = false;
    }
    /// The master may have lost the key: its vote no longer counts. It still blocks other owners
    /// until the end of its quarantine.
    void forget() noexcept { forgotten_ = true; }
    /// It was removed from the quorum.
    void forget_all() noexcept { blocks_until_ = never; }
    /// It has lost no data, and the key is missing or another owner's. Returns true if something
    /// outside the protocol removed the key, for example DEL or eviction.
    bool remove(time_point now) noexcept {
        const bool silent = now < blocks_until_;
        forget_all();
        return silent;
    }

private:
    time_point blocks_until_ = never;
    bool forgotten_ = false;
};

enum class ruling : std::uint8_t {
    open,   // undecided: replies are outstanding
    won,    // a majority has the key
    heal,   // HEAL goes to the masters that miss the key; their replies are votes of this round
    failed, // no majority: the lease ends with its remaining votes
};

/// The current extension of a lease, or the last one.
struct extension {
    std::uint16_t round = 0;
    bool active : 1 = false;
    bool asked_for : 1 = false; // by the user, rather than by renewal
    bool healing : 1 = false;   // waits for the replies to HEAL, which decide the round
    bool heals : 1 = false;     // replies to HEAL count
    bool confirmed : 1 = false; // a majority still had the key: a missing one may be healed
    bool judged : 1 = false;    // the result is decided: the deadline may now also move back
    short_ttl ttl{};
    time_point sent = never;

    /// Counts the reply `said` to a command of round `of`. Returns what `vote_term::remove`
    /// returns.
    bool count(
        vote_term& theirs,
        key_state said,
        std::uint16_t of,
        bool to_heal,
        time_point now,
        drift_bound drift) const noexcept {
        if (said == key_state::missing || said == key_state::owned_by_other) {
            // Replies are in the order of the commands, so no later extension has found the key.
            return theirs.remove(now);
        }
        const bool there = said == key_state::kept || said == key_state::healed;
        if (there && of == round && (!to_heal || heals)) {
            theirs.confirm(guaranteed_until(wrong::extension_from_reply ? now : sent, ttl, drift));
        } else if (said == key_state::quarantined) {
            theirs.forget();
        }
        return false;
    }

    /// Decides after the replies so far. `masters` is a range of `ballot`-like elements: a
    /// `vote_term` with a `key_state found`. After a removal from outside, HEAL cannot make the
    /// round succeed: a key that was there when its master replied may now be another owner's.
    /// `voters`: the number of members, N; some of them may not be configured.
    template <typename Masters>
    ruling rule(
        const Masters& masters,
        std::size_t voters,
        std::size_t quorum,
        bool removal_seen,
        time_point now) const {
        std::array<std::size_t, 8> count{}; // by key_state
        std::size_t silent = 0; // without the key, but cannot have voted for another owner
        for (const auto& one : masters) {
            ++count[static_cast<std::size_t>(one.found)];
            silent += one.found == key_state::unknown && now < one.blocks_until() ? 1U : 0U;
        }
        const auto of = [&](key_state what) { return count[static_cast<std::size_t>(what)]; };
        const std::size_t kept = of(key_state::kept);
        silent += of(key_state::quarantined);
        if (kept + of(key_state::healed) >= quorum) {
            return ruling::won;
        }
        const bool blocked =
            wrong::heal_without_blocking || (!removal_seen && kept + silent + quorum > voters);
        if (healing && removal_seen && !blocked) {
            return ruling::failed; // the condition for the heal no longer holds
        }
        if (of(key_state::pending) > 0) {
            return ruling::open;
        }
        return !healing && of(key_state::missing) > 0 && blocked ? ruling::heal : ruling::failed;
    }
};

} // namespace redlock::core
