// A manager of several quorums before it runs: what is refused, and who has what.
#include <redlock/sharded.hpp>

#include <boost/asio/io_context.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sharded_test {

using namespace redlock;

namespace {

named_quorum quorum(std::string name, const std::string& host) {
    named_quorum out;
    out.name = std::move(name);
    for (const char* const number : {"1", "2", "3"}) {
        out.config.masters.emplace_back("redis://" + host + number);
    }
    return out;
}

sharded_config good() {
    sharded_config out;
    out.quorums = {quorum("east", "e"), quorum("west", "w")};
    return out;
}

void check_refused(
    const std::function<void(sharded_config&)>& change,
    std::initializer_list<std::string_view> parts) {
    sharded_config bad = good();
    change(bad);
    std::string reason = "old";
    CHECK(validate(bad, reason) == errc::invalid_config);
    CAPTURE(reason);
    for (const std::string_view part : parts) {
        CAPTURE(part);
        CHECK(reason.find(part) != std::string::npos);
    }
    boost::asio::io_context io;
    CHECK_THROWS_WITH(sharded_manager(io.get_executor(), bad), "redlock: " + reason);
}

} // namespace

TEST_CASE("several quorums are accepted, and warned of by name") {
    std::string reason = "old";
    CHECK(!validate(good(), reason));
    CHECK(reason == "");
    sharded_config even = good();
    even.quorums[1].config.masters.pop_back();
    even.quorums[1].config.quarantine = quarantine::off;
    CHECK(!validate(even, reason));
    CHECK(reason.starts_with("quorum 'west': 2 masters"));
    CHECK(reason.find("\nquorum 'west': quarantine is off") != std::string::npos);
    CHECK(reason.find("east") == std::string::npos);
}

TEST_CASE("names of quorums are plain, and each is there once") {
    check_refused([](auto& c) { c.quorums.clear(); }, {"0 quorums", "1 to 64"});
    check_refused(
        [](auto& c) {
            while (c.quorums.size() < 65) {
                const std::string name = "q" + std::to_string(c.quorums.size());
                c.quorums.push_back(quorum(name, name + "-"));
            }
        },
        {"65 quorums", "1 to 64"});
    for (const std::string& name :
         {std::string(),
          std::string("a b"),
          std::string("\xc3\xa4"),
          std::string("a\0b", 3),
          std::string(65, 'x')}) {
        check_refused([&](auto& c) { c.quorums[1].name = name; }, {"1 to 64 visible characters"});
        check_refused([&](auto& c) { c.hand_over = {name}; }, {"hand_over", "visible"});
    }
    check_refused([](auto& c) { c.quorums[1].name = "east"; }, {"'east' is twice", "once"});
    check_refused([](auto& c) { c.hand_over = {"x", "y", "x"}; }, {"'x' is twice", "hand_over"});
}

TEST_CASE("what is wrong with one quorum is told with its name") {
    check_refused(
        [](auto& c) { c.quorums[1].config.masters.clear(); }, {"quorum 'west': 0 masters"});
    check_refused(
        [](auto& c) { c.quorums[0].config.max_ttl = std::chrono::milliseconds(1); },
        {"quorum 'east': max_ttl"});
}

TEST_CASE("a server belongs to one quorum, whatever the user or the database") {
    check_refused(
        [](auto& c) { c.quorums[1].config.masters[2] = "redis://me:s3cret@e1/4"; },
        {"'east' and 'west'", "'e1:6379'"});
    check_refused(
        [](auto& c) {
            c.quorums[0].config.masters[0] = "unix:///run/redis.sock";
            c.quorums[1].config.masters[1] = "unix:///run/redis.sock?db=1";
        },
        {"'/run/redis.sock'"});
}

TEST_CASE("a manager knows the home of each resource") {
    boost::asio::io_context io;
    sharded_manager manager(io.get_executor(), good());
    CHECK(manager.quorums() == std::vector<std::string>{"east", "west"});
    CHECK(manager.quorum_of("jobs/nightly") == "west");
    CHECK(manager.manager_of("jobs/nightly").get_health().masters[0].endpoint == "w1:6379");
    CHECK(manager.quorum_of("a") == "east");
    CHECK(manager.manager_of("a").get_health().masters[0].endpoint == "e1:6379");
    CHECK_FALSE(manager.moving("a"));
    CHECK_FALSE(manager.get_health().ready);
    CHECK(to_string(manager.get_health()).starts_with("0 of 2 quorums ready: east: not ready"));
    CHECK(manager.get_metrics()[1].quorum == "west");
}

TEST_CASE("during a hand-over, what has another home in the other set is not acquired") {
    boost::asio::io_context io;
    sharded_config with = good();
    with.hand_over = {"west", "east", "north"};
    sharded_manager manager(io.get_executor(), with);
    REQUIRE(manager.moving("b")); // to the north
    CHECK_FALSE(manager.moving("jobs/nightly"));
    std::optional<error_code> moved;
    std::optional<error_code> stayed;
    diagnostics why;
    acquire_options patient;
    patient.wait = wait_for::forever();
    manager.async_acquire("b", patient, why, [&](error_code error, lock mine) {
        CHECK_FALSE(mine.valid());
        moved = error;
    });
    manager.async_acquire("jobs/nightly", patient, [&](error_code error, lock) { stayed = error; });
    CHECK_FALSE(moved); // never inside the initiating function
    io.run();
    CHECK(moved == errc::moving);
    CHECK(moved == condition::unavailable);
    CHECK(why.message == error_code(errc::moving).message());
    CHECK(stayed == errc::not_running);
}

TEST_CASE("an operation that is begun when its manager is gone finds it closed") {
    boost::asio::io_context io;
    std::optional<sharded_manager> manager(std::in_place, io.get_executor(), good());
    auto later = manager->async_acquire("a");
    auto ready = manager->async_ready();
    manager.reset();
    std::optional<error_code> ended;
    std::optional<error_code> was_ready;
    std::move(later)([&](error_code error, lock) { ended = error; });
    std::move(ready)([&](error_code error) { was_ready = error; });
    io.run();
    CHECK(ended == errc::closed);
    CHECK(was_ready == errc::closed);
}

} // namespace sharded_test
