// The end of a manager whose masters hang. The rest of it: the suites unit and net.
#include "quorum_fixture.hpp"

namespace redlock::test { namespace {

// Connections of the library: each has a name, and those that look at the masters have none.
bool connected(const master_process& master) {
    return contains(master.command({"CLIENT", "LIST"}), "name=redlock ");
}

TEST_CASE("closing does not wait for masters that hang, and what was sent to them follows") {
    quorum_fixture site(5, [](config& c) { c.master_timeout = 500ms; });
    lock mine = site.take_everywhere("r", once(30s));
    CHECK(connected(site.masters[2]));
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
    for (const master_process& master : site.masters) {
        CHECK(site.eventually([&] { return !connected(master); }));
    }
}

}} // namespace redlock::test
