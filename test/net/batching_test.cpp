// Few bytes, few writes, one connection.
#include "quorum.hpp"

namespace redlock::test { namespace {

std::uint64_t writes(const quorum& q) {
    std::uint64_t found = 0;
    for (const master_metrics& master : q.manager->get_metrics().masters) {
        found += master.writes;
    }
    return found;
}

TEST_CASE("what is begun in one turn of the loop leaves in one write per master") {
    constexpr std::size_t locks = 64;
    started_quorum q;
    q.poll();
    q.each(&fake_master::clear_log);
    const auto before = writes(q);
    std::vector<acquisition*> begun;
    for (std::size_t i = 0; i < locks; ++i) {
        begun.push_back(&q.begin_acquire("r" + std::to_string(i), once()));
    }
    for (acquisition* one : begun) {
        CHECK(!q.wait(*one).error());
    }
    CHECK(writes(q) == before + q.masters.size());
    for (fake_master& master : q.masters) {
        master.wait_for_command("SET", locks);
        CHECK(master.commands_per_read() == std::vector<std::size_t>{locks});
    }

    // Releases of one turn likewise, and again when the scripts turn out to be unknown: the EVAL
    // that says it again leaves with others, so that there are fewer writes than locks.
    std::vector<release_outcome*> releases;
    for (acquisition* one : begun) {
        releases.push_back(&q.begin_release(one->value()));
    }
    for (release_outcome* one : releases) {
        CHECK(q.wait(*one).value() == release_result::released);
    }
    CHECK(writes(q) < before + q.masters.size() * locks);
}

TEST_CASE("metrics count acquires, and the connections, bytes and writes of each master") {
    started_quorum q;
    const lock held = q.acquired_everywhere("r");
    CHECK(q.acquire("r").error() == errc::contended);
    const metrics counted = q.manager->get_metrics();
    for (std::size_t i = 0; i < 3; ++i) {
        const master_metrics& master = counted.masters[i];
        CHECK(master.connects == 1);
        CHECK(master.disconnects == 0);
        CHECK(master.bytes_received > 0);
        CHECK(master.bytes_sent > 0);
        CHECK(master.writes <= master.commands);
        CHECK(master.endpoint == to_string(q.settings.masters[i]));
    }
    CHECK(counted.acquired == 1);
    CHECK(counted.failed[errc::contended] == 1);
    CHECK(counted.attempts == 2);
    CHECK(counted.held == 1);
    CHECK(counted.waiting == 0);
}

}} // namespace redlock::test
