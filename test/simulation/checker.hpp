// Checks a run: receives the actions of holders and the keys on masters, and reports a broken
// promise. It knows the promises as a user would state them, and nothing of the engine.

#pragma once

#include "plan.hpp"

#include <fmt/format.h>

namespace simulation {

enum class promise : std::uint8_t {
    exclusion, // at most one holder acts on a resource, or all of them are readers
    order,     // fencing tokens are unique and increase in the order of ownership
    no_orphan, // no key outlives its bound
    loss_told, // each loss is signalled by its deadline, unless the process did not run
    progress,  // once faults have ended, each waiter gets its lock, and nothing is left over
    sane,      // the engine keeps its contract with its host
    turn,      // the waiters of one client for a resource get it in order of arrival
    truth,     // `released` is reported only if no other owner had the lock before, and a lock that
               // another owner has had since does not come back
    attempt,   // while the lock is free, a waiter tries soon
    passes,    // no waiting client is passed over too often
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
        bool unique = false; // fencing tokens differ, even if their order is not checked
        bool bounds = true;  // keys are removed or expire within their bound
        unsigned passes = 0; // not 0: how often a waiting client may be passed over
        nanos yields = 0; // not 0: maximum time that a holder acts after losing the lock to another
    };

    checker(demands wanted, std::size_t resources) : wanted_(wanted), resources_(resources) {}

    /// Records that a holder of `client` starts to act. Returns the number of the ownership.
    /// `since`: when its keys were set, after a local handoff.
    std::size_t takes(
        nanos now,
        unsigned client,
        unsigned resource,
        std::uint64_t fencing,
        nanos until,
        taking how = taking::one,
        std::optional<nanos> since = std::nullopt);
    /// Records a downgrade.
    void reads_only(std::size_t ownership) { ownerships_[ownership].how = taking::reading; }
    /// Sets until when (in true time) the holder acts unless it releases the lock earlier.
    void acts_until(nanos now, std::size_t ownership, nanos until);
    void lets_go(nanos now, std::size_t ownership);
    /// Records that the loss was signalled. The holder may continue to act.
    void loses(std::size_t ownership) { ownerships_[ownership].lost = true; }
    /// Checks an attach that succeeded: nobody else has had the lock since this ownership.
    void goes_on(nanos now, std::size_t ownership);
    /// Checks a release that reported `released`.
    void released(nanos now, std::size_t ownership);

    /// A write with the ownership's fencing token arrives at the fenced store.
    void write(std::size_t ownership);

    /// Checks that a lock key expires within its bound: it was written and stays until `until`,
    /// unless it is removed earlier.
    void key_stays(nanos now, unsigned master, nanos until, nanos bound);

    /// A loss is signalled to a client, this long after its deadline by its own clock.
    void loss_told(nanos now, unsigned client, nanos late, bool was_paused);

    /// \name The wait queue for a resource in one client; waiters are numbered per client
    /// \{
    void joins(unsigned client, unsigned resource, unsigned waiter);
    /// It has the lock.
    void served(nanos now, unsigned client, unsigned waiter);
    /// The acquire of this waiter failed at `decided`. From then on others may be served first.
    void leaves(unsigned client, unsigned waiter, nanos decided);
    void all_leave(unsigned client);
    /// \}

    template <typename... Parts>
    void fail(
        promise broken,
        nanos now,
        fmt::format_string<const Parts&...> line,
        const Parts&... parts) {
        if (!found_) {
            found_ = violation{broken, now, fmt::format(line, parts...)};
        }
    }

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
        nanos overtaken = no_time; // since when another owner holds the lock as well
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
        unsigned passed = 0; // by other clients
    };

    void require_none_since(nanos now, std::size_t ownership, nanos until, std::string_view does);
    void pass_over(nanos now, unsigned client, unsigned resource);
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
