// What the workers say of their locks, and what follows from it.
//
// An overlap is one of *belief*: at one moment `held()` would have been true for two workers. It is
// proven, never guessed. A worker reads the clock, then asks `held()`; if that is true, it also was
// at the moment read before, since a handle that is no longer held never is again. So a tenure
// lasts from the moment read before the first such answer to the one read before the last, and
// every moment between was one of belief. The clock is `redlock::clock`, one for all processes of
// the machine.
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
#include <ios>
#include <map>
#include <string>
#include <vector>

namespace redlock::soak {

using moment = std::chrono::nanoseconds; // of redlock::clock

moment now();

enum class entry : char {
    none = '-',     // nothing is noted yet
    asked = 'Q',    // the worker waits for the lock
    failed = 'F',   // it did not get the lock
    acquired = 'A', // `held()` was true at this moment: a tenure begins
    believed = 'B', // and still at this one
    written = 'W',  // a write that the store accepted
    stale = 'S',    // one that it refused, with the lease over
    wronged = 'X',  // one that it refused although the lock was held after that
    lost = 'L',     // the library signalled a loss
    left = 'E',     // the worker has released the lock, if it had it still
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
    std::size_t failed = 0;
    std::size_t written = 0;
    std::size_t stale = 0;
    std::size_t wronged = 0;
    std::size_t lost = 0;

    std::size_t overlaps() const;
    /// Tenures whose token is not larger than that of every tenure which began before.
    std::size_t disorder() const;
};

/// Reads ledgers, also while they grow.
class ledger_reader {
public:
    /// What one worker has noted so far.
    struct account {
        entry last = entry::none;
        moment since{};    // when `last` began
        moment acquired{}; // the last time; 0: never
        std::size_t tenures = 0;
        std::size_t lost = 0;

        bool believes() const { return last == entry::acquired || last == entry::believed; }
    };

    /// Reads what was added to that file since the last call.
    const account& read(const std::filesystem::path& file);

    /// All that was read.
    findings found() const;

private:
    struct open_file {
        account notes;
        std::streamoff read = 0;
        std::size_t tenure = 0; // the last one
    };
    void take(open_file& from, const std::string& line);

    std::map<std::filesystem::path, open_file> files_;
    findings found_;
};

} // namespace redlock::soak
