// Scans of a pool, alone, and the search of an acquire for free slots in what they have found.

#include "core/waiting/slot_search.hpp"
#include "support/test.hpp"

namespace slot_search_test { namespace {

using namespace redlock::core;
using redlock::vote;

reply text(std::string_view value) {
    return {reply_type::string, 0, value, {}};
}

reply number(std::int64_t value) {
    return {reply_type::integer, value, {}, {}};
}

reply array(const std::vector<reply>& elements) {
    return {reply_type::array, static_cast<std::int64_t>(elements.size()), {}, elements};
}

// On the one master that there is, these are free.
slot_scan free_are(std::string_view slots) {
    slot_scan found;
    found.begin(1, 1, static_cast<std::uint32_t>(slots.size()), 1);
    found.asked(0);
    found.answered(0, 0, array({text(slots), number(-1)}), 1s);
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

std::vector<std::uint32_t> chosen(const slot_scan& found, std::size_t most) {
    jitter random(7);
    std::vector<std::uint32_t> out{99};
    found.choose(most, random, out);
    return out;
}

TEST_CASE("a scan that found nothing waits for all outstanding replies") {
    slot_scan found;
    found.begin(3, 2, 600, 1);
    for (std::size_t i = 0; i < 3; ++i) {
        found.asked(i);
    }
    const std::string none(512, '0');
    const std::string rest(88, '0');
    const auto told = [&](std::size_t master, unsigned command) {
        const std::string& held = command == 0 ? none : rest;
        found.answered(master, command, array({text(held), number(-1)}), 1s);
    };
    for (std::size_t i = 0; i < 2; ++i) {
        told(i, 0);
        CHECK(found.complete() == i);
        told(i, 1);
    }
    CHECK(found.complete() == 2);
    CHECK(!found.decided());
    told(2, 0);
    CHECK(!found.decided());
    found.failed(2, vote::unreachable, "reset");
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

TEST_CASE("a scan asks for 512 slots at a time, and is decided when a majority has enough") {
    slot_scan scan;
    scan.begin(3, 2, 600, 1);
    REQUIRE(scan.commands() == 2);
    CHECK(scan.count_of(0) == 512);
    CHECK(slot_scan::first_of(1) == 512);
    CHECK(scan.count_of(1) == 88);
    for (const std::size_t master : {0U, 1U, 2U}) {
        scan.asked(master);
    }
    const std::string held(512, '0');
    const std::string last = std::string(87, '0') + '1';
    for (const std::size_t master : {0U, 1U}) {
        CHECK(!scan.decided());
        scan.answered(master, 0, array({text(held), number(900)}), 1s);
        scan.answered(master, 1, array({text(last), number(300)}), 1s);
    }
    CHECK(scan.decided());
    CHECK(scan.found() == 1);
    CHECK(scan.votes.left(0) == 300ms); // the earliest end of a lease

    scan.explain();
    CHECK(scan.votes.of[0].said == vote::held);
    CHECK(scan.votes.text(0) == "1 of 600 slots are free there");
    CHECK(scan.votes.of[2].said == vote::timed_out);
}

TEST_CASE("a reply of another size or with an impossible lease is not believed") {
    slot_scan scan;
    scan.begin(3, 2, 4, 1);
    for (const std::size_t master : {0U, 1U, 2U}) {
        scan.asked(master);
    }
    scan.answered(0, 0, array({text("111"), number(1)}), 1s);
    CHECK(scan.votes.of[0].said == vote::error);
    CHECK(scan.votes.text(0) == "unexpected reply");
    scan.answered(1, 0, array({text("0000"), number(5000)}), 1s);
    CHECK(scan.votes.left(1) == redlock::core::lease_unknown);
    scan.failed(2, vote::unreachable, "reset");
    CHECK(scan.votes.of[2].said == vote::unreachable);
    CHECK(scan.votes.text(2) == "reset");
    CHECK(scan.decided());
    CHECK(scan.complete() == 1);
}

}} // namespace slot_search_test
