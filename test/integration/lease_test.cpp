// A held lock: its deadline compared with the keys on the masters, and its renewal.
#include "quorum_fixture.hpp"

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

}} // namespace redlock::test
