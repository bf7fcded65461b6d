// What becomes of a held lock by its holder's doing or by a loss: it is released, handed off,
// abandoned, downgraded, or lost. After a loss the holder may still act, so the keys stay until it
// releases the lease, or until the last deadline that it was shown.

#pragma once

#include "acquires.hpp"
#include "essentials.hpp"
#include "leases.hpp"
#include "removals.hpp"
#include "waiting.hpp"

#include <cstddef>

namespace redlock::core {

class holders : essentials {
public:
    holders(
        const essentials& with,
        acquires& next,
        waiting& queues,
        leases& held,
        removals& ended) noexcept
        : essentials(with),
          acquires_(next),
          waiting_(queues),
          leases_(held),
          removals_(ended) {}

    /// \name Each requires that the holder may act
    /// \{
    void release(claim& lease, time_point now);
    /// Ends a lease without removing its keys.
    void abandon(claim& lease);
    /// \}
    /// The lease of a writer becomes that of a reader, and is extended.
    void downgrade(claim& lease, time_point now);
    /// Signals a loss, if there is one.
    void lose_if(claim& lease, leases::loss lost, time_point now);
    /// The holder of a lost lease has ended it, or must have stopped.
    void end_lost(claim& lease, time_point now);

    /// Number of lost leases that their holders have not ended.
    std::size_t lost() const noexcept { return lost_; }

private:
    acquires& acquires_;
    waiting& waiting_;
    leases& leases_;
    removals& removals_;
    std::size_t lost_ = 0;
};

} // namespace redlock::core
