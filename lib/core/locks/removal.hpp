// The removal of a claim: after its end, its key must be removed from every master that may have
// it.
//
// A removal is *pending* for each of these masters (`unconfirmed`) until the master has confirmed
// it or the key must have expired there. It is in flight from its command until the reply, and
// *overdue* while it waits for another connection.
//
// Commands in flight on a broken connection may still be executed, after a removal on the next one.
// So a confirmation counts only once such a stray command can no longer set the key: guarded, when
// the server refuses it as late; plain, when the key must have expired. Then the removal is sent
// again.
//
// Inline, because each lock calls these functions for each master.

#pragma once

#include "claim.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace redlock::core {

// A reply, or the break of its connection.
inline steps claim::removed(const told& from, vote what, const circumstances& at) {
    assert(is_ending());
    removing_state& mine = removing_;
    const master_set one = set_of(from.master);
    votes.of[from.master].said = what;
    steps out = steps::counted | (in_flight(from.master) ? steps::landed : steps::none);
    mine.in_flight &= ~one;
    mine.awaited &= ~one;
    const bool confirmed = confirms_removal(what);
    if (confirmed) {
        out |= steps::confirmed;
        if ((mine.confirmed & one) == 0 && from.counts) { // a repeated one is not counted again
            ++(what == vote::owned_by_other          ? mine.foreign
               : what == vote::granted && !mine.late ? mine.removed
                                                     : mine.absent);
        }
        mine.confirmed |= one;
    }
    const bool early = more_ != nullptr && at.now < more_->left_behind.until
                       && more_->left_behind.may_follow(from.master, what);
    if ((confirmed && !early) || at.now >= expires_at_) {
        mine.unconfirmed &= ~one;
        out |= (mine.overdue & one) != 0 ? steps::repeated : steps::none;
    } else { // it must be sent again, or a stray command may follow
        out |= steps::later;
        mine.overdue |= one;
        if (confirmed) {
            mine.retry_at = std::min(mine.retry_at, more_->left_behind.until);
        } else if (what == vote::error) {
            mine.retry_at = std::min(mine.retry_at, later(at.now, at.rules.health_check_interval));
        }
    }
    return result_due(at.now) ? out : out | settle(0, never, at);
}

inline steps claim::settle(master_set active, time_point until, const circumstances& at) {
    removing_state& mine = removing_;
    if (!result_wanted()) {
        return mine.unconfirmed == 0 ? steps::gone : steps::none;
    }
    const std::size_t most = mine.most_alike();
    if (result_due(at.now)
        && most + static_cast<std::size_t>(std::popcount(mine.awaited & active)) >= at.majority) {
        mine.decide_by = until;
    }
    const auto awaited = static_cast<std::size_t>(std::popcount(mine.awaited));
    const bool all_replied = most + awaited < at.majority;
    if (most < at.majority && !all_replied && !result_due(at.now)) {
        return steps::none;
    }
    mine.decide_by = forever;
    mine.result = mine.removed >= at.majority   ? release_result::released
                  : mine.absent >= at.majority  ? release_result::expired
                  : mine.foreign >= at.majority ? release_result::stolen
                                                : release_result::uncertain;
    const bool waited = mine.result == release_result::uncertain && !all_replied;
    for (const std::size_t i : each_of(waited ? mine.awaited & mine.in_flight : 0)) {
        votes.of[i].said = vote::timed_out;
    }
    return mine.unconfirmed == 0 ? steps::known | steps::gone : steps::known;
}

} // namespace redlock::core
