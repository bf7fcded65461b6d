// The search of an acquire for free slots, alone: what scans have found, and what it tries.

#include "core/waiting/slot_search.hpp"
#include "support/test.hpp"

namespace slot_search_test { namespace {

using namespace redlock::core;

// On the one master that there is, these are free.
slot_tally free_are(std::string_view slots) {
    slot_tally found;
    found.reset(1, 1, static_cast<std::uint32_t>(slots.size()));
    found.asked(0, 1);
    found.told(0, 0, slots);
    return found;
}

TEST_CASE("slot search: what was free is forgotten in a pause, and passed on within a pool") {
    jitter random{3};
    slot_search served(4, 1);
    served.scanned(free_are("1100"), random);
    slot_search smaller(3, 1); // some of those it does not have
    smaller.take_over(served);
    CHECK(!smaller.has_next());
    slot_search next(4, 1);
    next.take_over(served);
    CHECK(next.has_next());
    CHECK(!served.has_next());
    next.stop();
    CHECK(!next.has_next());
}

std::vector<std::uint32_t> chosen(const slot_tally& found, std::size_t most) {
    jitter random(7);
    std::vector<std::uint32_t> out{99};
    found.choose(most, random, out);
    return out;
}

TEST_CASE("a scan that found nothing waits for all outstanding replies") {
    slot_tally found;
    found.reset(3, 2, 600);
    for (std::size_t i = 0; i < 3; ++i) {
        found.asked(i, 2);
    }
    const std::string none(512, '0');
    const std::string rest(88, '0');
    for (std::size_t i = 0; i < 2; ++i) {
        found.told(i, 0, none);
        CHECK(found.complete() == i);
        found.told(i, 512, rest);
    }
    CHECK(found.complete() == 2);
    CHECK(!found.decided());
    CHECK(found.owes(2));
    found.told(2, 0, none);
    found.failed(2);
    CHECK(found.decided());
    CHECK(found.complete() == 2); // half a reply does not count
    CHECK(chosen(found, 9).empty());
}

TEST_CASE("slot search: after eight refusals it is over, whatever scans came between") {
    jitter random{3};
    slot_search search(100, 1);
    const auto left = [&] {
        int count = 0;
        std::vector<std::uint32_t> tried;
        for (search.scanned(free_are(std::string(100, '1')), random); search.has_next(); ++count) {
            search.next(tried);
        }
        return count;
    };
    CHECK(left() == 8);
    for (int i = 0; i < 5; ++i) {
        CHECK(search.refused());
    }
    CHECK(left() == 3);
    CHECK(search.refused());
    CHECK(search.refused());
    CHECK(!search.refused());
    CHECK(left() == 0);
    CHECK(!search.refused());
    CHECK(left() == 0);
    search.stop(); // it has paused
    CHECK(left() == 8);
}

}} // namespace slot_search_test
