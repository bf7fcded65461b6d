// Which acquires are refused before anybody is asked.

#include "lock_request.hpp"

#include <redlock/multi_lock.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

namespace lock_request_test {

namespace {

using namespace redlock;
using detail::lock_request;
using token_use = lock_request::token_use;
using core::lock_form;

config rules(protocol way) {
    config out;
    out.masters = {"redis://127.0.0.1:1"};
    out.protocol = way;
    return out;
}

bool allowed(lock_request wanted, protocol way = protocol::guarded) {
    return wanted.check(rules(way)).empty();
}

const std::string token(40, 'a');

} // namespace

TEST_CASE("lock request: one resource") {
    CHECK(allowed({.resource = "r"}));
    CHECK(allowed({.resource = "r"}, protocol::plain));
    CHECK(!allowed({.resource = ""}));
    CHECK(!allowed({.resource = "r", .options = {.ttl = std::chrono::milliseconds(0)}}));
}

TEST_CASE("lock request: a token of one's own is for one attempt, one to attach to may wait") {
    const acquire_options once{.wait = wait_for::none()};
    CHECK(!allowed({.resource = "r", .options = once, .uses = token_use::take, .token = "short"}));
    CHECK(allowed({.resource = "r", .options = once, .uses = token_use::take, .token = token}));
    CHECK(!allowed({.resource = "r", .uses = token_use::take, .token = token}));
    CHECK(allowed({.resource = "r", .uses = token_use::attach, .token = token}));
    CHECK(!allowed({.resource = "r", .uses = token_use::attach}));
}

TEST_CASE("lock request: several resources are sorted, none is there twice") {
    lock_request wanted{.form = lock_form::all, .resources = {"b", "a", "c", "a"}};
    CHECK(wanted.check(rules(protocol::guarded)).empty());
    CHECK(wanted.resources == std::vector<std::string>{"a", "b", "c"});
    CHECK(wanted.resource == "a, b, c");

    const auto several = [](std::vector<std::string> names, acquire_options options = {}) {
        return lock_request{
            .options = options, .form = lock_form::all, .resources = std::move(names)};
    };
    CHECK(!allowed(several({"a"}), protocol::plain));
    CHECK(!allowed(several({"a"}, {.order = fairness::fifo})));
    CHECK(!allowed(several({})));
    CHECK(!allowed(several({"a", ""})));
    std::vector<std::string> many;
    while (many.size() <= multi_lock_max) {
        many.push_back(std::to_string(many.size()));
    }
    CHECK(!allowed(several(many)));
    many.pop_back();
    CHECK(allowed(several(many)));
}

TEST_CASE("lock request: a reader needs no fencing token, a writer may have one") {
    for (const lock_form form : {lock_form::shared, lock_form::writer}) {
        lock_request wanted{.options = {.fencing = true}, .form = form, .resources = {"r"}};
        CHECK(wanted.check(rules(protocol::guarded)).empty());
        CHECK(wanted.resource == "r");
        CHECK(wanted.options.fencing == (form == lock_form::writer));
    }
}

TEST_CASE("lock request: slots of a pool") {
    const auto slots = [](std::size_t wants, std::uint32_t size, acquire_options options = {}) {
        return lock_request{.resource = "p", .options = options, .slots = size, .wants = wants};
    };
    CHECK(allowed(slots(1, 3), protocol::plain));
    CHECK(!allowed(slots(2, 3), protocol::plain));
    CHECK(allowed(slots(3, 3)));
    CHECK(!allowed(slots(4, 3)));
    CHECK(!allowed(slots(0, 3)));
    CHECK(!allowed(slots(multi_lock_max + 1, 1'000)));
    CHECK(!allowed(slots(1, 3, {.order = fairness::fifo})));
    CHECK(detail::name_of_slots("p", {1, 20}) == "p:slot:1,20");
}

} // namespace lock_request_test
