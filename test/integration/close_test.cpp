// The end of a manager: waiters and holders are notified, locks that holders let go are released,
// connections are closed.
#include "quorum_fixture.hpp"

namespace redlock::test { namespace {

// Connections of the library: each has a name, and those that look at the masters have none.
bool still_connected(const quorum_of_masters& masters) {
    for (std::size_t i = 0; i < masters.size(); ++i) {
        if (masters[i].command({"CLIENT", "LIST"}).find("name=redlock ") != std::string::npos) {
            return true;
        }
    }
    return false;
}

TEST_CASE("closing ends waiters, releases what is let go, and closes the connections") {
    quorum_fixture site(5);
    const lock kept = site.take_everywhere("kept", once(30s));
    std::vector<lock> held;
    std::vector<std::shared_ptr<loss>> losses;
    for (int i = 0; i < 20; ++i) {
        held.push_back(site.me.take("held-" + std::to_string(i), once(30s)));
        losses.push_back(site.me.watch(held.back()));
        held.back().async_wait_lost([&held, i](error_code, loss_reason) { held[i] = lock(); });
    }
    std::vector<acquisition_ptr> waits;
    for (int i = 0; i < 20; ++i) {
        acquire_options options = once(30s);
        options.wait = wait_for::forever();
        waits.push_back(site.me.begin("held-" + std::to_string(i), options));
    }
    site.pass(50ms);
    std::vector<acquisition_ptr> fresh; // in the middle of an attempt
    for (int i = 0; i < 20; ++i) {
        fresh.push_back(site.me.begin("fresh-" + std::to_string(i), once(30s)));
    }
    site.me.close();
    for (const lock& one : held) {
        CHECK_FALSE(one.held());
    }
    run_until(site.io, [&] {
        return std::all_of(
            losses.begin(), losses.end(), [](const auto& one) { return one->signalled; });
    });
    for (const auto& one : losses) {
        CHECK(!one->error);
        CHECK(one->reason == loss_reason::closed);
    }
    for (const acquisition_ptr& one : waits) {
        site.me.finish(one);
        CHECK(one->error == errc::closed);
        CHECK(one->error == condition::stopped);
    }
    for (const acquisition_ptr& one : fresh) {
        site.me.finish(one);
        CHECK((one->error == errc::closed || !one->error));
        CHECK_FALSE(one->lock.held());
    }
    CHECK_FALSE(kept.held());
    CHECK(site.masters.total_keys("*{kept}") == 5); // its holder may still act
    CHECK(site.masters.total_keys("*{held-*}") == 0);
    CHECK(site.me.run_result() == error_code());
    CHECK(site.eventually([&] { return !still_connected(site.masters); }));
    CHECK(site.me.count().held == 0);
    CHECK(site.me.count().waiting == 0);
}

TEST_CASE("the time of a release does not include that of the lock") {
    quorum_fixture site(1);
    lock mine = site.me.take("r");
    for (int i = 0; i < 20; ++i) {
        lock other = site.me.take("other");
        CHECK(site.me.release(other) == release_result::released);
    }
    const auto before = clock::now();
    diagnostics why;
    CHECK(site.me.release(mine, &why) == release_result::released);
    CHECK(why.elapsed <= clock::now() - before);
}

TEST_CASE("closing does not wait for masters that hang, and what was sent to them follows") {
    quorum_fixture site(5, [](config& c) { c.master_timeout = 500ms; });
    lock mine = site.take_everywhere("r", once(30s));
    site.masters[0].hang();
    site.masters[1].hang();
    const auto before = std::chrono::steady_clock::now();
    mine = lock();
    site.me.close();
    CHECK(std::chrono::steady_clock::now() - before < 10s);
    CHECK(site.masters[2].keys().empty());
    site.masters[0].resume();
    site.masters[1].resume();
    // The removals were on the wire; the keys do not need to expire.
    CHECK(site.eventually([&] { return site.masters.total_keys() == 0; }, 3s));
}

}} // namespace redlock::test
