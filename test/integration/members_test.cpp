// The list of the quorum's masters in their records: clients with another list are refused.
#include "guarded_quorum.hpp"

using namespace redlock;
using namespace redlock::test;

namespace {

config with_masters(const quorum_of_masters& masters, const std::vector<std::size_t>& which) {
    config result = config_for(masters.urls());
    guarded(result);
    const std::vector<endpoint> all = result.masters;
    result.masters.clear();
    for (const std::size_t i : which) {
        result.masters.push_back(all[i]);
    }
    return result;
}

void until_refused(asio::io_context& io, const client& one, std::size_t masters) {
    run_until(io, [&] {
        const health now = one.health();
        return static_cast<std::size_t>(std::count_if(
                   now.masters.begin(),
                   now.masters.end(),
                   [](const master_health& master) {
                       return contains(master.text, "not a member");
                   }))
               == masters;
    });
}

} // namespace

TEST_CASE("a client with another list never gets a lock, and its refusal shows both lists") {
    quorum_of_masters masters(5);
    asio::io_context io;
    client right(io, with_masters(masters, {0, 1, 2}));
    right.until_admitted(3);
    client wrong(io, with_masters(masters, {0, 3, 4}));
    until_refused(io, wrong, 1);
    INFO(to_string(wrong.health()));
    CHECK(wrong.health().admitted == 0);
    const acquisition_ptr refused = wrong.acquire("r", with_token());
    CHECK(refused->error == errc::no_quorum);
    const std::string why = to_string(refused->why);
    for (const master_process& one : masters) {
        CHECK(contains(why, ("127.0.0.1:" + std::to_string(one.port())).c_str()));
    }
    lock mine = right.take("r", with_token());
    CHECK(right.release(mine) == release_result::released);
}

TEST_CASE("a client that lacks a master of the quorum is refused by the others") {
    quorum_of_masters masters(3);
    asio::io_context io;
    client right(io, with_masters(masters, {0, 1, 2}));
    right.until_admitted(3);
    client wrong(io, with_masters(masters, {0, 1}));
    until_refused(io, wrong, 2);
    CHECK(wrong.acquire("r", with_token())->error == errc::no_quorum);
}

TEST_CASE("a quorum is founded as soon as its last master replies for the first time") {
    quorum_of_masters masters(3);
    masters[2].hang();
    asio::io_context io;
    client me(io, with_masters(masters, {0, 1, 2}));
    run_until(io, [&] { return contains(me.health().masters[0].text, "missing: 127.0.0.1:"); });
    CHECK(me.health().admitted == 0);
    masters[2].resume();
    me.until_admitted(3);
    masters[2].kill();
    client next(io, with_masters(masters, {0, 1, 2}));
    next.until_admitted(2);
    CHECK(!next.acquire("r", with_token())->error);
}

TEST_CASE("the same masters under other addresses are the same list if they have names") {
    quorum_of_masters masters(3);
    asio::io_context io;
    config named = with_masters(masters, {0, 1, 2});
    for (std::size_t i = 0; i < 3; ++i) {
        named.masters[i].name = "lock-" + std::to_string(i);
    }
    client first(io, named);
    first.until_admitted(3);
    for (endpoint& one : named.masters) {
        one.host = "localhost";
    }
    client second(io, named);
    second.until_admitted(3);
    client unnamed(io, with_masters(masters, {0, 1, 2}));
    until_refused(io, unnamed, 3);
}

TEST_CASE("plain clients keep no list") {
    quorum_of_masters masters(3);
    asio::io_context io;
    client right(io, with_masters(masters, {0, 1, 2}));
    right.until_admitted(3);
    config settings = with_masters(masters, {0, 1});
    settings.protocol = protocol::plain;
    client plain(io, settings);
    plain.until_admitted(2);
    CHECK(!plain.acquire("r", once())->error);
}
