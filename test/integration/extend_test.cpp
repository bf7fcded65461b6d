// Extending a lock by hand.
#include "quorum_fixture.hpp"

#include <thread>

namespace redlock::test { namespace {

std::vector<long> pttls(const quorum_of_masters& masters) {
    std::vector<long> result;
    for (std::size_t i = 0; i < masters.size(); ++i) {
        result.push_back(std::stol(masters[i].command({"PTTL", "redlock:{r}"})));
    }
    return result;
}

TEST_CASE("an extension moves the deadline and the expiry on the masters") {
    quorum_fixture site(3);
    lock mine = site.me.take("r", once_unrenewed(5s));
    const time_point before = mine.deadline();
    CHECK(site.me.extend(mine, 25s) == error_code());
    CHECK(mine.deadline() > before + 10s);
    CHECK(mine.remaining() <= 25s);
    CHECK(site.eventually([&] {
        const auto left = pttls(site.masters);
        return std::count_if(left.begin(), left.end(), [](long ms) { return ms > 10'000; }) == 3;
    }));
    CHECK(site.me.count().renewed == 1);
}

TEST_CASE("an extension that a majority does not know the lock for says lost") {
    quorum_fixture site(3);
    lock mine = site.take_everywhere("r", once_unrenewed(20s));
    const auto watched = site.me.watch(mine);
    site.masters[0].command({"SET", "redlock:{r}", "thief", "PX", "60000"});
    site.masters[1].command({"SET", "redlock:{r}", "thief", "PX", "60000"});
    diagnostics why;
    CHECK(site.me.extend(mine, 20s, &why) == errc::lost);
    INFO(to_string(why));
    CHECK_FALSE(mine.held());
    run_until(site.io, [&] { return watched->signalled; });
    CHECK(watched->reason == loss_reason::owned_by_other);
    CHECK(site.masters[0].command({"GET", "redlock:{r}"}) == "thief");
}

TEST_CASE("a lock that has ended cannot be extended, even if nobody has noticed yet") {
    quorum_fixture site(3);
    lock mine = site.me.take("r", once_unrenewed(300ms));
    std::this_thread::sleep_for(400ms); // nothing runs: the keys expire, unnoticed by the manager
    CHECK(site.me.extend(mine, 10s) == errc::lost);
    CHECK(site.me.extend(mine, 10s) == errc::lost);
    CHECK(site.no_key_left());
    CHECK_FALSE(mine.held());
}

TEST_CASE("an extension says when max_hold ends the lease before its ttl") {
    quorum_fixture site(3);
    acquire_options options = once_unrenewed(5s);
    options.max_hold = 10min;
    lock mine = site.me.take("r", options);
    extend_result how = extend_result::capped;
    CHECK(!site.me.extend(mine, 20s, nullptr, &how));
    CHECK(how == extend_result::extended);
    CHECK(site.me.release(mine) == release_result::released);

    options.max_hold = 20s;
    mine = site.me.take("r", options);
    const time_point taken = clock::now();
    CHECK(!site.me.extend(mine, 30s, nullptr, &how));
    CHECK(how == extend_result::capped);
    CHECK(mine.deadline() <= taken + 20s);
    // At its limit the lease still lasts for a shorter ttl.
    CHECK(!site.me.extend(mine, 1s, nullptr, &how));
    CHECK(how == extend_result::extended);
}

}} // namespace redlock::test
