// The list of the quorum's masters in their records: clients with another list are refused.
#include "guarded_quorum.hpp"

#include <redlock/blocking.hpp>

#include <catch2/matchers/catch_matchers_string.hpp>

#include <span>

namespace redlock::test { namespace {

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
    const auto refuses = [](const auto& master) { return contains(master.text, "not a member"); };
    run_until(io, [&] {
        return std::ranges::count_if(one.health().masters, refuses)
               == static_cast<std::ptrdiff_t>(masters);
    });
}

TEST_CASE("a client with another list never gets a lock, and its refusal shows both lists") {
    quorum_of_masters masters(5);
    asio::io_context io;
    client right(io, with_masters(masters, {0, 1, 2}), 3);
    client wrong(io, with_masters(masters, {0, 3, 4}));
    until_refused(io, wrong, 1);
    INFO(to_string(wrong.health()));
    CHECK(wrong.health().admitted == 0);
    const acquisition_ptr refused = wrong.acquire("r", with_token());
    CHECK(refused->error == errc::no_quorum);
    const std::string why = to_string(refused->why);
    for (const master_process& one : masters) {
        CHECK(contains(why, "127.0.0.1:" + std::to_string(one.port())));
    }
    lock mine = right.take("r", with_token());
    CHECK(right.release(mine) == release_result::released);
}

TEST_CASE("a master is replaced while a lock is held, and clients with the old list go on") {
    quorum_of_masters masters(4);
    asio::io_context io;
    const auto with = [&](const std::vector<std::size_t>& which) {
        config result = with_masters(masters, which);
        result.max_ttl = 3s; // a change takes a quarantine
        result.clock_offset_bound = 10ms;
        return result;
    };
    const acquire_options once_with_token = with_token(once(3s));
    client old(io, with({0, 1, 2}), 3);
    struct : observer {
        void
        members_changed(std::uint64_t generation, std::span<const std::string> members) override {
            seen.emplace_back(generation, members.size());
        }
        std::vector<std::pair<std::uint64_t, std::size_t>> seen;
    } changes;
    config observed = with({0, 1, 2, 3});
    observed.observer = std::shared_ptr<observer>(std::shared_ptr<void>(), &changes);
    client holder(io, observed, 3);
    lock mine = holder.take("r", once_with_token);
    const std::vector<endpoint> all = with({0, 1, 2, 3}).masters;
    std::optional<error_code> result;
    const auto wait = [&] {
        run_until(io, [&] { return result.has_value(); });
        CHECK(*std::exchange(result, std::nullopt) == error_code());
    };
    const auto note = [&](error_code error) { result = error; };
    holder.manager().async_add_member(to_string(all[3]), note);
    wait();
    holder.until_admitted(4);
    masters[0].kill();
    client changer(io, with({0, 1, 2, 3}));
    changer.manager().async_remove_member(to_string(all[0]), note);
    wait();
    run_until(io, [&] { return holder.health().generation == 3 && old.health().generation == 3; });
    CHECK(mine.held());
    CHECK(changes.seen == std::vector<std::pair<std::uint64_t, std::size_t>>{{2, 4}, {3, 3}});
    CHECK(holder.health().members.size() == 3);
    CHECK(old.health().members.size() == 3);
    old.until_admitted(2);
    CHECK(old.acquire("r", once_with_token)->error == errc::contended);
    holder.until_admitted(3);
    CHECK(holder.release(mine) == release_result::released);
    // The removal on the masters that this client knows may still be under way.
    lock next = old.take("r", with_token(waiting(10s, 1s)));
    CHECK(next.fencing_token() > mine.fencing_token());
    CHECK(old.release(next) == release_result::released);
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
    client next(io, with_masters(masters, {0, 1, 2}), 2);
    CHECK(!next.acquire("r", with_token())->error);
}

}} // namespace redlock::test
