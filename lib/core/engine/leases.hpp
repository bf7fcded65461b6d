// The leases of this process (lease.hpp): sends their extensions, counts the replies, reports what
// changes, and notices their loss.
//
// No key of a lease is removed while its holder may act. After a loss the keys stay until the
// holder ends the lease, or until the last deadline that it was ever shown.

#pragma once

#include "essentials.hpp"

#include <redlock/options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace redlock::core {

class leases : essentials {
public:
    /// Why a lease must be ended by `lose`; empty: it goes on.
    using loss = std::optional<loss_reason>;

    explicit leases(const essentials& with) noexcept : essentials(with) {}

    /// \name Beginning and end
    /// \{
    /// A majority has granted the claim.
    void begin(
        claim& won,
        const acquire_options& options,
        time_point deadline,
        time_point limit,
        time_point now);
    /// The holder ends it.
    void end(claim& lease, errc why, time_point now);
    /// It is lost: the holder is signalled, and may still act.
    void lose(claim& lease, loss_reason reason, time_point now);
    /// Ends the extensions that the holder has requested.
    void end_extensions(claim& lease, errc why);
    /// \}

    /// At the holder's request.
    void extend(claim& lease, std::chrono::milliseconds ttl, time_point now);
    loss due(claim& lease, time_point now);

    /// \name Replies
    /// \{
    /// To an extension or to HEAL.
    loss answered(claim& lease, const arrival& at, const answer& got);
    /// To an acquire or a raise, after the majority.
    loss granted_late(claim& lease, const arrival& at, const answer& got);
    loss raised_late(claim& lease, const arrival& at, const answer& got);
    /// Sends an extension or HEAL again, because the master refused its variant.
    void again(claim& lease, const arrival& at, bool alone);
    /// \}

    /// \name The members of the quorum have changed
    /// \{
    void members_changed(claim& lease);
    /// The round of an extension counts no votes of earlier members.
    void break_off(claim& lease, time_point now);
    /// \}

private:
    /// Returns false if too few masters can be asked: then end the round.
    bool start(claim& lease, std::chrono::milliseconds ttl, bool asked_for, time_point now);
    void start_wanted(claim& lease, time_point now);
    void heal(claim& lease, std::size_t master, std::uint16_t round, time_point now);
    void heal_missing(claim& lease, time_point now);
    loss judge(claim& lease, time_point now);
    void end_round(claim& lease, bool extended, time_point now);
    void report_round(claim& lease, bool extended, time_point now);
    loss move_deadline(claim& lease, time_point now);
    void schedule(claim& lease) { timers_.set(lease.wake, lease.held().next_due(lease)); }
};

} // namespace redlock::core
