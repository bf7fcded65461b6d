// The judge of a run: told what holders do and what masters keep, it says whether a promise was
// broken. It knows the promises as a user would state them, and nothing of the engine.

#pragma once

#include "plan.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simulation {

enum class promise : std::uint8_t {
    exclusion, // a holder that acts on a resource is alone; or all are readers
    order,     // fencing tokens are unique and increase in the order of ownership
    store,     // the fenced store accepts no write of an older owner after one of a newer owner
    no_orphan, // no key outlives its bound
    loss_told, // each loss is signalled by its deadline, unless the process did not run
    progress,  // once faults have ended, each waiter gets its lock, and nothing is left over
    sane,      // the engine keeps its contract with its host
    turn,      // the waiters of one client for a resource get it in order of arrival
    truth,     // "released" means that nobody else held the lock before it was let go
    attempt,   // while the lock is free, a waiter tries soon
};
std::string_view to_string(promise) noexcept;

struct violation {
    promise broken = promise::exclusion;
    nanos at = 0;
    std::string text;
};

class checker {
public:
    struct demands {
        bool exclusion = true;
        bool order = false;
        bool unique = false; // of the tokens, where their order is not demanded
        bool bounds = true;  // of how long a key stays
        nanos yields = 0;    // not 0: a holder that is overtaken acts for at most this time
    };

    checker(demands wanted, std::size_t resources) : wanted_(wanted), resources_(resources) {}

    /// A client's holder acts on `resource` from now on. Gives the ownership a number. `since` is
    /// when its keys were set, if another holder set them and passed the lock on.
    std::size_t takes(
        nanos now,
        unsigned client,
        unsigned resource,
        std::uint64_t fencing,
        nanos until,
        taking how = taking::one,
        std::optional<nanos> since = std::nullopt);
    /// A writer goes on as a reader.
    void reads_only(std::size_t ownership) { ownerships_[ownership].how = taking::reading; }
    /// Until when, in true time, it goes on acting unless it lets go before.
    void acts_until(nanos now, std::size_t ownership, nanos until);
    void lets_go(nanos now, std::size_t ownership);
    /// Its loss was signalled. It may go on acting.
    void loses(std::size_t ownership) { ownerships_[ownership].lost = true; }
    /// After it had let go, its release reported `released`.
    void released(nanos now, std::size_t ownership);

    /// A write with the ownership's fencing token arrives at the fenced store.
    void write(nanos now, std::size_t ownership);

    /// A lock key was written that stays until `until`, unless somebody removes it before.
    void key_stays(nanos now, std::string_view where, nanos until, nanos bound);

    /// A loss is signalled to a client, this long after its deadline by its own clock.
    void loss_told(nanos now, unsigned client, nanos late, bool was_paused);

    /// \name The line for a resource in one client, whose waiters have numbers of its own
    /// \{
    void joins(unsigned client, unsigned resource, unsigned waiter);
    /// It has the lock.
    void served(nanos now, unsigned client, unsigned waiter);
    /// It was decided then that it does not get it: from then on others may go before it.
    void leaves(unsigned client, unsigned waiter, nanos decided);
    void all_leave(unsigned client);
    /// \}

    void fail(promise broken, nanos now, std::string text);

    const std::optional<violation>& found() const noexcept { return found_; }
    /// Ownerships that overlapped, whether or not exclusion was demanded.
    std::uint64_t overlaps() const noexcept { return overlaps_; }
    /// Writes that the fenced store refused.
    std::uint64_t refused_writes() const noexcept { return refused_; }
    std::uint64_t accepted_writes() const noexcept { return accepted_; }
    /// Writes of an older owner that it accepted after a newer owner's.
    std::uint64_t inversions() const noexcept { return inversions_; }

private:
    struct ownership {
        unsigned client;
        unsigned resource;
        std::uint64_t fencing;
        nanos until;
        taking how;
        nanos began = 0;
        nanos keys_since = 0;
        nanos overtaken = no_time; // since then another owner holds it as well
        bool lost = false;
    };
    struct resource_state {
        std::vector<std::size_t> actors; // ownerships whose holders have not let go
        std::uint64_t largest_token = 0; // issued
        std::uint64_t stored_token = 0;  // the largest the store has seen
        std::size_t stored_owner = 0;    // the newest whose write was accepted, plus one
    };

    struct waiter {
        unsigned client;
        unsigned resource;
        unsigned number;
        nanos overtaken = no_time;
    };

    void look(nanos now, unsigned resource);
    static bool may_meet(const ownership& a, const ownership& b) noexcept;
    void end_wait(unsigned client, unsigned number, nanos until);

    demands wanted_;
    std::vector<resource_state> resources_;
    std::vector<ownership> ownerships_;
    std::vector<waiter> waiters_; // in the order in which they came
    std::optional<violation> found_;
    std::uint64_t overlaps_ = 0;
    std::uint64_t refused_ = 0;
    std::uint64_t accepted_ = 0;
    std::uint64_t inversions_ = 0;
};

} // namespace simulation
