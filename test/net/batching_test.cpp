// Few bytes, few writes, one connection.
#include "quorum.hpp"

namespace redlock::test { namespace {

std::vector<std::uint64_t> writes(const quorum& q) {
    std::vector<std::uint64_t> result;
    for (const master_metrics& master : q.manager->get_metrics().masters) {
        result.push_back(master.writes);
    }
    return result;
}

std::vector<std::uint64_t> plus(std::vector<std::uint64_t> counts, std::uint64_t more) {
    for (std::uint64_t& count : counts) {
        count += more;
    }
    return counts;
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
    CHECK(writes(q) == plus(before, 1));
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
    for (const std::uint64_t count : writes(q)) {
        CHECK(count < before[0] + locks);
    }
}

TEST_CASE("different commands of one turn share a write") {
    started_quorum q;
    lock first = q.acquired("a");
    lock second = q.acquired("b");
    q.run_until([&] { return q.count("SET") == 6; });
    q.poll();
    const auto before = writes(q);
    q.each(&fake_master::clear_log);
    q.begin_acquire("c", once());
    q.begin_extend(first, 25s);
    q.begin_release(second);
    q.begin_query("a");
    for (fake_master& master : q.masters) {
        // A SET, two scripts, GET and PTTL.
        q.run_until([&] { return master.commands().size() >= 5; });
        CHECK(master.commands_per_read().front() == 5);
    }
    CHECK(writes(q).size() == before.size());
}

TEST_CASE("metrics count what a master was sent and said") {
    started_quorum q;
    lock held = q.acquired("r");
    for (const std::size_t master : {0U, 1U, 2U}) {
        q.run_until([&] {
            return q.manager->get_metrics().masters[master].acquire_votes[vote::granted] == 1;
        });
    }
    CHECK(q.acquire("r").error() == errc::contended);
    const metrics counted = q.manager->get_metrics();
    std::uint64_t against = 0;
    for (const master_metrics& master : counted.masters) {
        against += master.acquire_votes[vote::held];
    }
    // Two have decided it; what the third says after that changes nothing.
    CHECK(against >= 2);
    for (std::size_t i = 0; i < 3; ++i) {
        const master_metrics& master = counted.masters[i];
        CHECK(master.connects == 1);
        CHECK(master.disconnects == 0);
        CHECK(master.acquire_votes[vote::granted] == 1);
        CHECK(master.bytes_received > 0);
        CHECK(master.bytes_sent > 0);
        CHECK(master.writes <= master.commands);
        CHECK(master.endpoint == to_string(q.settings.masters[i]));
    }
    CHECK(counted.acquired == 1);
    CHECK(counted.contended == 1);
    CHECK(counted.attempts == 2);
    CHECK(counted.held == 1);
    CHECK(counted.waiting == 0);
}

}} // namespace redlock::test
