// Which acquires are refused before anybody is asked.

#include "config/lock_request.hpp"
#include "support/test.hpp"

#include <variant>

namespace lock_request_test { namespace {

using namespace redlock;
using detail::checked_request;
using detail::form_of;
using detail::lock_request;
using detail::resources_max;
using detail::slot_pool_size_max;
using secret_use = lock_request::secret_use;
using core::lock_form;

config rules(protocol way) {
    config out;
    out.masters = {"redis://127.0.0.1:1"};
    out.protocol = way;
    return out;
}

bool passes(checked_request& wanted, protocol way = protocol::guarded) {
    return wanted.check(rules(way), std::chrono::seconds(30)).has_value();
}

bool allowed(lock_request wanted, protocol way = protocol::guarded) {
    checked_request checked(std::move(wanted));
    return passes(checked, way);
}

const std::string token(40, 'a');

TEST_CASE("lock request: one resource") {
    CHECK(allowed({.wanted = "r"}));
    CHECK(allowed({.wanted = "r"}, protocol::plain));
    CHECK(!allowed({.wanted = ""}));
    CHECK(!allowed({.wanted = "r", .options = {.ttl = std::chrono::milliseconds(0)}}));
}

TEST_CASE("lock request: with a token of one's own there is one attempt, whatever the wait") {
    const acquire_options once{.wait = wait_for::none()};
    CHECK(!allowed({.wanted = "r", .options = once, .uses = secret_use::take, .secret = "short"}));
    CHECK(allowed({.wanted = "r", .options = once, .uses = secret_use::take, .secret = token}));
    CHECK(allowed({.wanted = "r", .uses = secret_use::take, .secret = token}));
    for (const wait_for wait : {wait_for(std::chrono::seconds(10)), wait_for::forever()}) {
        for (const secret_use use : {secret_use::take, secret_use::attach}) {
            checked_request wanted(
                {.wanted = "r", .options = {.wait = wait}, .uses = use, .secret = token});
            REQUIRE(passes(wanted));
            CHECK(wanted.options.wait == wait_for::none());
        }
    }
    CHECK(allowed({.wanted = "r", .uses = secret_use::attach, .secret = token}));
    CHECK(!allowed({.wanted = "r", .uses = secret_use::attach}));
}

TEST_CASE("lock request: several resources are sorted, none is there twice") {
    checked_request wanted({.wanted = {"b", "a", "c", "a"}});
    CHECK(passes(wanted));
    CHECK(form_of(wanted) == lock_form::all);
    CHECK(wanted.resources == std::vector<std::string>{"a", "b", "c"});
    CHECK(wanted.resource == "a, b, c");

    const auto several = [](std::vector<std::string> names, acquire_options options = {}) {
        return lock_request{.wanted = std::move(names), .options = options};
    };
    CHECK(!allowed(several({"a", "b"}), protocol::plain));
    CHECK(!allowed(several({"a", "b"}, {.fifo = true})));
    CHECK(!allowed(several({"a", "b"}, {.mode = lock_mode::shared})));
    CHECK(!allowed(several({})));
    std::vector<std::string> many;
    while (many.size() <= resources_max) {
        many.push_back(std::to_string(many.size()));
    }
    CHECK(!allowed(several(many)));
    many.pop_back();
    CHECK(allowed(several(many)));
}

TEST_CASE("lock request: several resources that are refused are named") {
    checked_request wanted({.wanted = {"b", "a"}});
    CHECK(!passes(wanted, protocol::plain));
    CHECK(wanted.resource == "a, b");

    checked_request empty({.wanted = {"b", "a", ""}});
    const auto refused = empty.check(rules(protocol::guarded), std::chrono::seconds(30));
    CHECK(to_string(refused.error()) == "resources[2] has 0 bytes; allowed: 1 to 1024");

    checked_request many({.wanted = std::vector<std::string>()});
    auto& names = std::get<std::vector<std::string>>(detail::target_access::what(many.wanted));
    for (std::size_t i = 0; i < 10 * resources_max; ++i) {
        names.push_back(std::to_string(1'000'000 + i));
    }
    CHECK(!passes(many));
    CHECK(many.resource.starts_with("1000000, 1000001, "));
    CHECK(many.resource.ends_with(", 1000127, ..."));
}

TEST_CASE("lock request: a list of one resource is that resource") {
    checked_request wanted({.wanted = {"a", "a"}, .options = {.fifo = true}});
    CHECK(passes(wanted, protocol::plain));
    CHECK(form_of(wanted) == lock_form::exclusive);
    CHECK(wanted.resource == "a");
    CHECK(wanted.resources.empty());
}

TEST_CASE("lock request: a reader has no fencing token, and no place in the queue") {
    constexpr auto mode = lock_mode::shared;
    checked_request wanted({.wanted = "r", .options = {.mode = mode}});
    CHECK(passes(wanted));
    CHECK(wanted.resource == "r");
    CHECK(form_of(wanted) == lock_form::shared);
    CHECK(!allowed(
        {.wanted = "r", .options = {.mode = mode}, .uses = secret_use::attach, .secret = token}));
}

TEST_CASE("lock request: slots of a pool") {
    const auto slots = [](std::size_t wants, std::size_t size, acquire_options options = {}) {
        return lock_request{.wanted = redlock::slots("p", size, wants), .options = options};
    };
    CHECK(allowed(slots(1, 3), protocol::plain));
    CHECK(!allowed(slots(2, 3), protocol::plain));
    CHECK(allowed(slots(3, 3)));
    CHECK(!allowed(slots(4, 3)));
    CHECK(!allowed(slots(0, 3)));
    CHECK(!allowed(slots(1, 0)));
    CHECK(!allowed(slots(1, slot_pool_size_max + 1)));
    CHECK(allowed(slots(1, 25'600)));
    checked_request large(slots(1, 25'601));
    const auto refused = large.check(rules(protocol::guarded), std::chrono::seconds(30));
    CHECK(
        to_string(refused.error())
        == "size is 25601; allowed: 1 to 25600, 256 for each ms of master_timeout");
    CHECK(!allowed(slots(resources_max + 1, 1'000)));
    CHECK(!allowed(slots(1, 3, {.fifo = true})));
    CHECK(!allowed(slots(1, 3, {.mode = lock_mode::shared})));
    CHECK(detail::name_of_slots("p", {1, 20}) == "p:slot:1,20");
}

TEST_CASE("lock request: a refusal names the value and what is allowed") {
    const auto why = [](lock_request wanted, protocol way = protocol::guarded) {
        return to_string(
            checked_request(std::move(wanted)).check(rules(way), std::chrono::seconds(30)).error());
    };
    CHECK(
        why({.wanted = "r", .options = {.mode = lock_mode::shared}}, protocol::plain)
        == "mode is 'shared'; allowed: 'exclusive', with protocol plain");
    CHECK(
        why({.wanted = "r", .options = {.fencing = true, .mode = lock_mode::shared}})
        == "fencing is 'on'; allowed: 'off', with mode shared");
    CHECK(
        why({.wanted = "r", .options = {.fifo = true, .mode = lock_mode::shared}})
        == "fifo is 'on'; allowed: 'off', with mode shared");
    const acquire_options mode{.mode = static_cast<lock_mode>(7)};
    for (const lock_request& wanted : std::vector<lock_request>{
             {.wanted = "r"}, {.wanted = {"a", "b"}}, {.wanted = slots("p", 3)}}) {
        lock_request one = wanted;
        one.options = mode;
        CHECK(why(one) == "mode is 7; allowed: 0 to 1, the values of the enumeration");
    }
}

}} // namespace lock_request_test
