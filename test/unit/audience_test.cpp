// Where releases are published: core/masters/audience.hpp, and what the engine makes of it.

#include "core/bytes/keys.hpp"
#include "core/masters/audience.hpp"
#include "waiters.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace listeners_test { namespace {

using namespace unit;
namespace core = redlock::core;

struct published_quorum : virtual_quorum {
    explicit published_quorum(bool guarded) : virtual_quorum(rules(guarded)) {
        for (virtual_master& one : masters) {
            one.put("p::epoch", core::record_of_new_server(one.run_id));
            one.tell = [this](std::string_view, std::string_view) {
                ++published;
                return listening;
            };
        }
        start();
    }
    static core::settings rules(bool guarded) {
        core::settings out = rules_with(5, 0ms, true);
        if (guarded) {
            out.protocol = redlock::protocol::guarded;
            out.record_key = "p::epoch";
        }
        return out;
    }

    // On how many masters the release of a lock was published.
    std::size_t releases(const std::string& name = "r") {
        const answer got = acquire_now(once(), name);
        REQUIRE(got.won);
        published = 0;
        release(got);
        run_for(10ms);
        CHECK(!has_key(name));
        return published;
    }

    std::size_t published = 0;
    std::int64_t listening = 0; // on each master
};

TEST_CASE("nobody is known to listen for no lock before its arbiter says so") {
    core::audience all;
    CHECK(!all.none(1));
    all.counted(1, 0);
    CHECK(all.none(1));
    CHECK(!all.none(2));
    all.counted(1, 3);
    CHECK(!all.none(1));
    all.counted(1, 0);
    all.forget();
    CHECK(!all.none(1));
}

TEST_CASE("a release is published everywhere until the arbiter finds that nobody listens") {
    published_quorum q(GENERATE(false, true));
    CHECK(q.releases() == 5);
    CHECK(q.releases() == 1);
    CHECK(q.releases() == 1);
    SECTION("and everywhere where the arbiter has no key to remove") {
        for (virtual_master& one : q.masters) {
            virtual_master* const other = &one == &q.masters[0] ? &q.masters[1] : &q.masters[0];
            q.published = 0;
            one.put(q.key(), "another's", q.now() + 50ms);
            const answer got = q.take(once());
            REQUIRE(other->value_of(q.key(), q.now()) == got.token);
            q.run_for(100ms);
            q.release(got, 10ms);
            CHECK(q.published >= 1);
        }
    }
    SECTION("each lock by itself") {
        CHECK(q.releases("s") == 5);
        CHECK(q.releases("s") == 1);
    }
    SECTION("and again once somebody listens") {
        q.listening = 1;
        CHECK(q.releases() == 1); // which notifies it, and is counted
        CHECK(q.releases() == 5);
        q.listening = 0;
        CHECK(q.releases() == 5);
        CHECK(q.releases() == 1);
    }
    SECTION("and again when another master may be the arbiter") {
        q.cut_off(2, 10ms);
        CHECK(q.releases() == 4);
        CHECK(q.releases() == 1);
    }
}

}} // namespace listeners_test
