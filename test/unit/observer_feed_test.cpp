// What an observer receives, and that what it throws ends with the call.

#include "observer_feed.hpp"

#include <catch2/catch_test_macros.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace observer_feed_test {

namespace {

using namespace redlock;
using detail::observer_feed;

struct notes : observer {
    void started(const operation_start& what) override { ids.push_back(what.id); }
    void ended(const operation_end& what, const diagnostics& votes) override {
        ids.push_back(what.id);
        words = votes.message;
    }
    void abandoned(const held_lock&) override { throw std::runtime_error("not mine"); }
    void released(const held_lock&, release_result) override { throw 7; }

    std::vector<std::uint64_t> ids;
    std::string words;
};

struct told {
    std::shared_ptr<notes> to = std::make_shared<notes>();
    std::vector<std::string> complaints;
    observer_feed feed{to, [this](const std::string& what) { complaints.push_back(what); }};
};

void explain(diagnostics& out) {
    out.message = "so it ended";
}

} // namespace

TEST_CASE("observer feed: operations are numbered from 1, and what is thrown counts and is said") {
    told mine;
    CHECK(mine.feed);
    CHECK(mine.feed.started({}) == 1);
    CHECK(mine.feed.started({}) == 2);
    mine.feed.ended({.id = 1}, diagnostics());
    CHECK(mine.to->ids == std::vector<std::uint64_t>{1, 2, 1});
    CHECK(mine.feed.errors() == 0);
    mine.feed.abandoned({});
    mine.feed.released({}, release_result::released);
    CHECK(mine.feed.errors() == 2);
    CHECK(
        mine.complaints
        == std::vector<std::string>{
            "the observer threw: not mine",
            "the observer threw: something that is not a std::exception"});
}

TEST_CASE("observer feed: without an observer nothing is numbered") {
    observer_feed feed(nullptr, nullptr);
    CHECK(!feed);
    CHECK(feed.started({}) == 0);
    feed.acquired({});
    CHECK(feed.errors() == 0);
}

TEST_CASE("observer feed: an end is put into words for the caller or the observer, else not") {
    told mine;
    diagnostics out;
    mine.feed.ended(&out, {.id = 1}, explain);
    CHECK(out.message == "so it ended");
    CHECK(mine.to->words == "so it ended");
    mine.to->words.clear();
    mine.feed.ended(nullptr, {.id = 2}, explain);
    CHECK(mine.to->words == "so it ended");

    observer_feed nobody(nullptr, nullptr);
    diagnostics alone;
    nobody.ended(&alone, {.id = 1}, explain);
    CHECK(alone.message == "so it ended");
    nobody.ended(nullptr, {.id = 1}, [](diagnostics&) { FAIL("nobody reads it"); });
}

} // namespace observer_feed_test
