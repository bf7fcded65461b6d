// A held lock: its deadline compared with the keys on the masters, and its renewal.
#include "quorum_fixture.hpp"

#include <thread>

namespace redlock::test { namespace {

// For how long a majority keeps the key, by their replies; the moment is that of the last reply.
milliseconds kept_by_majority(const quorum_of_masters& masters, const std::string& key) {
    std::vector<long> left;
    for (std::size_t i = 0; i < masters.size(); ++i) {
        left.push_back(std::stol(masters[i].command({"PTTL", key})));
    }
    std::sort(left.rbegin(), left.rend());
    return milliseconds(left[masters.size() / 2]);
}

TEST_CASE("the deadline is never later than what a majority of the masters keeps") {
    quorum_fixture site(5);
    for (const milliseconds ttl : {300ms, 1'000ms, 10'000ms, 30'000ms}) {
        const std::string resource = "r" + std::to_string(ttl.count());
        const time_point before = clock::now();
        lock mine = site.me.take(resource, once_unrenewed(ttl));
        CHECK(mine.deadline() < clock::now() + ttl);
        CHECK(mine.deadline() > before);
        CHECK(site.eventually([&] {
            const milliseconds kept = kept_by_majority(site.masters, "redlock:{" + resource + "}");
            return kept > 0ms || !mine.held();
        }));
        // Both shrink with time, so ours is read last. A key that has gone says -2.
        const milliseconds kept = kept_by_majority(site.masters, "redlock:{" + resource + "}");
        CHECK(mine.remaining() <= std::max(kept, 0ms));
        // The allowance for drift is one per cent of the ttl and 2 ms, and both count.
        CHECK(mine.deadline() - before <= clock::now() - before + ttl - ttl / 100 - 2ms);
        CHECK(site.me.release(mine) != release_result::uncertain);
    }
}

TEST_CASE("a lock outlives a minority of masters that dies and comes back empty") {
    quorum_fixture site(5);
    lock mine = site.me.take("r", once(2s));
    const auto lost = site.me.watch(mine);
    site.masters[0].kill();
    site.masters[1].hang();
    site.pass(2'100ms); // longer than the ttl
    CHECK(mine.held());
    site.masters[0].restart_empty();
    site.masters[1].resume();
    site.me.until_admitted(5);
    site.pass(1'500ms);
    CHECK(mine.held());
    CHECK_FALSE(lost->signalled);
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(site.settled());
    CHECK(site.no_key_left());
}

TEST_CASE("renewal survives the loss of the scripts and of every connection") {
    quorum_fixture site(3);
    lock mine = site.me.take("r", once(2s));
    const auto renewed = [&](std::uint64_t times) {
        return site.eventually([&] { return site.me.count().renewed >= times; });
    };
    CHECK(renewed(1));
    site.everywhere({"SCRIPT", "FLUSH"});
    CHECK(renewed(2));
    site.everywhere({"CLIENT", "KILL", "TYPE", "normal"});
    CHECK(renewed(3));
    CHECK(mine.held());
    site.everywhere({"SCRIPT", "FLUSH"});
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(site.no_key_left());
}

TEST_CASE("a holder whose io_context was blocked past the cut-off loses the lock as stalled") {
    std::vector<std::string> errors;
    quorum_fixture site(3, [&](config& c) {
        c.master_timeout = 100ms;
        keep_log(c, log_level::error, errors);
    });
    acquire_options options = once(2s);
    options.stop_margin = 500ms;
    lock mine = site.take_everywhere("r", options);
    const auto watched = site.me.watch(mine);
    // A handler of the program that does not return: no renewal, and no timer of the library.
    std::this_thread::sleep_until(mine.deadline() - 500ms + 1ms);
    CHECK_FALSE(mine.held()); // before the loop runs again
    CHECK(mine.remaining() == 0ns);
    run_until(site.io, [&] { return watched->signalled; });
    CHECK(watched->reason == loss_reason::stalled);
    CHECK(site.me.count().lost[loss_reason::stalled] == 1);
    CHECK(site.me.release(mine) != release_result::released);
    REQUIRE(errors.size() == 1);
    CHECK(contains(errors[0], "lost: stalled"));
    CHECK(site.settled());
    CHECK(site.no_key_left());
}

}} // namespace redlock::test
