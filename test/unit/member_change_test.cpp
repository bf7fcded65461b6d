// Changes of the members as operations, on masters in memory.

#include "support/outcome.hpp"
#include "support/test.hpp"

#include <redlock/testing.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <list>

namespace member_change_test { namespace {

using namespace redlock;
namespace asio = boost::asio;
using asio::cancellation_type;

const std::string m0 = "master-0:6379";
const std::string m1 = "master-1:6379";
const std::string m3 = "master-3:6379";
const std::string m4 = "master-4:6379";

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

using outcome = test::nothing;

// A quorum whose quarantine takes little more than a second.
struct site : testing::virtual_quorum {
    using lines = std::vector<std::string>;
    explicit site(
        std::size_t masters = 4,
        protocol speaks = protocol::guarded,
        std::shared_ptr<lines> to = std::make_shared<lines>())
        : virtual_quorum(
            masters,
            [&] {
                config settings;
                settings.protocol = speaks;
                settings.max_ttl = 1s;
                settings.clock_offset_bound = 10ms;
                settings.log.level = log_level::info;
                settings.log.write = [to](log_level, std::string_view line) {
                    to->emplace_back(line);
                };
                return settings;
            }()),
          log(std::move(to)) {}

    template <typename Start>
    outcome& begin(Start start) {
        outcome& made = outcomes.emplace_back();
        start(with_diagnostics(made.why(), made.handler()));
        return made;
    }
    outcome& add(lock_manager& by, const std::string& name) {
        return begin([&](auto done) { by.async_add_member(name, std::move(done)); });
    }
    outcome& remove(lock_manager& by, const std::string& name) {
        return begin([&](auto done) { by.async_remove_member(name, std::move(done)); });
    }
    outcome& replace(lock_manager& by, const std::string& old_name, const std::string& new_name) {
        return begin(
            [&](auto done) { by.async_replace_member(old_name, new_name, std::move(done)); });
    }
    void finish(outcome& one) {
        INFO(manager().get_health().change);
        REQUIRE(advance_until([&] { return one.done(); }));
        INFO(one.error().message() << one.why().message);
        CHECK(!one.error());
    }
    bool is_member(const std::string& name) {
        return std::ranges::count(manager().get_health().members, name) == 1;
    }
    std::string progress() { return manager().get_health().change; }
    bool advance_until_progress(std::string_view part) {
        return advance_until([&] { return contains(progress(), part); });
    }

