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

struct crew {
    crew(std::size_t masters, std::size_t workers) : where(options(masters, workers)) {
        REQUIRE(goes_on()); // before any fault
    }

    static site_options options(std::size_t masters, std::size_t workers) {
        site_options result;
        result.program = SOAK;
        result.masters = masters;
        result.workers = workers;
        result.namespaces = test::network::missing().empty();
        result.seed = 1;
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

    // What the ones send to the others is lost.
    using hosts = std::vector<std::size_t>;
    void cut(const hosts& these, const hosts& others) {
        for (const std::size_t host : these) {
            where.network().cut(host, others);
        }
    }
    void mend(const hosts& these, const hosts& others) {
        for (const std::size_t host : these) {
            where.network().mend(host, others);
        }
    }

    static void pass(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

    site where;
};

void require_network() {
    if (const std::string missing = test::network::missing(); !missing.empty()) {
        SKIP("no network namespaces: " << missing);
    }
}

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
    require_network();
    crew all(5, 3);
    const crew::hosts masters = {0, 1, 2, 3, 4};
    for (const bool requests : {true, false}) {
        const crew::hosts holder = {all.where.host_of_worker(all.holder())};
        const crew::hosts& from = requests ? holder : masters;
        const crew::hosts& to = requests ? masters : holder;
        all.cut(from, to);
        CHECK(all.goes_on());
        all.mend(from, to);
    }
    all.judge();
}

TEST_CASE("masters and workers split in two halves: the side of the majority goes on") {
    require_network();
    crew all(5, 4);
    const crew::hosts few = {3, 4, all.where.host_of_worker(2), all.where.host_of_worker(3)};
    const crew::hosts many = {0, 1, 2, all.where.host_of_worker(0), all.where.host_of_worker(1)};
    all.cut(few, many);
    all.cut(many, few);
    CHECK(all.goes_on());
    all.mend(few, many);
    all.mend(many, few);
    all.judge();
}
