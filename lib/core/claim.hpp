// A claim: one token, and what it may have left on each master. It begins as an attempt to take a
// lock, becomes a lease when a majority grants it, and ends as removals that are owed to the
// masters until each has confirmed its own or the key must have expired. Every attempt is a claim
// of its own, so an answer can never be counted for another attempt.
//
// A lease that is lost is not removed yet: its holder may act until it has let go or until the last
// deadline that it was ever shown.

#pragma once

#include "backoff.hpp"
#include "decisions.hpp"
#include "extension_round.hpp"
#include "form.hpp"
#include "pool.hpp"
#include "removal.hpp"
#include "round.hpp"
#include "timers.hpp"
#include "validity.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/options.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::core {

/// What is left of a lease of which nobody said it.
constexpr std::chrono::milliseconds not_told{-1};

/// What one claim knows of one master. Every lock and every waiter has one for each: kept small.
struct ballot : vote_term {
    std::uint64_t removal_mark = 0;            // where the removal ends in the master's stream
    std::uint64_t counter = 0;                 // the fencing counter that came with the grant
    std::chrono::milliseconds left = not_told; // of the lease of who has it
    std::chrono::duration<std::uint32_t, std::micro> latency{0}; // an hour at most
    vote said = vote::pending;
    key_state found = key_state::unknown; // by the extension that is under way, or the last
    bool asked = false;                   // it was told to set the key: the key may be there
};

/// The votes of all masters, in the order of the configuration, with what they said in words.
struct ballots {
    std::vector<ballot> of;
    std::vector<std::pair<std::size_t, std::string>> texts;

    void reset(std::size_t masters) {
        of.assign(masters, ballot{});
        texts.clear();
    }
    void note(std::size_t master, std::string_view text) {
        for (auto& [who, what] : texts) {
            if (who == master) {
                what = text;
                return;
            }
        }
        texts.emplace_back(master, text);
    }
    std::string_view text(std::size_t master) const noexcept {
        for (const auto& [who, what] : texts) {
            if (who == master) {
                return what;
            }
        }
        return {};
    }
    std::size_t count(vote what) const noexcept {
        std::size_t found = 0;
        for (const ballot& one : of) {
            found += one.said == what ? 1U : 0U;
        }
        return found;
    }
    /// Some master set the key, or may have: its answer is not in.
    bool may_be_set() const noexcept {
        return std::ranges::any_of(of, [](const ballot& one) {
            return one.asked
                   && (one.said == vote::granted || one.said == vote::pending
                       || one.said == vote::timed_out || one.said == vote::unreachable);
        });
    }
    /// Until when at least `quorum` votes can be relied on.
    time_point lasts_until(std::size_t quorum) const noexcept {
        return nth_largest(of, quorum, &ballot::until);
    }
};

/// How far a claim has come that takes over a lock which is there already.
enum class adoption : std::uint8_t {
    none,   // it is no such claim
    lasts,  // a majority is asked to keep the lock
    counts, // ... and what the fencing counters are
    raises, // ... and to raise them to a token that is new
};

/// What a claim on slots of a pool knows besides. Apart, as most claims are on locks.
struct slot_part {
    std::string pool_key;               // what they are of
    std::vector<std::uint32_t> numbers; // in order
    std::size_t handed_over = 0;        // local hand-overs in a row
};

struct claim {
    enum class phase : std::uint8_t {
        asking,
        held,
        lost, // its holder was told so, and may act until it lets go or until `believed_until`
        removing,
    };
    static constexpr std::size_t nobody = core::nobody;

    handle self;
    timer wake;
    phase stage = phase::asking;
    lock_form form = lock_form::exclusive;
    std::string key;                  // of several resources: all keys, packed
    std::string fence_key;            // guarded, of one resource
    std::unique_ptr<slot_part> slots; // null for a lock
    std::array<char, 40> token{};
    bool fencing = false;
    std::uint64_t fencing_token = 0; // once it is held
    std::chrono::milliseconds ttl{};
    std::chrono::milliseconds ttl_max{};   // the largest that was ever asked for
    time_point asked_at = never;           // t0
    std::chrono::milliseconds asked_ttl{}; // then; its next owner may want another
    time_point expires_at = never;         // from then on no master can have the key
    ballots votes;
    strays left_behind;

    // while asking
    round count;
    handle operation;
    time_point vote_by = never;   // a grant that would be cast later must not be
    std::size_t arbiter = nobody; // the one master that was asked so far, and must answer first
    std::uint64_t raise_to = 0;   // what the counters of a majority are being brought to
    adoption adopts = adoption::none;

    // while held
    time_point given_at = never; // to its present holder
    renewal renew = renewal::automatic;
    std::chrono::milliseconds stop_margin{};
    time_point held_since = never;
    time_point hold_limit = forever;
    time_point warn_at = forever; // that it is held for long
    time_point deadline = never;
    time_point believed_until = never; // the largest deadline that the holder was ever shown
    time_point renew_at = forever;
    bool removal_seen = false; // a key was gone that nothing of the protocol had removed
    extension extending;
    std::vector<std::chrono::milliseconds> extensions_wanted;
    backoff renewal_delay;

    // once it has ended
    bool announced = false;    // its end is news to those who wait; that of most attempts is not
    bool drops_intent = false; // a writer's, of which this removal is the last word
    std::uint64_t intent = 0;  // its name; 0: none
    removal end;

    std::string_view token_text() const noexcept { return {token.data(), token.size()}; }

    /// What those wait for who wait for it: the lock, or any slot of its pool.
    const std::string& line_key() const noexcept { return is_slot() ? slots->pool_key : key; }
    lock_form line_form() const noexcept { return is_slot() ? lock_form::exclusive : form; }
    bool is_slot() const noexcept { return slots != nullptr; }

    /// Until when the holder may rely on it.
    time_point held_until() const noexcept { return deadline - stop_margin; }
    /// When it is lost unless it is extended before.
    time_point lost_at() const noexcept {
        return wrong::heal_after_deadline ? held_until() + ttl : held_until();
    }
    /// Until when the holder may act, unless it lets go before.
    time_point acts_until() const noexcept {
        return stage == phase::lost ? believed_until : deadline;
    }
    /// Somebody has it, or may act as if.
    bool acts() const noexcept { return stage == phase::held || stage == phase::lost; }
    bool ended() const noexcept { return stage == phase::lost || stage == phase::removing; }

    void reset() {
        form = lock_form::exclusive;
        votes.texts.clear();
        slots.reset();
        extensions_wanted.clear();
        extending = {};
        renewal_delay.reset();
        operation = {};
        arbiter = nobody;
        adopts = adoption::none;
        fencing_token = raise_to = 0;
        deadline = believed_until = given_at = never;
        renew_at = warn_at = forever;
        drops_intent = false;
        intent = 0;
        announced = removal_seen = false;
        left_behind = {};
        end = {};
    }
};

} // namespace redlock::core
