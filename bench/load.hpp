// The load and the results that both sides of the benchmark share: the floor (bare sockets) and the
// library run the same load and fill in the same result. So ratios compare equal things.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

// Where a master listens.
struct address {
    std::string host;
    std::uint16_t port = 0;
    // Empty: no AUTH is sent.
    std::string username{};
    std::string password{};
    // In the list of the quorum; empty: the address.
    std::string name{};
};

// "host:port" or "redis://[[user]:password@]host:port". Throws std::invalid_argument with a message
// that never contains the password.
address parse_address(const std::string& text);
// Without user and password.
std::string to_string(const address& master);

// The side that takes the locks: bare sockets, the library in one of its protocols, or none:
// `pipeline` only keeps each server busy with the same commands, without a quorum. `scope` and
// `threads` are the guarded protocol as most programs use it: `async_with_lock`, and a mutex for
// each of K threads.
enum class side : std::uint8_t { floor, plain, guarded, fenced, pipeline, scope, threads };
// Those that take locks.
inline constexpr std::array all_sides{side::floor, side::plain, side::guarded, side::fenced};
std::string_view to_string(side) noexcept;

struct load {
    side who = side::plain;
    // Acquire-release loops that run at the same time, each on a resource of its own.
    std::size_t in_flight = 1;
    // How long new pairs are started. Zero: no limit, `pairs_max` decides.
    std::chrono::milliseconds duration{1'000};
    // Maximum number of pairs. 0: no limit. `duration` and `pairs_max` must not both be 0.
    std::size_t pairs_max = 0;
    // The same load runs this long before the measurement, on the same connections.
    std::chrono::milliseconds warm_up{100};
    std::chrono::milliseconds ttl{10'000};
    // The library's `master_timeout`.
    std::chrono::milliseconds master_timeout{100};
    // Afterwards look for lock keys that were left on a master.
    bool check = true;
};

// Counters of all masters together, from INFO. The difference of two is what a run cost them.
struct server_usage {
    std::uint64_t commands = 0;
    std::uint64_t bytes_in = 0;
    std::uint64_t bytes_out = 0;
    std::uint64_t reads = 0;
    std::chrono::microseconds cpu{0};
};

struct result {
    // One sample per acquire, in order of completion: from just before it is started to just
    // after the deciding vote.
    std::vector<std::uint32_t> acquire_ns;
    // Acquired and released by a majority.
    std::uint64_t pairs = 0;
    // Failed attempts, and (floor) unexpected replies.
    std::uint64_t failures = 0;
    // Replies that did not come within the grace time at the end (floor).
    std::uint64_t unanswered = 0;
    // Lock keys found on masters after the run, summed over masters. Must be zero.
    std::uint64_t keys_left = 0;
    // From the first acquire to the last completed release.
    std::chrono::nanoseconds elapsed{0};
    // User and system time of this process in the same span.
    std::chrono::nanoseconds cpu{0};
    server_usage servers;
    // Acquires that needed a second round trip, to level the fencing counters.
    std::uint64_t raised = 0;
    // How the key was removed: EVALSHA, or the server's own command where it has one.
    std::string release_command;
    // The first failure, in words. Empty: none.
    std::string first_failure;
};

// Names of the resources of a run, one per loop; different in each process.
std::vector<std::string> resource_names(std::size_t in_flight);
// The key that the library uses for a resource.
std::string lock_key(const std::string& resource);

// Throws std::invalid_argument if the load cannot be run.
void require_valid(const load& work);

// User and system time of this process so far.
std::chrono::nanoseconds process_cpu_time();

} // namespace bench
