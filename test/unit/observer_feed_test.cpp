// What an observer receives, and that what it throws ends with the call.

#include "manager/observer_feed.hpp"
#include "support/test.hpp"

#include <mutex>
#include <thread>

namespace observer_feed_test { namespace {

using namespace redlock;
using detail::observer_feed;

struct notes : observer {
    void started(const operation& what) override { ids.push_back(what.id); }
    void ended(const operation& what, const error_code&, const diagnostics&) override {
        ids.push_back(what.id);
    }
    void abandoned(const held_lock&) override { throw std::runtime_error("not mine"); }
    void released(const held_lock&, release_result) override { throw 7; }

    std::vector<std::uint64_t> ids;
};

void made(net::report_queue& reports) {
    std::mutex guard;
    std::unique_lock lock(guard);
    reports.deliver(lock);
}

struct told {
    std::shared_ptr<notes> to = std::make_shared<notes>();
    std::vector<std::string> complaints;
    net::report_queue reports;
    observer_feed feed{
        to, reports, [this](const std::string& what) { complaints.push_back(what); }};

    void deliver() { made(reports); }
};

TEST_CASE("observer feed: operations are numbered from 1, and what is thrown counts and is said") {
    told mine;
    CHECK(mine.feed);
    CHECK(mine.feed.started({}) == 1);
    CHECK(mine.feed.started({}) == 2);
    mine.feed.report(&observer::ended, {.id = 1}, {}, diagnostics());
    CHECK(mine.to->ids.empty());
    mine.deliver();
    CHECK(mine.to->ids == std::vector<std::uint64_t>{1, 2, 1});
    CHECK(mine.feed.errors() == 0);
    mine.feed.report(&observer::abandoned, {});
    mine.feed.report(&observer::released, {}, release_result::released);
    mine.deliver();
    CHECK(mine.feed.errors() == 2);
    CHECK(
        mine.complaints
        == std::vector<std::string>{
            "the observer threw: not mine",
            "the observer threw: something that is not a std::exception"});
}

TEST_CASE("observer feed: what a call refers to is kept until it is made") {
    struct : observer {
        void started(const operation& what) override { seen = what.resource; }
        std::string seen;
    } one;
    net::report_queue reports;
    observer_feed feed(std::shared_ptr<observer>(std::shared_ptr<void>(), &one), reports, nullptr);
    {
        const std::string name = "a resource with a long name";
        feed.started({.resource = name});
    }
    made(reports);
    CHECK(one.seen == "a resource with a long name");
}

TEST_CASE("reports are made in order, those of calls within calls after them, despite exceptions") {
    std::mutex guard;
    net::report_queue reports;
    std::string seen;
    const auto add = [&](char name) { reports.add([&seen, name] { seen += name; }); };
    reports.add([&] {
        std::unique_lock lock(guard, std::try_to_lock);
        REQUIRE(lock.owns_lock());
        add('c');
        reports.deliver(lock); // as a call to the manager does
        seen += 'a';
    });
    reports.add([&] {
        seen += 'b';
        throw 7;
    });
    std::unique_lock lock(guard);
    reports.deliver(lock);
    CHECK(seen == "abc");
    CHECK(reports.empty());
}

TEST_CASE("a report for one thread is made by no other, and those after it wait") {
    net::report_queue reports;
    std::string seen;
    const auto me = std::this_thread::get_id();
    reports.add([&] { seen += 'a'; });
    reports.add_here([&] { seen += std::this_thread::get_id() == me ? 'b' : '?'; });
    reports.add([&] { seen += 'c'; });
    std::thread([&] { made(reports); }).join();
    CHECK(seen == "a");
    made(reports);
    CHECK(seen == "abc");
}

TEST_CASE("a thread waits until another has made what comes before its own reports") {
    std::mutex guard;
    net::report_queue reports;
    std::string seen;
    bool added = false;
    std::unique_lock lock(guard);
    reports.add_here([&] { seen += 'a'; });
    std::thread other([&] {
        std::unique_lock mine(guard);
        reports.add_here([&] { seen += 'b'; });
        added = true;
        reports.deliver(mine);
    });
    while (!added) { // then the other thread waits, as it has unlocked the guard
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
    }
    CHECK(seen.empty());
    reports.deliver(lock);
    lock.unlock();
    other.join();
    CHECK(seen == "ab");
    CHECK(reports.empty());
}

}} // namespace observer_feed_test
