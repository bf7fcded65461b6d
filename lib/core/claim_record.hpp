// The record of a claim: one token, the keys that it is for, and what it may have left on each
// master. A value that goes with the claim from attempt to lease to removal.

#pragma once

#include "extension_round.hpp"
#include "form.hpp"
#include "removal.hpp"
#include "validity.hpp"

#include <redlock/diagnostics.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
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

/// What a claim on slots of a pool knows besides. Apart, as most claims are on locks.
struct slot_part {
    std::string pool_key;               // what they are of
    std::vector<std::uint32_t> numbers; // in order
    time_point handed_since = never;    // the first of the local handoffs in a row
};

struct claim_record {
    lock_form form = lock_form::exclusive;
    bool fencing = false;
    bool announced = false;    // its end is news to those who wait; that of most attempts is not
    bool drops_intent = false; // a writer's, of which its removal is the last word
    bool removal_seen = false; // a key was gone that nothing of the protocol had removed
    std::string key;           // of several resources: all keys, packed
    std::string fence_key;     // guarded, of one resource
    std::unique_ptr<slot_part> slots; // null for a lock
    std::array<char, 40> token{};
    std::uint64_t intent = 0;        // the name of that of a writer; 0: none
    std::uint64_t fencing_token = 0; // once it is held
    std::chrono::milliseconds ttl{};
    std::chrono::milliseconds ttl_max{};   // the largest that was ever asked for
    time_point asked_at = never;           // t0
    std::chrono::milliseconds asked_ttl{}; // then; its next owner may want another
    time_point expires_at = never;         // from then on no master can have the key
    time_point believed_until = never;     // the largest deadline that a holder was ever shown
    ballots votes;
    extension extending; // what the masters were asked for last, once it is held
    strays left_behind;

    std::string_view token_text() const noexcept { return {token.data(), token.size()}; }

    /// What those wait for who wait for it: the lock, or any slot of its pool.
    const std::string& line_key() const noexcept { return is_slot() ? slots->pool_key : key; }
    lock_form line_form() const noexcept { return is_slot() ? lock_form::exclusive : form; }
    bool is_slot() const noexcept { return slots != nullptr; }

    /// As good as new; buffers are kept, and what each claim sets.
    void reset() {
        form = lock_form::exclusive;
        announced = drops_intent = removal_seen = false;
        slots.reset();
        intent = fencing_token = 0;
        believed_until = never;
        votes.texts.clear();
        extending = {};
        left_behind = {};
    }
};

} // namespace redlock::core
