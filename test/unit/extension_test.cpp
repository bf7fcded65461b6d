#include "core/locks/extension.hpp"
#include "support/test.hpp"

#include <numeric>

namespace extension_test { namespace {

using namespace redlock;
using namespace redlock::core;

constexpr time_point now{1000s};
constexpr time_point lasts = now + 3s;    // what was confirmed before this round
constexpr time_point extended = now + 9s; // what is confirmed in it

struct master : vote_term {
    key_state found = key_state::unknown;
};

master that(key_state found, time_point blocks_until = never) {
    master out;
    out.confirm(blocks_until);
    out.forget();
    out.found = found;
    return out;
}

ruling rule(const std::vector<master>& masters) {
    return extension().rule(masters, masters.size(), quorum_of(masters.size()), false, now);
}

constexpr key_state kept = key_state::kept;
constexpr key_state healed = key_state::healed;
constexpr key_state missing = key_state::missing;
constexpr key_state foreign = key_state::owned_by_other;
constexpr key_state unknown = key_state::unknown;
constexpr key_state pending = key_state::pending;
constexpr key_state quarantined = key_state::quarantined;
constexpr key_state ineligible = key_state::ineligible;

TEST_CASE("an ineligible master does not block, as its vote may be another owner's") {
    CHECK(rule({that(kept), that(missing), that(ineligible, lasts)}) == ruling::failed);
    CHECK(rule({that(kept), that(kept), that(ineligible, lasts)}) == ruling::won);
}

TEST_CASE("a master that is silent blocks as long as what it confirmed lasts") {
    CHECK(rule({that(kept), that(missing), that(unknown, lasts)}) == ruling::heal);
    CHECK(rule({that(kept), that(missing), that(unknown, now + 1ns)}) == ruling::heal);
    CHECK(rule({that(kept), that(missing), that(unknown, now)}) == ruling::failed);
    CHECK(rule({that(kept), that(missing), that(unknown)}) == ruling::failed);
}

// What one master does in a round: its answer to EXTEND, what it answers to HEAL, and whether it
// had confirmed the key before.
struct plan {
    key_state answer = unknown;
    bool heals = true;
    bool confirmed = false;
};

struct outcome {
    bool won = false;
    std::vector<std::size_t> sent_heal;
    std::vector<time_point> until;
    std::vector<time_point> blocks_until;
    bool removal_seen = false;

