// Processes that want one lock, and one fault at a time, aimed. What they believed and what they
// wrote is judged as in the soak (soak/ledger.hpp, soak/store.hpp): nobody has it at the same time
// as another, no update is lost, and it goes on afterwards.
#include "faults/soak_path.hpp"
#include "soak/site.hpp"
#include "support/test.hpp"

#include <thread>

using namespace redlock;
using namespace redlock::soak;

namespace {

constexpr auto limit = 30s;
constexpr auto glance = 10ms; // the store gives no event

bool with_network() {
    return test::network::missing().empty();
}

struct crew {
    explicit crew(
        std::size_t masters,
        std::size_t workers,
        const std::function<void(site_options&)>& change = {})
        : where(options(masters, workers, change)) {
        REQUIRE(goes_on()); // before any fault
    }

    static site_options options(
        std::size_t masters,
        std::size_t workers,
        const std::function<void(site_options&)>& change) {
        site_options result;
        result.program = SOAK;
        result.masters = masters;
        result.workers = workers;
        result.namespaces = with_network();
        result.seed = 1;
        if (change) {
            change(result);
        }
        return result;
    }

    // Whether more is written: twice by each worker's share, so that not only what was under way is
    // seen.
    bool goes_on() {
        const std::uint64_t enough = where.the_store().read().writes + 2 * where.workers();
        return until([&] { return where.the_store().read().writes >= enough; });
    }

    bool until(const std::function<bool()>& holds) {
        const auto end = std::chrono::steady_clock::now() + limit;
        while (!holds()) {
            if (std::chrono::steady_clock::now() >= end || !where.deserters().empty()) {
                return false;
            }
            std::this_thread::sleep_for(glance);
        }
        return true;
    }

    // Somebody who has the lock, as far as can be seen from outside.
    std::size_t holder() {
        REQUIRE(until([&] { return where.holder().has_value(); }));
        return *where.holder();
    }

    findings judge() {
        CHECK(goes_on());
        findings found = where.conclude();
        for (const std::string& one : where.deserters()) {
            FAIL_CHECK(one);
        }
        CHECK(found.tenures.size() > 0);
        CHECK(found.overlaps() == 0);
        CHECK(found.disorder() == 0);
        CHECK(found.wronged == 0);
        CHECK(where.the_store().read().lost() == 0);
        return found;
    }

    static void pass(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

    site where;
};

} // namespace

TEST_CASE("holders that are stopped past their leases and go on lose nothing and break nothing") {
    crew all(3, 4);
    std::set<std::size_t> stopped;
    for (int round = 0; round < 4; ++round) {
        const std::size_t one = all.holder();
        stopped.insert(one);
        all.where.worker(one).stop();
        all.pass(900ms); // longer than its ttl
        CHECK(all.goes_on());
        all.where.worker(one).resume();
    }
    const findings found = all.judge();
    CHECK(found.written > 0);
}

TEST_CASE("holders that are killed leave the lock to the others") {
    crew all(3, 4);
    for (int round = 0; round < 4; ++round) {
        const std::size_t one = all.holder();
        all.where.kill_worker(one);
        CHECK(all.goes_on());
        all.where.start_worker(one);
    }
    all.judge();
}

TEST_CASE("a minority of hung masters stops nobody, a majority everybody, and all go on after it") {
    crew all(5, 3);
    all.where.master(0).hang();
    all.where.master(1).hang();
    CHECK(all.goes_on());
    all.where.master(2).hang();
    all.pass(1'500ms); // every earlier lease is over
    const std::uint64_t before = all.where.the_store().read().writes;
    all.pass(500ms);
    CHECK(all.where.the_store().read().writes == before);
    for (std::size_t i = 0; i < 3; ++i) {
        all.where.master(i).resume();
    }
    all.judge();
}

TEST_CASE("masters killed and restarted with what they had written, a majority at once") {
    crew all(5, 3);
    for (const std::size_t i : {0U, 2U, 4U}) { // the durable ones
        REQUIRE(site::durable(i));
        all.where.master(i).kill();
    }
    for (const std::size_t i : {0U, 2U, 4U}) {
        all.where.restart_master(i, false);
    }
    all.judge();
}

TEST_CASE("masters killed and restarted empty, a majority at once and under a holder") {
    crew all(3, 4);
    for (int round = 0; round < 2; ++round) {
        all.holder();
        for (std::size_t i = 0; i < 2; ++i) {
            all.where.restart_master(i, true);
        }
        CHECK(all.goes_on());
    }
    all.judge();
}

TEST_CASE("all masters emptied at once, under a holder") {
    crew all(3, 4);
    for (int round = 0; round < 3; ++round) {
        all.holder();
        for (std::size_t i = 0; i < 3; ++i) {
            all.where.tell_master(i, {"FLUSHALL"});
        }
        CHECK(all.goes_on());
    }
    all.judge();
}

TEST_CASE("a rolling restart: one master after the other") {
    crew all(3, 3);
    for (int round = 0; round < 2; ++round) {
        for (std::size_t i = 0; i < 3; ++i) {
            all.where.restart_master(i, round == 1);
            CHECK(all.goes_on());
        }
    }
    all.judge();
}

TEST_CASE("a holder that is cut off from the masters gives way to the others") {
    if (!with_network()) {
        SKIP("no network namespaces: " << test::network::missing());
    }
    crew all(5, 3);
    std::vector<std::size_t> masters;
    for (std::size_t i = 0; i < all.where.masters(); ++i) {
        masters.push_back(i);
    }
    for (const bool requests : {true, false}) {
        const std::size_t host = all.where.host_of_worker(all.holder());
        if (requests) {
            all.where.network().cut(host, masters);
        } else {
            for (const std::size_t master : masters) {
                all.where.network().cut(master, {host});
            }
        }
        CHECK(all.goes_on());
        if (requests) {
            all.where.network().mend(host, masters);
        } else {
            for (const std::size_t master : masters) {
                all.where.network().mend(master, {host});
            }
        }
    }
    all.judge();
}

TEST_CASE("masters and workers split in two halves: the side of the majority goes on") {
    if (!with_network()) {
        SKIP("no network namespaces: " << test::network::missing());
    }
    crew all(5, 4);
    // Masters 3 and 4 with workers 2 and 3 on the one side, the rest on the other.
    const std::vector<std::size_t> few = {
        3, 4, all.where.host_of_worker(2), all.where.host_of_worker(3)};
    const std::vector<std::size_t> many = {
        0, 1, 2, all.where.host_of_worker(0), all.where.host_of_worker(1)};
    for (const std::size_t host : few) {
        all.where.network().cut(host, many);
    }
    for (const std::size_t host : many) {
        all.where.network().cut(host, few);
    }
    CHECK(all.goes_on());
    for (const std::size_t host : few) {
        all.where.network().mend(host, many);
    }
    for (const std::size_t host : many) {
        all.where.network().mend(host, few);
    }
    all.judge();
}
