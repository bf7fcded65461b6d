// What the makers of plans share: masters, clients and moments of faults.

#pragma once

#include "plan.hpp"
#include "random.hpp"

#include <algorithm>
#include <initializer_list>

namespace simulation {

inline int any_master(const plan& what, generator& random) {
    return static_cast<int>(random.below(what.masters.size()));
}

inline int any_client(const plan& what, generator& random) {
    return static_cast<int>(random.below(what.clients.size()));
}

/// -1, for all of them, in this percentage of cases.
inline int master_or_all(const plan& what, generator& random, unsigned percent = 40) {
    return random.percent(percent) ? -1 : any_master(what, random);
}

inline int client_or_all(const plan& what, generator& random, unsigned percent = 40) {
    return random.percent(percent) ? -1 : any_client(what, random);
}

inline fault_kind any_of(generator& random, std::initializer_list<fault_kind> kinds) {
    return kinds.begin()[random.below(kinds.size())];
}

inline nanos longest_lease(const plan& what) {
    return what.max_ttl_ms() * ms;
}

inline bool all_guarded(const plan& what) {
    return std::ranges::all_of(
        what.clients, [](const client_plan& one) { return one.speaks == speech::guarded; });
}

/// A fault that begins and ends while faults are allowed.
inline fault& add(plan& what, generator& random, fault one, nanos longest) {
    one.at = random.between(10 * ms, what.faults_end - 50 * ms);
    one.span = random.between(ms, std::min(longest, what.faults_end - one.at - 10 * ms));
    return what.faults.emplace_back(one);
}

/// A client that crashes or closes does so before the next one starts.
inline void end_in_time(const plan& what, fault& one) {
    if (one.kind == fault_kind::client_crash || one.kind == fault_kind::client_close) {
        one.at = std::min(one.at, what.faults_end - 200 * ms);
        one.span = std::max(one.span, (what.master_timeout_ms + 20) * ms);
    }
}

template <typename Adder>
void add_some(plan& what, generator& random, std::uint64_t most, Adder adder) {
    for (std::uint64_t left = random.below(most + 1); left > 0; --left) {
        adder(what, random);
    }
}

} // namespace simulation