    std::list<outcome> outcomes;
    std::shared_ptr<lines> log; // of all managers
};

// The last master is in the list, and no member.
struct site_with_spare : site {
    explicit site_with_spare(std::size_t masters = 4) : site(masters) {
        finish(remove(manager(), "master-" + std::to_string(masters - 1) + ":6379"));
    }
};

TEST_CASE("an addition completes when the vote of the new master counts, and not before") {
    site_with_spare quorum;
    REQUIRE(!quorum.is_member(m3));
    quorum.answer_after(3, 50ms); // it is the last to confirm that the change is final
    const time_point begun = quorum.now();
    outcome& added = quorum.add(quorum.manager(), m3);
    REQUIRE(quorum.advance_until([&] { return quorum.is_member(m3); }));
    CHECK(quorum.now() - begun > 1s);
    REQUIRE(quorum.advance_until([&] { return quorum.manager().get_health().admitted == 3; }));
    CHECK(!added.done());
    quorum.finish(added);
    const health now = quorum.manager().get_health();
    CHECK(now.masters[3].state == master_state::admitted);
    CHECK(now.quorum == 3);
    CHECK(now.generation == 3);
    CHECK(now.change.empty());
    const std::string line = "members of the quorum, generation 3: " + m0 + ", " + m1;
    CHECK(std::ranges::any_of(*quorum.log, [&](auto& one) { return contains(one, line); }));
}

TEST_CASE("a cancelled addition stays planned, and the next call or another manager finishes it") {
    site_with_spare quorum;
    const auto type =
        GENERATE(cancellation_type::terminal, cancellation_type::partial, cancellation_type::total);
    const bool by_another = GENERATE(false, true);
    outcome& added = quorum.add(quorum.manager(), m3);
    REQUIRE(quorum.advance_until_progress("planned on all masters"));
    added.cancel(type);
    quorum.advance(0s);
    REQUIRE(added.done());
    CHECK(added.error() == asio::error::operation_aborted);
    quorum.advance(1min);
    CHECK(!quorum.is_member(m3));
    CHECK(contains(quorum.progress(), "add " + m3 + " (planned on master-0:6379, "));
    lock_manager& next = by_another ? quorum.add_manager() : quorum.manager();
    quorum.finish(quorum.add(next, m3));
    quorum.advance(1s);
    CHECK(quorum.is_member(m3));
}

TEST_CASE("a change that cannot be made is refused, and the text says why") {
    const auto refused = [](site& of, outcome& one, const std::string& part) {
        of.advance(50ms);
        CHECK(one.error() == errc::invalid_argument);
        INFO(one.why().message);
        CHECK(contains(one.why().message, part));
    };
    site four;
    lock_manager& manager = four.manager();
    refused(
        four,
        four.add(manager, "master-9:6379"),
        "'master-9:6379'; it must be in the list of masters, by its name");
    refused(four, four.remove(manager, "master-0"), "'master-0'");
    refused(four, four.add(manager, ""), "member is empty");
    refused(four, four.replace(manager, "x", m3), "'x'");
    refused(four, four.replace(manager, m0, "y"), "'y'");
    refused(four, four.replace(manager, m0, m0), "by itself");
    site two(2);
    refused(two, two.remove(two.manager(), m0), "a quorum of two masters cannot lose one");
    site plain(3, protocol::plain);
    refused(plain, plain.add(plain.manager(), m1), "only the guarded protocol has members");
}

TEST_CASE("an unreachable member delays a change, and the health shows which one") {
    site_with_spare quorum;
    quorum.master(1).kill();
    outcome& added = quorum.add(quorum.manager(), m3);
    quorum.advance(10s);
    CHECK(!added.done());
    CHECK(contains(quorum.progress(), "waits for " + m1));
    quorum.master(1).restart();
    quorum.finish(added);
}

TEST_CASE("what is so already completes at once") {
    site_with_spare quorum;
    lock_manager& manager = quorum.manager();
    quorum.master(1).kill();
    const outcome& added = quorum.add(manager, m0);
    quorum.advance(50ms);
    CHECK(added.done());
    CHECK(!added.error());
    const outcome& removed = quorum.remove(manager, m3);
    quorum.advance(50ms);
    CHECK(removed.done());
    CHECK(!removed.error());
    CHECK(manager.get_health().generation == 2);
}

TEST_CASE("it is not taken from records that are older than the call") {
    site quorum;
    lock_manager& idle = quorum.add_manager();
    quorum.finish(quorum.remove(quorum.manager(), m3));
    REQUIRE(idle.get_health().generation == 1);
    quorum.finish(quorum.add(idle, m3));
    CHECK(idle.get_health().generation == 3);
}

TEST_CASE("an acquire that waits for less than a quarantine outlasts a change of the members") {
    site_with_spare quorum;
    lock_manager& user = quorum.add_manager();
    acquire_options options;
    options.ttl = 500ms;
    options.wait = 500ms;
    options.fencing = GENERATE(false, true);
    std::size_t taken = 0;
    lock held;
    diagnostics why;
    const std::function<void()> next = [&] {
        user.async_acquire("r", options, with_diagnostics(why, [&](error_code error, lock got) {
                               if (!error) {
                                   ++taken;
                                   held = std::move(got);
                                   held.async_release([&](auto&&...) { next(); });
                               }
                           }));
    };
    next();
    quorum.finish(quorum.replace(quorum.manager(), m0, m3));
    quorum.finish(quorum.replace(quorum.manager(), m3, m0));
    CHECK(why.message == "");
    CHECK(taken > 100);
}

TEST_CASE("another plan is in the way until it is final, and the error names it") {
    site_with_spare quorum;
    lock_manager& manager = quorum.manager();
    lock_manager& other = quorum.add_manager();
    const auto refused = [&](outcome& one) {
        quorum.advance(50ms);
        CHECK(one.error() == errc::conflicting_change);
        INFO(one.why().message);
        CHECK(contains(one.why().message, "add " + m3 + " is planned on master-0:6379, "));
        CHECK(contains(one.why().message, "finish it with redlock members add " + m3));
    };
    outcome& added = quorum.add(manager, m3);
    REQUIRE(quorum.advance_until_progress("planned on all masters"));
    refused(quorum.remove(other, m0));
    refused(quorum.remove(other, m3)); // it would become a member again
    added.cancel(cancellation_type::terminal);
    refused(quorum.remove(manager, m0));
    quorum.finish(quorum.add(other, m3));
    quorum.finish(quorum.remove(manager, m0));
}

TEST_CASE("a manager makes one change at a time, and the same one for all callers") {
    site_with_spare quorum;
    lock_manager& manager = quorum.manager();
    outcome& first = quorum.add(manager, m3);
    outcome& second = quorum.add(manager, m3);
    outcome& other = quorum.remove(manager, m0);
    REQUIRE(quorum.advance_until([&] { return other.done(); }));
    CHECK(other.error() == errc::conflicting_change);
    CHECK(
        other.why().message
        == "add " + m3 + " is in progress in this manager: wait for it or cancel it first");
    first.cancel(cancellation_type::total);
    quorum.advance(0s);
    CHECK(first.error() == asio::error::operation_aborted);
    quorum.finish(second);
}

TEST_CASE("a replacement adds and then removes, and goes on after a cancellation") {
    site_with_spare quorum;
    lock_manager& manager = quorum.manager();
    outcome& first = quorum.replace(manager, m0, m3);
    REQUIRE(quorum.advance_until([&] { return quorum.is_member(m3); }));
    CHECK(quorum.is_member(m0));
    CHECK(!first.done());
    first.cancel(cancellation_type::terminal);
    quorum.advance(1min);
    CHECK(quorum.is_member(m0));
    quorum.finish(quorum.replace(manager, m0, m3));
    CHECK(quorum.is_member(m3));
    CHECK(!quorum.is_member(m0));
}

TEST_CASE("a dead master is removed before the new one is added, if enough members are left") {
    site_with_spare five(5);
    five.master(0).kill();
    five.advance(1s);
    outcome& replaced = five.replace(five.manager(), m0, m4);
    REQUIRE(five.advance_until([&] { return five.manager().get_health().generation == 3; }));
    CHECK(!five.is_member(m0));
    CHECK(!five.is_member(m4));
    five.finish(replaced);
    CHECK(five.is_member(m4));

    site_with_spare four;
    four.master(0).kill();
    four.advance(1s);
    outcome& refused = four.replace(four.manager(), m0, m3);
    four.advance(50ms);
    CHECK(refused.error() == errc::invalid_argument);
    CHECK(contains(refused.why().message, "2 members would be left"));
    CHECK(contains(refused.why().message, "Remove it with a list without the new master"));
}

TEST_CASE("a change ends with its manager") {
    site_with_spare quorum;
    lock_manager& manager = quorum.manager();
    const outcome& waiting = quorum.add(manager, m3);
    quorum.advance(100ms);
    manager.async_close(asio::detached);
    quorum.advance(1s);
    CHECK(waiting.error() == errc::closed);
}

TEST_CASE("a call right after async_run waits until the members are known") {
    site_with_spare quorum;
    lock_manager fresh = quorum.make_manager();
    fresh.async_run(asio::detached);
    quorum.finish(quorum.add(fresh, m3));
    CHECK(fresh.get_health().members.size() == 4);
}

}} // namespace member_change_test
