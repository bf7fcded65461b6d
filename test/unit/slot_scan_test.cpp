#include "core/waiting/slot_search.hpp"
#include "support/test.hpp"

namespace slot_scan_test { namespace {

using namespace redlock;
using namespace redlock::core;

reply text(std::string_view value) {
    reply out;
    out.type = reply_type::string;
    out.text = value;
    return out;
}

reply number(std::int64_t value) {
    reply out;
    out.type = reply_type::integer;
    out.integer = value;
    return out;
}

reply array(const std::vector<reply>& elements) {
    reply out;
    out.type = reply_type::array;
    out.integer = static_cast<std::int64_t>(elements.size());
    out.elements = elements;
    return out;
}

TEST_CASE("a scan asks for 512 slots at a time, and is decided when a majority has enough") {
    slot_scan scan;
    scan.begin(3, 2, 600, 1, false);
    REQUIRE(scan.commands() == 2);
    CHECK(scan.count_of(0) == 512);
    CHECK(slot_scan::first_of(1) == 512);
    CHECK(scan.count_of(1) == 88);
    for (const std::size_t master : {0U, 1U, 2U}) {
        scan.found.asked(master, 2);
    }
    const std::string held(512, '0');
    const std::string last = std::string(87, '0') + '1';
    for (const std::size_t master : {0U, 1U}) {
        CHECK(!scan.decided());
        scan.answered(master, 0, false, array({text(held), number(900)}), 1s);
        scan.answered(master, 1, false, array({text(last), number(300)}), 1s);
    }
    CHECK(scan.decided());
    CHECK(scan.found.found() == 1);
    CHECK(scan.votes.left(0) == 300ms); // the earliest end of a lease

    scan.explain();
    CHECK(scan.votes.of[0].said == vote::held);
    CHECK(scan.votes.text(0) == "1 of 600 slots are free there");
    CHECK(scan.votes.of[2].said == vote::timed_out);
}

TEST_CASE("a reply of another size or with an impossible lease is not believed") {
    slot_scan scan;
    scan.begin(3, 2, 4, 1, false);
    for (const std::size_t master : {0U, 1U, 2U}) {
        scan.found.asked(master, 1);
    }
    scan.answered(0, 0, false, array({text("111"), number(1)}), 1s);
    CHECK(scan.votes.of[0].said == vote::error);
    CHECK(scan.votes.text(0) == "unexpected reply");
    scan.answered(1, 0, false, array({text("0000"), number(5000)}), 1s);
    CHECK(scan.votes.left(1) == redlock::core::lease_unknown);
    scan.dropped(2, "reset");
    CHECK(scan.votes.of[2].said == vote::unreachable);
    CHECK(scan.votes.text(2) == "reset");
    CHECK(scan.decided());
    CHECK(scan.found.complete() == 1);
}

TEST_CASE("the status of a pool has the owner that a majority has") {
    slot_scan scan;
    scan.begin(3, 2, 2, 2, true);
    for (const std::size_t master : {0U, 1U, 2U}) {
        scan.found.asked(master, 1);
    }
    const reply nil;
    scan.answered(0, 0, true, array({text("a"), nil}), 1s);
    scan.answered(1, 0, true, array({text("a"), nil}), 1s);
    CHECK(!scan.decided()); // the status awaits all
    scan.answered(2, 0, true, array({nil, text("b")}), 1s);
    REQUIRE(scan.decided());
    const redlock::lock_status status = scan.status(2);
    CHECK(status.state == redlock::lock_state::free);
    for (const redlock::master_vote& one : status.masters) {
        CHECK(one.vote == vote::held);
        CHECK(one.text == "1 of 2 slots are free there");
    }
    CHECK(status.slots[0].state == redlock::lock_state::held);
    CHECK(status.slots[1].state == redlock::lock_state::free);
}

}} // namespace slot_scan_test
