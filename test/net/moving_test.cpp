// A manager is a handle: what was made of it does not keep its address.
#include "quorum.hpp"

#include <boost/asio/deferred.hpp>

using namespace redlock;
using namespace redlock::test;

TEST_CASE("a manager may be moved") {
    started_quorum q;
    lock held = q.acquired("a");
    lock_manager moved = std::move(*q.manager);
    q.manager.reset(); // what was moved from is empty
    CHECK(held.held());
    CHECK(moved.get_health().ready);
    q.manager.emplace(std::move(moved));
    CHECK(!q.acquire("b").error());
    quorum other;
    other.start();
    *other.manager = lock_manager(other.io.get_executor(), other.settings); // closes the old one
    other.wait(*other.running);
    CHECK(!other.running->error());
}

TEST_CASE("what was made of a manager goes on after the manager was moved and destroyed") {
    started_quorum q;
    election leaders(*q.manager, "leaders");
    reentrant_mutex mutex(*q.manager, "mutex", once());
    const reentrant_owner owner;
    auto acquires = q.manager->async_acquire("r", once(), boost::asio::deferred);
    auto queries = q.manager->async_query("r", boost::asio::deferred);
    lock_manager moved = std::move(*q.manager);
    q.manager.reset();

    lock term;
    leaders.async_campaign([&](error_code, lock got) { term = std::move(got); });
    reentrant_hold hold;
    mutex.async_acquire(owner, [&](error_code, reentrant_hold got) { hold = std::move(got); });
    lock mine;
    std::move(acquires)([&](error_code, lock got) { mine = std::move(got); });
    q.run_until([&] { return term.valid() && hold.held() && mine.valid(); });
    CHECK(term.held());
    CHECK(mine.held());

    lock_state state = lock_state::free;
    std::move(queries)([&](error_code, lock_status got) { state = got.state; });
    q.run_until([&] { return state == lock_state::held; });
    CHECK(moved.get_metrics().held == 3);
    q.manager.emplace(std::move(moved));
}
