// The search of an acquire for free slots, alone: what it tries, and when it gives up.

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

std::vector<std::uint32_t> next_of(slot_search& search) {
    std::vector<std::uint32_t> out;
    search.next(out);
    return out;
}

TEST_CASE("slot search: it tries the free slots one after the other, and then needs a scan") {
    jitter random{3};
    slot_search search(6, 1);
    CHECK(!search.has_next());
    REQUIRE(search.scanned(free_are("010110"), random));
    std::set<std::uint32_t> tried;
    for (int i = 0; i < 3; ++i) {
        REQUIRE(search.has_next());
        tried.insert(next_of(search).at(0));
    }
    CHECK(tried == std::set<std::uint32_t>{1, 3, 4});
    CHECK(!search.has_next());
    CHECK(!search.scanned(free_are("000000"), random));
}

TEST_CASE("slot search: several slots are named in order, and none is left over") {
    jitter random{3};
    slot_search search(7, 3);
    CHECK(search.wants() == 3);
    CHECK(!search.scanned(free_are("0101000"), random));
    REQUIRE(search.scanned(free_are("1111111"), random));
    std::set<std::uint32_t> tried;
    for (int i = 0; i < 2; ++i) {
        const std::vector<std::uint32_t> slots = next_of(search);
        REQUIRE(slots.size() == 3);
        CHECK(std::ranges::is_sorted(slots));
        tried.insert(slots.begin(), slots.end());
    }
    CHECK(tried.size() == 6);  // none twice
    CHECK(!search.has_next()); // one is left, which is too few
}

TEST_CASE("slot search: after eight refusals it is over, whatever scans came between") {
    jitter random{3};
    slot_search search(100, 1);
    const auto left = [&] {
        int count = 0;
        for (search.scanned(free_are(std::string(100, '1')), random); search.has_next(); ++count) {
            next_of(search);
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

}} // namespace slot_search_test
