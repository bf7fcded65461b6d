#include "core/base/timers.hpp"
#include "support/test.hpp"

#include <random>

namespace timers_test { namespace {

using namespace redlock::core;
using redlock::time_point;

time_point at(int second) {
    return time_point(std::chrono::seconds(second));
}

using model = std::multimap<time_point, timer*>;

/// The earliest timer that is due, after as many looks as necessary; null if none is.
timer* take(timers& all, time_point now) {
    while (all.next() <= now && all.next() != forever) {
        if (timer* const due = all.pop(now)) {
            return due;
        }
    }
    return nullptr;
}

void take_out(model& expected, timer& entry) {
    std::erase_if(expected, [&](const auto& one) { return one.second == &entry; });
}

TEST_CASE("timers agree with a sorted map, whatever is done to them") {
    std::mt19937 random(11);
    for (int turn = 0; turn < 50; ++turn) {
        timers all;
        model expected;
        std::array<timer, 24> entries;
        for (int i = 0; i < 500; ++i) {
            timer& one = entries[random() % entries.size()];
            const time_point when = at(static_cast<int>(random() % 30));
            switch (random() % 5) {
            case 0:
                all.cancel(one);
                take_out(expected, one);
                break;
            case 1:
                if (timer* const due = take(all, when)) {
                    REQUIRE(due->due == expected.begin()->first);
                    REQUIRE(due->due <= when);
                    take_out(expected, *due);
                } else {
                    REQUIRE((expected.empty() || expected.begin()->first > when));
                }
                break;
            case 2:
                all.remove(one);
                take_out(expected, one);
                REQUIRE(one.place == timer::idle);
                break;
            default:
                all.set(one, when);
                take_out(expected, one);
                expected.emplace(when, &one);
            }
            REQUIRE(all.next() <= (expected.empty() ? forever : expected.begin()->first));
            REQUIRE((all.next() == forever) == expected.empty());
        }
    }
}

}} // namespace timers_test
