// The removals of claims after their end (removal.hpp): sends them, repeats what a master has not
// confirmed, reports each result once it is known, and drops the claim once nothing is pending.
//
// A removal follows the SET on the same connection, whatever the reply to the SET is and without
// waiting for it. If that connection broke, the removal is sent again when the master is back.

#pragma once

#include "core/locks/removal_limits.hpp"
#include "essentials.hpp"

#include <cstddef>
#include <span>

namespace redlock::core {

class removals : essentials {
public:
    explicit removals(const essentials& with)
        : essentials(with),
          limits_(with.rules_.size(), with.rules_.removals_max, with.rules_.turn_max) {}

    /// Each function below may end in `removal_reports::removed`, and destroys a claim of which
    /// nothing is left on the masters.
    /// \{
    /// Ends a claim. A holder waits for the result; nobody waits for that of a rollback.
    void begin(claim& ended, time_point now);
    /// Returns whether the master has confirmed the removal.
    bool answered(claim& ended, const arrival& at, vote what);
    /// The master has removed the keys of all these locks: the most frequent reply, in one pass.
    bool removed(const arrival& at, std::span<const batch::item> locks);
    /// The time of a claim has come.
    void due(claim& ended, time_point now);
    /// \}
    /// A lease was released, but its keys stay for the next owner.
    void handed_off(const claim& lease);
    /// Sends a removal again, because the master refused its variant.
    void again(claim& ended, const arrival& at, bool alone);

    /// The connection to a master came up or broke.
    void connection_changed(std::size_t master, time_point now);
    /// When the next pending removals must be sent, by `time_passed`.
    time_point next_due() const noexcept { return limits_.due(); }
    void time_passed(time_point now);
    void stop() noexcept { limits_.clear_due(); }

    /// Whether removals are in flight, or a search for pending ones is not finished.
    bool under_way() const noexcept { return limits_.under_way(); }
    /// Whether each removal of a claim was written, or cannot be sent now.
    bool on_wire(const claim& ended) const noexcept;

private:
    void begin_votes(claim& ended);
    void send(claim& ended, master_set to, time_point now);
    void send_pending(std::size_t master, time_point now);
    bool settle(claim& ended, const arrival& at, vote what, bool counts);
    bool decide(claim& ended, time_point now);
    void wait_for_active(claim& ended, time_point now);
    void report(claim& ended);
    void schedule(claim& ended, time_point now) {
        timers_.set_by(ended.wake, ended.ending().next_due(ended, now));
    }

    removal_limits limits_;
};

} // namespace redlock::core
