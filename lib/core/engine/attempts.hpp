// The attempts in flight (attempt.hpp): makes their claims, sends their commands, and executes what
// each decides, until it is won or lost. That is returned, for the owner of the acquire to act on.

#pragma once

#include "core/waiting/operation.hpp"
#include "essentials.hpp"

#include <string_view>

namespace redlock::core {

class attempts : essentials {
public:
    explicit attempts(const essentials& with) noexcept : essentials(with) {}

    /// Makes the claim of an attempt of `wanted`. `token`: the caller's own; empty: a fresh one.
    claim& create(operation& wanted, std::string_view token, time_point now);

    /// \name Each returns `open`, `won` or `lost`
    /// \{
    /// The next attempt of an acquire.
    attempt::decision begin(operation& wanted, std::string_view token, time_point now);
    /// An attach to the lock with that token: a claim that begins with an extension.
    attempt::decision attach(operation& wanted, std::string_view token, time_point now);
    /// A local handoff of a lease with fencing until `deadline`: a new attempt on the same claim.
    attempt::decision accept(operation& next, claim& lease, time_point deadline, time_point now);
    /// The time of an attempt is up.
    attempt::decision due(operation& wanted, claim& attempt, time_point now);
    /// Executes what an attempt has decided, until it is open, won or lost.
    attempt::decision
    follow(operation& wanted, claim& attempt, attempt::decision next, time_point now);
    /// \}

    /// Counts a reply to its command, a raise, or the extension of an attach. Unless it is open,
    /// call `follow`.
    attempt::decision answered(claim& attempt, const arrival& at, const answer& got);

    /// Sends a command again, because the master refused its variant.
    void again(claim& attempt, const arrival& at, bool alone);

private:
    void name_intent(operation& wanted);
    void refuse_absent(claim& attempt, vote_counts master_metrics::*counts);
    void ask_masters(operation& wanted, claim& attempt, std::size_t arbiter, time_point now);
    void give_up_in_time(operation& wanted, const claim& attempt, time_point now);
    attempt::decision acquired(claim& attempt, const arrival& at, const answer& got);
    attempt::decision raised(claim& attempt, const arrival& at, const answer& got);
    attempt::decision extended(claim& attempt, const arrival& at, const answer& got);
    attempt::decision
    raise(operation& wanted, claim& attempt, const attempt::decision& what, time_point now);
};

} // namespace redlock::core
