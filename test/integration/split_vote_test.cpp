// Contenders that each reach another master first: nobody has a majority, and yet they settle.
#include "quorum_fixture.hpp"
#include "relay.hpp"

namespace redlock::test { namespace {

// Contender i reaches master i first: its wires to the others are held until every master has
// granted to its own.
struct split_vote {
    split_vote() : masters(n) {
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
                wires.emplace_back(io, masters[j].port());
            }
        }
        for (std::size_t i = 0; i < n; ++i) {
            std::vector<std::string> urls;
            for (std::size_t j = 0; j < n; ++j) {
                urls.push_back(wire(i, j).url());
            }
            config settings = config_for(urls);
            settings.health_check_interval = 1h; // a PING would be held back as well
            settings.master_timeout = 10s;
            settings.retry_delay_min = 50ms; // an arbiter has four times as long to answer
            contenders.push_back(std::make_unique<client>(io, settings));
        }
        for (auto& one : contenders) {
            one->until_admitted(n);
        }
    }

    relay& wire(std::size_t contender, std::size_t master) { return wires[contender * n + master]; }

    std::vector<acquisition_ptr> split(const acquire_options& options) {
        for (std::size_t i = 0; i < n; ++i) {
            wire(i, (i + 1) % n).hold();
            wire(i, (i + 2) % n).hold();
        }
        std::vector<acquisition_ptr> begun;
        for (auto& one : contenders) {
            begun.push_back(one->begin("r", options));
        }
        run_until(io, [this] { // each master has granted to its own, and the rest is in flight
            std::size_t waiting = 0;
            for (const relay& one : wires) {
                waiting += one.waiting() > 0 ? 1U : 0U;
            }
            return waiting == n * (n - 1) && masters.total_keys() == n;
        });
        for (relay& one : wires) {
            one.let_go();
        }
        return begun;
    }

    static constexpr std::size_t n = 3;
    asio::io_context io;
    quorum_of_masters masters;
    std::vector<relay> wires;
    std::vector<std::unique_ptr<client>> contenders;
};

TEST_CASE("three contenders with one vote each are all contended, and leave nothing") {
    split_vote site;
    const auto begun = site.split(once());
    for (std::size_t i = 0; i < begun.size(); ++i) {
        site.contenders[i]->finish(begun[i]);
        CHECK(*begun[i] == errc::contended);
        CHECK(begun[i]->why.votes[i].vote == vote::granted);
        CHECK(count_votes(begun[i]->why, vote::held) >= 1);
    }
    run_until(site.io, [&] { return site.masters.total_keys() == 0; });
}

TEST_CASE(
    "three contenders that split the vote settle in the second round, and each get their turn") {
    split_vote site;
    const auto begun = site.split(waiting(25s));
    std::size_t served = 0;
    while (served < begun.size()) {
        const auto holds = [](const acquisition_ptr& one) { return one->lock.held(); };
        run_until(site.io, [&] { return std::any_of(begun.begin(), begun.end(), holds); });
        CHECK(std::count_if(begun.begin(), begun.end(), holds) == 1);
        const auto holder = std::find_if(begun.begin(), begun.end(), holds);
        INFO((*holder)->explained());
        CHECK((*holder)->why.attempts >= 2); // nobody has won the split vote
        CHECK((served > 0 || (*holder)->why.attempts == 2));
        client& its = *site.contenders[static_cast<std::size_t>(holder - begun.begin())];
        CHECK(its.release((*holder)->lock) == release_result::released);
        ++served;
    }
    run_until(site.io, [&] { return site.masters.total_keys() == 0; });
    for (const auto& one : site.contenders) {
        CHECK(one->count().waiting == 0);
        CHECK(one->count().held == 0);
    }
}

}} // namespace redlock::test
