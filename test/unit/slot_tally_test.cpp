// What a scan makes of the masters' answers: which slots are free, and which owners have the
// others.

#include "core/waiting/slot_search.hpp"
#include "support/test.hpp"

namespace census_test { namespace {

namespace core = redlock::core;
using redlock::lock_state;

std::vector<std::uint32_t> chosen(const core::slot_tally& found, std::size_t most) {
    core::jitter random(7);
    std::vector<std::uint32_t> out{99};
    found.choose(most, random, out);
    return out;
}

TEST_CASE("a slot is worth asking for where it is free on a majority") {
    core::slot_tally found;
    found.reset(3, 2, 4);
    for (std::size_t i = 0; i < 3; ++i) {
        found.asked(i, 1);
    }
    found.told(0, 0, "1100");
    CHECK(found.found() == 0);
    CHECK(!found.decided());
    found.told(1, 0, "1010");
    CHECK(found.found() == 1);
    CHECK(found.decided());
    CHECK(chosen(found, 9) == std::vector<std::uint32_t>{0});
    found.told(2, 0, "0110");
    CHECK(found.over());
    CHECK(found.complete() == 3);
    CHECK(found.free_on(2) == 2);
    CHECK(std::ranges::is_permutation(chosen(found, 9), std::vector<std::uint32_t>{0, 1, 2}));
}

TEST_CASE("a scan that found nothing waits for all outstanding replies") {
    core::slot_tally found;
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

TEST_CASE("each free slot is chosen about as often as the others") {
    core::slot_tally found;
    found.reset(1, 1, 10);
    found.asked(0, 1);
    found.told(0, 0, "1111111111");
    core::jitter random(1);
    std::vector<int> first(10);
    std::vector<std::uint32_t> some;
    for (int i = 0; i < 10'000; ++i) {
        found.choose(3, random, some);
        REQUIRE(some.size() == 3);
        CHECK(std::set<std::uint32_t>(some.begin(), some.end()).size() == 3);
        ++first[some[0]];
    }
    for (const int times : first) {
        CHECK(times > 800);
        CHECK(times < 1200);
    }
}

TEST_CASE("the owner of a slot is the one that a majority reports") {
    CHECK(core::judge_slot({"a", "a", "b"}, 2).state == lock_state::held);
    CHECK(
        core::judge_slot({"a", "b", "b"}, 2).owner_digest
        == core::judge_slot({"b", "b"}, 2).owner_digest);
    CHECK(core::judge_slot({"a", "b", ""}, 2).state == lock_state::undecided);
    CHECK(core::judge_slot({"", "a", ""}, 2).state == lock_state::free);
    CHECK(core::judge_slot({"a"}, 2).state == lock_state::undecided);
    CHECK(core::judge_slot({}, 2).state == lock_state::undecided);
}

TEST_CASE("a scan for several slots goes on until it has found enough, or all have replied") {
    core::slot_tally found;
    found.reset(3, 2, 2, 2);
    for (std::size_t i = 0; i < 3; ++i) {
        found.asked(i, 1);
    }
    found.told(0, 0, "10");
    found.told(1, 0, "11");
    CHECK(!found.decided()); // the third may say that the second slot is free
    found.told(2, 0, "01");
    CHECK(found.decided());
    CHECK(found.found() == 2);
}

}} // namespace census_test
