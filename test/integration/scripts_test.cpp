// Scripts that a server knows, or has forgotten.
#include "guarded_quorum.hpp"

using namespace redlock;
using namespace redlock::test;

TEST_CASE("guarded: scripts are sent by digest, and in full again when a server forgets them") {
    quorum_fixture site(3, guarded);
    const auto in_full = [&] { return calls_of(site.masters[0], "eval"); };
    const auto extensions = [&] { return site.me.count().masters[0].extend_votes[vote::granted]; };
    const auto round = [&](const std::function<void()>& before_each) {
        before_each();
        lock mine = site.take_everywhere("r", with_token());
        before_each();
        const auto extended = extensions();
        CHECK(site.me.extend(mine, 10s) == error_code());
        // A majority was enough, and what is released is not sent again.
        CHECK(site.eventually([&] { return extensions() > extended; }));
        before_each();
        CHECK(site.me.release(mine) == release_result::released);
        CHECK(site.eventually([&] { return site.masters.total_keys(lock_key("r")) == 0; }));
        CHECK(site.settled());
    };
    round([] {});
    const std::uint64_t before = in_full();
    round([] {});
    CHECK(in_full() == before);
    round([&] { site.everywhere({"SCRIPT", "FLUSH"}); });
    CHECK(in_full() >= before + 3);
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
