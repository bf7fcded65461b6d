// What callers ask for: to acquire a lock, in as many attempts as it takes, or to know who has one.

#pragma once

#include "claim.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/errc.hpp>
#include <redlock/options.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace redlock::core {

/// One acquire.
struct operation {
    enum class phase : std::uint8_t {
        queued,     // others of this process came first
        surveying,  // looks which slots of a pool are free
        attempting, // a claim of its is asking
        turning,    // at the head of its line, and asks whether it is that line's turn
        paused,     // at the head of its line, between two attempts
        finishing,  // it failed: the rollback is on its way to the sockets
    };

    handle self;
    timer wake;
    std::uint64_t cookie = 0; // names the operation to the host
    phase stage = phase::attempting;
    lock_form form = lock_form::exclusive;
    std::string key; // with the fence's as in its claims
    std::string fence_key;
    acquire_options options;
    time_point began = never;
    time_point wait_until = forever;
    time_point decided_at = never;
    unsigned attempts = 0;
    handle attempt;              // the claim of the last attempt
    std::optional<errc> outcome; // of the last attempt; empty when cancelled
    ballots last;                // its votes
    backoff delay;
    bool ask_arbiter = false; // the next attempt asks one master first
    std::uint64_t intent = 0; // of a writer that waits: may be on the masters under this name

    // for any slot of a pool: the key is the pool's
    std::uint32_t slots = 0;               // how many it has; 0: a lock is wanted
    std::uint32_t wants = 1;               // so many of them, or none
    handle survey;                         // under way
    std::vector<std::uint32_t> candidates; // were free, and are still to be tried
    unsigned tries = 0;                    // since it last paused

    handle line; // where it waits; none for an acquire that does not wait
    handle before;
    handle behind;

    void reset() {
        form = lock_form::exclusive;
        last.of.clear();
        last.texts.clear();
        candidates.clear();
        slots = tries = 0;
        wants = 1;
        attempts = 0;
        attempt = survey = line = before = behind = {};
        ask_arbiter = false;
        intent = 0;
        outcome.reset();
        delay.reset();
    }
};

/// One query.
struct query {
    handle self;
    timer wake;
    std::uint64_t cookie = 0;
    lock_status result;
    std::vector<std::string> owners; // the tokens that were found
    std::size_t pending = 0;

    void reset() {
        result = {};
        pending = 0;
    }
};

} // namespace redlock::core
