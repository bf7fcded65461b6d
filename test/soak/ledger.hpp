// What the workers say of their locks, and what follows from it.
//
// An overlap is one of *belief*: at one moment `held()` would have been true for two workers. It is
// proven, never guessed. A worker reads the clock, then asks `held()`; if that is true, it also was
// at the moment read before, since a handle that is no longer held never is again. So a tenure
// lasts from the moment read before the first such answer to the one read before the last, and
// every moment between was one of belief. The clock is CLOCK_BOOTTIME, one for all processes of the
// machine.
//
// A worker that is stopped past its deadline and then writes is thus no overlap: its last true
// answer lies before the stop. Its late write is what the fencing token is for (store.hpp).
//
// What is missed is less than a tick at the end of each tenure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace redlock::soak {

using moment = std::chrono::nanoseconds; // of CLOCK_BOOTTIME

moment now();

enum class entry : char {
    acquired = 'A', // `held()` was true at this moment: a tenure begins
    believed = 'B', // and still at this one
    written = 'W',  // a write that the store accepted
    stale = 'S',    // one that it refused, with the lease over
    wronged = 'X',  // one that it refused although the lock was held after that
    lost = 'L',     // the library signalled a loss
};

/// One worker's, in a file. Each note is one write to the system: it is not lost when the worker is
/// killed.
class ledger {
public:
    explicit ledger(const std::filesystem::path& file);
    ledger(const ledger&) = delete;
    ledger& operator=(const ledger&) = delete;
    ~ledger();

    void note(entry what, std::uint64_t token, moment at) const;

private:
    int fd_ = -1;
};

struct tenure {
    std::uint64_t token = 0;
    moment from{};
    moment until{};
};

struct findings {
    std::vector<tenure> tenures; // in the order of their beginnings
    std::size_t written = 0;
    std::size_t stale = 0;
    std::size_t wronged = 0;
    std::size_t lost = 0;

    std::size_t overlaps() const;
    /// Tenures whose token is not larger than that of every tenure which began before.
    std::size_t disorder() const;

    struct service {
        double share = 0; // of the time between the first tenure and `end`
        moment longest_gap{};
    };
    /// How much of the time somebody had the lock or could get it: what lies between two tenures
    /// and is longer than `handoff` counts as an outage. That includes the rest of the lease of a
    /// holder that was killed, which nobody may take.
    service availability(moment handoff, moment end) const;
};

/// Reads all ledgers of a directory.
findings read_ledgers(const std::filesystem::path& directory);

} // namespace redlock::soak
