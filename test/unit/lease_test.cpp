#include "virtual_quorum.hpp"

namespace lease_test { namespace {

using namespace unit;

TEST_CASE("by default a lock is lost a tenth of its ttl before its end, at most a second") {
    struct row {
        milliseconds ttl;
        milliseconds max_hold;
        milliseconds margin;
    };
    for (const row& one : std::vector<row>{
             {10s, 0s, 1s},
             {30s, 0s, 1s},
             {2s, 0s, 200ms},
             {19ms, 0s, 1ms},
             {9ms, 0s, 0s},
             {10s, 3s, 300ms},
             {2s, 1h, 200ms}}) {
        CAPTURE(one.ttl.count(), one.max_hold.count());
        started_quorum it(3);
        it.usual_margins = true;
        acquire_options options = once();
        options.ttl = one.ttl;
        options.max_hold = one.max_hold;
        const answer got = it.acquire_now(options);
        CHECK(got.held_until == got.deadline - one.margin);
        CHECK(it.is_lost_at(got, got.held_until));
    }
}

TEST_CASE("the default margin follows the ttl of an extension, and a chosen one stays") {
    for (const auto& [first, then, margin] :
         {std::tuple(10s, 2s, 200ms), {2s, 10s, 1'000ms}, {30s, 3s, 300ms}}) {
        for (const bool usual : {true, false}) {
            started_quorum it(3);
            it.usual_margins = usual;
            acquire_options options = once();
            options.ttl = first;
            const answer got = it.acquire_now(options);
            const redlock::time_point sent = it.now();
            CHECK(!it.extend_now(got, then));
            const auto deadline = std::max(got.deadline, sent + usable(then)); // never shortened
            CHECK(it.is_lost_at(got, deadline - (usual ? margin : 0ms)));
        }
    }
    started_quorum it(3); // one that fails leaves both
    it.usual_margins = true;
    const answer got = it.acquire_now(once());
    it.paths[0].hung = it.paths[1].hung = true;
    it.extend(got, 2s, 1s);
    CHECK(it.extensions_of(got) == errors{errc::no_quorum});
    CHECK(it.engine.count().masters[0].extend_votes[vote::timed_out] == 1);
    CHECK(it.is_lost_at(got, got.deadline - 1s));
}

TEST_CASE("an extension does not bring the end of a lock with a max_hold closer") {
    started_quorum it(3);
    it.usual_margins = true;
    acquire_options options = once();
    options.max_hold = 3s;
    const answer got = it.acquire_now(options);
    it.run_until(got.deadline - 900ms);
    CHECK(!it.extend_now(got, 10s));
    it.run_until(got.deadline);
    CHECK(it.lost_at(got) >= got.held_until);
}

TEST_CASE("after a renewal that worked, one that fails is tried again as soon as the first") {
    quorum_with_lock it(3, renewed());
    const auto fail = [&] {
        it.masters[0].replies["EVALSHA"] = it.masters[1].replies["EVALSHA"] = "-BUSY script\r\n";
    };
    const auto failed = [&](std::uint64_t times) {
        return it.run_while_not([&] { return it.engine.count().renewals_failed >= times; });
    };
    fail();
    it.run_until(it.got.deadline - 2s); // the delay has grown
    it.masters[0].replies.clear();
    REQUIRE(it.run_while_not([&] { return it.engine.count().renewed == 1; }));
    fail();
    const std::uint64_t before = it.engine.count().renewals_failed;
    REQUIRE(failed(before + 1));
    const time_point since = it.now();
    REQUIRE(failed(before + 2));
    CHECK(it.now() - since < 100ms);
}

TEST_CASE("max_hold ends a renewed lock, exactly") {
    for (const milliseconds margin : {0ms, 700ms}) {
        started_quorum it(3);
        acquire_options options = renewed();
        options.max_hold = 25s;
        options.stop_margin = margin;
        const redlock::time_point began = it.now();
        const answer got = it.acquire_now(options);
        CHECK(it.is_lost_at(got, began + 25s - margin));
        CHECK(it.lost_by(got) == loss_reason::max_hold_reached);
        CHECK(it.engine.count().lost[loss_reason::max_hold_reached] == 1);
        it.run_until(began + 25s + 10ms);
        CHECK(!it.has_key());
    }
}

TEST_CASE("an extension of a lock that is released or lost says nothing more") {
    quorum_with_lock it(3);
    it.extend(it.got, 10s);
    it.extend(it.got, 11s);
    it.release(it.got);
    REQUIRE(it.extensions_of(it.got).size() == 2);
    CHECK(it.extensions_of(it.got)[0] == errc::released);
    CHECK(it.extensions_of(it.got)[1] == errc::released);
    it.extend(it.got, 12s, 100ms);
    CHECK(it.extensions_of(it.got).size() == 2);
    CHECK(it.removed_as(it.got) == release_result::released);
    CHECK(!it.has_key());
}

// Several locks of the plain protocol.
struct several_held {
    explicit several_held(std::size_t count) {
        it.start();
        for (std::size_t i = 0; i < count; ++i) {
            got.push_back(it.acquire_now(once(), name(i)));
        }
        it.run_for(1s);
    }
    static std::string name(std::size_t i) { return "r" + std::to_string(i); }
    // All in one turn.
    void extend(milliseconds ttl = 20s) {
        for (const answer& one : got) {
            it.extend(one, ttl);
        }
        it.run_for(10ms);
    }
    void release() {
        for (const answer& one : got) {
            it.release(one);
        }
        it.run_for(10ms);
    }
    std::size_t seen(std::string_view start) const { return it.masters[0].count(start); }
    std::optional<errc> error_of(std::size_t i) const { return it.extensions_of(got[i]).back(); }

    virtual_quorum it{3};
    std::vector<answer> got;
};

TEST_CASE("plain extensions of one turn share a call") {
    several_held all(65);
    all.extend();
    CHECK(all.seen("EVAL extend 64 ") == 1);
    CHECK(all.seen("EVAL extend 1 ") == 1);
    for (std::size_t i = 0; i < all.got.size(); ++i) {
        CHECK(!all.error_of(i));
        CHECK(all.it.deadline_of(all.got[i]) == all.it.now() - 10ms + usable(20s));
    }
    all.extend();
    CHECK(all.seen("EVALSHA extend 64 ") == 1); // known from then on
    CHECK(all.seen("EVALSHA extend 1 ") == 1);
    CHECK(all.seen("EVAL ") == 2);
}

TEST_CASE("a call that is refused is sent again one by one, once") {
    several_held all(3);
    for (virtual_master& server : all.it.masters) {
        server.replies["EVALSHA"] = "-NOPERM no permissions to access a key\r\n";
    }
    all.extend();
    CHECK(all.seen("EVAL extend 3 ") == 1);
    CHECK(all.seen("EVAL extend 1 ") == 3);
    CHECK(all.seen("EVAL") == 4);
    CHECK(all.error_of(0) == errc::no_quorum);

    all.release();
    CHECK(all.seen("EVAL remove 3 ") == 1);
    CHECK(all.seen("EVAL remove 1 ") == 3);
    CHECK(all.seen("EVAL") == 8);
    CHECK(all.it.removed_as(all.got[0]) == release_result::uncertain);
}

TEST_CASE("a lock that is released in the turn of its extension is released after it") {
    several_held all(2);
    all.it.extend(all.got[0], 20s);
    all.it.extend(all.got[1], 20s);
    all.it.release(all.got[0], 10ms);
    const std::vector<std::string>& seen = all.it.masters[0].seen;
    CHECK(seen.at(seen.size() - 2).starts_with("EVAL extend 2 "));
    CHECK(seen.back().starts_with("EVAL remove 1 "));
    CHECK(!all.it.has_key("r0"));
    CHECK(!all.error_of(1));
    all.it.extend(all.got[1], 20s); // of a lease that is gone before it is sent
    all.it.engine.abandon(all.got[1].lease);
    all.it.disconnect(0, 10ms);
    CHECK(all.error_of(1) == errc::released);
}

}} // namespace lease_test
