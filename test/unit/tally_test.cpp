#include "core/base/validity.hpp"
#include "core/locks/tally.hpp"
#include "support/test.hpp"

#include <numeric>

namespace tally_test { namespace {

using namespace redlock;
using namespace redlock::core;
using redlock::core::tally;

constexpr std::array kinds{
    vote::granted, vote::held, vote::error, vote::timed_out, vote::unreachable};

struct counts {
    std::size_t granted = 0;
    std::size_t held = 0;
    std::size_t failed = 0;

    void add(vote what) {
        ++(what == vote::granted ? granted : what == vote::held ? held : failed);
    }
    std::size_t all() const { return granted + held + failed; }
};

// The specification, for a round in which everybody has voted.
verdict outcome(std::size_t masters, counts votes) {
    const std::size_t majority = (masters - masters % 2) / 2 + 1;
    if (votes.granted >= majority) {
        return verdict::won;
    }
    if (votes.held >= 1 && votes.granted + votes.held >= majority) {
        return verdict::contended;
    }
    return verdict::no_quorum;
}

// What every completion of the missing votes gives, if they all give the same.
std::optional<verdict> certain(std::size_t masters, counts so_far) {
    std::optional<verdict> first;
    const std::size_t missing = masters - so_far.all();
    for (std::size_t granted = 0; granted <= missing; ++granted) {
        for (std::size_t held = 0; granted + held <= missing; ++held) {
            const verdict one = outcome(
                masters,
                {so_far.granted + granted,
                 so_far.held + held,
                 so_far.failed + missing - granted - held});
            if (first && *first != one) {
                return std::nullopt;
            }
            first = one;
        }
    }
    return first;
}

std::vector<vote> pattern_of(std::size_t masters, std::size_t number) {
    std::vector<vote> votes;
    for (std::size_t i = 0; i < masters; ++i) {
        votes.push_back(kinds[number % kinds.size()]);
        number /= kinds.size();
    }
    return votes;
}

std::size_t patterns(std::size_t masters) {
    std::size_t count = 1;
    for (std::size_t i = 0; i < masters; ++i) {
        count *= kinds.size();
    }
    return count;
}

std::string in_words(const std::vector<vote>& votes, const std::vector<std::size_t>& order) {
    std::string out;
    for (const std::size_t i : order) {
        out += std::string(to_string(votes[i])) + " ";
    }
    return out;
}

// Plays one round in one order. Gives what is wrong with it, or nothing.
std::string fault_in(const std::vector<vote>& votes, const std::vector<std::size_t>& order) {
    const std::size_t masters = votes.size();
    tally played(masters, quorum_of(masters));
    counts so_far;
    verdict before = verdict::open;
    for (std::size_t i = 0; i <= masters; ++i) {
        const verdict now = played.decide();
        if (before != verdict::open && now != before) {
            return "a verdict changed: " + in_words(votes, order);
        }
        if (certain(masters, so_far).value_or(verdict::open) != now) {
            return "not decided at the deciding vote: " + in_words(votes, order);
        }
        if (played.granted() != so_far.granted || played.held() != so_far.held
            || played.pending() != masters - i) {
            return "counted wrongly: " + in_words(votes, order);
        }
        before = now;
        if (i < masters) {
            played.add(votes[order[i]]);
            so_far.add(votes[order[i]]);
        }
    }
    return before == outcome(masters, so_far) ? "" : "wrong verdict: " + in_words(votes, order);
}

TEST_CASE(
    "every pattern of votes has the verdict of the specification, which comes at the deciding "
    "vote and stays, in every order of arrival") {
    for (std::size_t masters = 1; masters <= 7; ++masters) {
        std::vector<std::size_t> order(masters);
        std::iota(order.begin(), order.end(), 0U);
        std::string fault;
        std::size_t played = 0;
        do {
            for (std::size_t number = 0; number < patterns(masters) && fault.empty(); ++number) {
                fault = fault_in(pattern_of(masters, number), order);
                ++played;
            }
        } while (masters <= 5 && std::next_permutation(order.begin(), order.end()));
        CHECK(fault == "");
        CHECK((masters != 5 || played == 3125 * 120));
    }
}

}} // namespace tally_test
