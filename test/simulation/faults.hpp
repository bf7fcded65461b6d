// A plan that is being made: masters, clients and moments of faults are chosen at random.

#pragma once

#include "plan.hpp"
#include "random.hpp"

#include <algorithm>
#include <initializer_list>

namespace simulation {

using enum fault_kind;

struct draft : plan, generator {
    explicit draft(std::uint64_t number) : generator(number, 1) { seed = number; }

    /// What follows is drawn from another stream of the same seed.
    void draw_from(std::uint64_t stream) { generator::operator=(generator(seed, stream)); }

    int any_master() { return static_cast<int>(below(masters.size())); }
    int any_client() { return static_cast<int>(below(clients.size())); }
    /// -1, for all of them, in this percentage of cases.
    int master_or_all(unsigned chance = 40) { return percent(chance) ? -1 : any_master(); }
    int client_or_all(unsigned chance = 40) { return percent(chance) ? -1 : any_client(); }
    fault_kind any_of(std::initializer_list<fault_kind> kinds) {
        return kinds.begin()[below(kinds.size())];
    }

    nanos longest_lease() const noexcept { return max_ttl_ms() * ms; }
    bool all_guarded() const {
        return std::ranges::count(clients, speech::plain, &client_plan::speaks) == 0;
    }

    /// A fault that begins and ends while faults are allowed.
    fault& add(fault one, nanos longest) {
        one.at = between(10 * ms, faults_end - 50 * ms);
        one.span = between(ms, std::min(longest, faults_end - one.at - 10 * ms));
        return faults.emplace_back(one);
    }
    fault& add(fault one) { return add(one, longest_lease()); }
    /// A client that crashes or closes does so before the next one starts.
    void end_in_time(fault& one) const {
        if (one.kind == client_crash || one.kind == client_close) {
            one.at = std::min(one.at, faults_end - 200 * ms);
            one.span = std::max(one.span, (master_timeout_ms + 20) * ms);
        }
    }
    template <typename Adder>
    void add_some(std::uint64_t most, Adder adder) {
        for (std::uint64_t left = below(most + 1); left > 0; --left) {
            adder(*this);
        }
    }
};

} // namespace simulation
