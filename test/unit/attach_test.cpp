// Attaching to a lock that was taken elsewhere: what a majority confirms is held, what it has seen
// gone is not, and what is in doubt is left alone.
#include "core/bytes/guarded_scripts.hpp"
#include "virtual_quorum.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace attach_test { namespace {

using namespace unit;
namespace core = redlock::core;

const std::string theirs(40, 'b');
const std::string mine(40, 'a');

// A lock that was taken elsewhere, with so much of its lease left.
void put(virtual_quorum& q, std::size_t master, const std::string& token, nanoseconds left) {
    q.masters[master].put(q.key(), token, q.now() + left);
}

void put_everywhere(virtual_quorum& q, nanoseconds left) {
    for (std::size_t i = 0; i < q.masters.size(); ++i) {
        put(q, i, mine, left);
    }
}

answer attach(virtual_quorum& q, const acquire_options& options, const std::string& token = mine) {
    return q.awaited(q.attach(options, token));
}

TEST_CASE("a master that lags too far is not asked to keep a lock") {
    started_quorum q(3);
    put_everywhere(q, 5s);
    q.paths[1].hung = true;
    for (std::size_t i = 0; i < core::connection::in_flight_max / 2; ++i) {
        q.engine.query(i, "other", 0, q.now());
    }
    q.masters[0].data.clear();
    const answer got = attach(q, once());
    CHECK(got.why == errc::no_quorum);
    CHECK(got.votes[1] == vote::unreachable);
    CHECK(got.ballots.text(1) == "too many commands in flight");
    CHECK(q.engine.count().masters[1].extend_votes[vote::unreachable] == 1);
}

TEST_CASE("a lock that is gone from a majority is lost, and what is left of it stays") {
    started_quorum q(3);
    put(q, 0, mine, 5s);
    const bool foreign = GENERATE(false, true);
    if (foreign) {
        put(q, 1, theirs, 5s);
        put(q, 2, theirs, 5s);
    }
    const answer got = attach(q, once());
    CHECK(got.why == errc::lost);
    CHECK(got.votes[1] == (foreign ? vote::owned_by_other : vote::absent));
    q.run_for(50ms);
    CHECK(q.masters[0].value_of(q.key(), q.now()) == mine); // its holder may still act
    CHECK(q.masters[1].value_of(q.key(), q.now()).has_value() == foreign);
    CHECK(q.engine.count().pending_removals == 0);
}

TEST_CASE("a lock that may be there, on a master that is away, is neither claimed nor removed") {
    started_quorum q(3);
    put(q, 0, mine, 5s);
    put(q, 2, mine, 5s);
    const bool hangs = GENERATE(false, true);
    if (hangs) {
        q.masters[2].when = [](const arguments&) { return mishap::hang_before; };
    } else {
        q.cut_off(2);
    }
    const answer got = attach(q, once());
    CHECK(got.why == errc::no_quorum);
    q.run_for(1s);
    CHECK(q.masters[0].value_of(q.key(), q.now()) == mine);
    CHECK(q.masters[2].value_of(q.key(), q.now()) == mine);
    CHECK(q.engine.count().pending_removals == 0);
}

TEST_CASE("of a lock that was attached, a removal is owed where nobody has replied yet") {
    virtual_quorum q(3);
    q.paths[0].hung = true;
    q.start();
    put_everywhere(q, 5s);
    const answer got = attach(q, once());
    REQUIRE(got.won);
    CHECK(q.release_now(got) == release_result::released);
    CHECK(q.engine.count().pending_removals == 1);
}

TEST_CASE("a cancelled attach claims nothing, and leaves the lock to its owner") {
    started_quorum q(3);
    put_everywhere(q, 20s);
    const std::uint64_t cookie = q.attach(once(), mine);
    q.cancel(cookie, 100ms);
    CHECK(!q.answered(cookie).won);
    CHECK(!q.answered(cookie).why);
    CHECK(q.engine.count().cancelled == 1);
    CHECK(q.has_key());
    CHECK(q.engine.count().held == 0);
    q.close(100ms);
    CHECK(q.has_key());
}

const std::string fence = "p:{r}:fence";

TEST_CASE("a lock that is handed on has a fencing token beyond all that its majority knows") {
    started_quorum q(guarded_settings_for(3));
    for (const std::size_t i : {0U, 1U}) {
        put(q, i, mine, 5s);
        q.masters[i].put(fence, i == 0 ? "7" : "9");
    }
    const answer got = attach(q, fenced());
    REQUIRE(got.won);
    CHECK(q.fences.at(0) == 10);
    CHECK(q.masters[0].value_of(fence, q.now()) == "10");
    CHECK(q.masters[1].value_of(fence, q.now()) == "10");
    CHECK(q.asked("EVAL raise") == 2); // which reads them
    CHECK(q.asked("EVALSHA raise") == 2);
    CHECK(q.engine.count().raised == 1); // what is read is not raised
}

}} // namespace attach_test