    friend bool operator==(const outcome&, const outcome&) = default;
};

// A round as the engine leads it, in which the masters answer in that order. `pending` answers only
// after the round: not at all.
outcome
play(const std::vector<plan>& plans, const std::vector<std::size_t>& order, bool removal_seen) {
    const std::size_t quorum = quorum_of(plans.size());
    std::vector<master> masters(plans.size());
    for (std::size_t i = 0; i < plans.size(); ++i) {
        masters[i].found = pending;
        if (plans[i].confirmed) {
            masters[i].confirm(lasts);
        }
    }
    extension round{.active = true, .ttl = 10s};
    outcome out;
    out.removal_seen = removal_seen;
    std::vector<std::size_t> to_heal;
    const auto send_heals = [&] {
        for (std::size_t i = 0; i < masters.size(); ++i) {
            if (masters[i].found == missing) {
                masters[i].found = pending;
                to_heal.push_back(i);
                out.sent_heal.push_back(i);
            }
        }
    };
    const auto judge = [&] {
        ruling next = round.rule(masters, masters.size(), quorum, out.removal_seen, now);
        if (next == ruling::heal) {
            round.healing = true;
            send_heals();
            next = round.rule(masters, masters.size(), quorum, out.removal_seen, now);
        }
        if (next != ruling::open) {
            round.active = false;
            out.won = next == ruling::won;
            round.confirmed = out.won && !round.healing;
            if (round.confirmed) {
                send_heals();
            }
        }
    };
    const auto heal_all = [&] {
        for (const std::size_t i : std::exchange(to_heal, {})) {
            masters[i].found = plans[i].heals ? healed : unknown;
            if (plans[i].heals) {
                masters[i].confirm(extended);
            }
            if (round.active) {
                judge();
            }
        }
    };
    for (const std::size_t i : order) {
        const key_state answer = plans[i].answer;
        if (answer == pending) {
            continue;
        }
        masters[i].found = answer;
        if (answer == kept) {
            masters[i].confirm(extended);
        } else if (answer == quarantined) {
            masters[i].forget();
        } else if (answer == missing || answer == foreign) {
            out.removal_seen |= masters[i].remove(now);
        }
        if (round.active) {
            judge();
        } else if (round.confirmed) {
            send_heals();
        }
    }
    if (round.active && !round.healing) { // master_timeout
        for (master& one : masters) {
            one.found = one.found == pending ? unknown : one.found;
        }
        judge();
    }
    heal_all();
    std::ranges::sort(out.sent_heal);
    for (const master& one : masters) {
        out.until.push_back(one.until());
        out.blocks_until.push_back(one.blocks_until());
    }
    return out;
}

// The specification of a round whose answers are all known.
bool specified_to_win(const std::vector<plan>& plans, bool removal_seen) {
    const std::size_t quorum = quorum_of(plans.size());
    std::size_t there = 0;
    std::size_t blocking = 0;
    std::size_t healable = 0;
    for (const plan& one : plans) {
        removal_seen =
            removal_seen || (one.confirmed && (one.answer == missing || one.answer == foreign));
    }
    for (const plan& one : plans) {
        const bool silent = one.answer == unknown || one.answer == pending;
        there += one.answer == kept ? 1U : 0U;
        blocking +=
            one.answer == kept || one.answer == quarantined || (silent && one.confirmed) ? 1U : 0U;
        healable += one.answer == missing && one.heals ? 1U : 0U;
    }
    return there >= quorum
           || (!removal_seen && blocking >= plans.size() - quorum + 1
               && there + healable >= quorum);
}

// Tries a plan in all orders. Gives what is wrong, or nothing.
std::string fault_in(const std::vector<plan>& plans, bool removal_seen) {
    std::vector<std::size_t> order(plans.size());
    std::iota(order.begin(), order.end(), 0U);
    std::optional<outcome> first;
    do { // NOLINT(cppcoreguidelines-avoid-do-while)
        const outcome got = play(plans, order, removal_seen);
        if (got.won != specified_to_win(plans, removal_seen)) {
            return "the wrong outcome";
        }
        if (first && !(got == *first)) {
            return "the order of arrival matters";
        }
        first = got;
    } while (std::ranges::next_permutation(order).found);
    return "";
}

TEST_CASE("the order in which the answers arrive does not change what becomes of a round") {
    constexpr std::array kinds{kept, missing, foreign, quarantined, unknown, pending};
    const auto try_all = [](const std::vector<plan>& plans) {
        for (const bool removal_seen : {false, true}) {
            const std::string fault = fault_in(plans, removal_seen);
            if (!fault.empty()) {
                FAIL_CHECK(fault);
            }
        }
    };
    // Up to three masters: all answers, with what was before and what comes after.
    for (const std::size_t masters : {1U, 2U, 3U}) {
        std::size_t patterns = 1;
        for (std::size_t i = 0; i < masters; ++i) {
            patterns *= 4 * kinds.size();
        }
        for (std::size_t number = 0; number < patterns; ++number) {
            std::vector<plan> plans;
            for (std::size_t rest = number; plans.size() < masters; rest /= 4 * kinds.size()) {
                plans.push_back({kinds[rest % 6], rest / 6 % 2 == 0, rest / 12 % 2 == 0});
            }
            try_all(plans);
        }
    }
    // Four and five: the lease was held by a majority or by all, and one heal fails.
    for (const std::size_t masters : {4U, 5U}) {
        const std::size_t step = masters == 4 ? 1 : 13;
        const std::size_t patterns = masters == 4 ? 1296 : 7776;
        for (std::size_t number = 0; number < patterns; number += step) {
            std::vector<plan> plans;
            for (std::size_t rest = number; plans.size() < masters; rest /= 6) {
                const bool confirmed = number % 2 == 0 || plans.size() < quorum_of(masters);
                plans.push_back({kinds[rest % 6], plans.size() != 1, confirmed});
            }
            try_all(plans);
        }
    }
}

}} // namespace extension_test
