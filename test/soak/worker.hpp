// A process that takes the lock again and again, works with it for a while on the store, and says
// what it believed in its ledger.
#pragma once

#include <redlock/config.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace redlock::soak {

/// What a run does wrong on purpose, to show that its verdict can be bad.
enum class unsafe : std::uint8_t {
    none,
    no_lock,   // nobody locks: everybody believes that he has it, with the time as his token
    one_token, // they lock, but all have one and the same fencing token
    dead_end,  // all masters are killed at the end
};

struct pace {
    std::chrono::milliseconds ttl;
    std::chrono::milliseconds max_ttl;
    std::chrono::milliseconds wait; // for the lock
};

/// What happens slowly is to be followed by eye: leases and the quarantine are longer.
constexpr pace pace_of(bool slow) {
    using std::chrono::milliseconds;
    return slow ? pace{milliseconds(1'000), milliseconds(2'000), milliseconds(500)}
                : pace{milliseconds(600), milliseconds(800), milliseconds(10'000)};
}

struct worker_settings {
    std::string store;  // socket
    std::string ledger; // file
    std::uint64_t seed = 0;
    bool slow = false;    // writes whether held or not
    bool dawdles = false; // the same, and sometimes far too late
    unsafe how = unsafe::none;
    std::vector<std::string> masters;
};

/// The lock that they want.
inline constexpr const char* resource = "soak";

/// The quorum, as all processes of a run see it.
config quorum_config(const std::vector<std::string>& masters, const pace& times);

/// Never returns but by an exception: workers are killed.
[[noreturn]] void work(const worker_settings& settings);

/// As words for the command line of this program, in the order of the members.
std::vector<std::string> command_line(const worker_settings& settings);

} // namespace redlock::soak
