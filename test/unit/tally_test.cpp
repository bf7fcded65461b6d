#include "core/base/validity.hpp"
#include "core/locks/tally.hpp"
#include "support/test.hpp"

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

// Adds each vote to what was played so far, and so on until everybody has voted.
void play_on(std::size_t masters, const tally& played, counts so_far, verdict before) {
    const verdict now = played.decide();
    const bool stays = before == verdict::open || now == before;
    const bool counted = played.granted() == so_far.granted && played.held() == so_far.held;
    if (!stays || !counted || now != certain(masters, so_far).value_or(verdict::open)) {
        FAIL_CHECK(
            masters << " masters: " << so_far.granted << " granted, " << so_far.held << " held, "
                    << so_far.failed << " failed");
    }
    if (so_far.all() == masters) {
        return;
    }
    for (const vote what : kinds) {
        tally next = played;
        next.add(what);
        counts with = so_far;
        with.add(what);
        play_on(masters, next, with, now);
    }
}

TEST_CASE(
    "every pattern of votes has the verdict of the specification, which comes at the deciding "
    "vote and stays, in every order of arrival") {
    for (std::size_t masters = 1; masters <= 7; ++masters) {
        play_on(masters, tally(masters, quorum_of(masters)), {}, verdict::open);
    }
}

}} // namespace tally_test
