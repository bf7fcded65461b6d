// What a run has shown. Five things are counted and must not happen:
// - Two workers believe at the same time that they have the lock (ledger.hpp).
// - Tokens do not increase.
// - Updates are lost at the fenced store (store.hpp).
// - The store refuses a holder.
// - The quorum does not come back after all faults.
#pragma once

#include "injector.hpp"

#include <optional>
#include <string>

namespace redlock::soak {

struct verdict {
    findings found;
    store::totals stored;
    bool progress = false;
    std::size_t deserters = 0;
    std::size_t not_done = 0;       // of the plan: faults, and that a killed master votes again
    std::optional<moment> kept_out; // a restarted master, from voting
    moment quarantine{};            // for which it has to be

    bool good() const;
    // Several lines.
    std::string text(const injector& damage) const;
};

} // namespace redlock::soak
