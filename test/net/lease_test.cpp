// A held lock and masters that misbehave on cue. The rest of renewal, extension and loss: the
// suites unit and integration.
#include "quorum.hpp"

#include <boost/asio/deferred.hpp>

using namespace redlock;
using namespace redlock::test;

TEST_CASE("the longest wait and the longest name work") {
    started_quorum q;
    acquire_options options = patiently(30s);
    options.max_hold = std::chrono::milliseconds::max();
    std::string name(1'024, '\0');
    name.back() = '\n';
    lock held = q.acquired_everywhere(name, options);
    CHECK(held.resource() == name);
    CHECK(q.masters[0].keys().at("redlock:{" + name + "}") == held.secret());
    CHECK(q.release(held).value() == release_result::released);
}

TEST_CASE("a release that begins after its lock was abandoned is uncertain") {
    started_quorum q;
    lock held = q.acquired_everywhere("r");
    auto release = held.async_release(asio::deferred);
    held.abandon();
    std::optional<release_result> result;
    std::move(release)([&](error_code, release_result found) { result = found; });
    q.run_until([&] { return result.has_value(); });
    CHECK(result == release_result::uncertain);
    CHECK(q.keys() == 3);
}

TEST_CASE("a release after the loss shows the votes on the removal, not those on the acquire") {
    started_quorum q;
    lock held = q.acquired("r", once(200ms));
    for (fake_master& master : q.masters) {
        std::string key;
        q.run_until([&] {
            for (const auto& [name, value] : master.keys()) {
                key = value == held.secret() ? name : key;
            }
            return !key.empty();
        });
        master.set_key(key, "somebody");
    }
    q.wait(q.begin_wait_lost(held));
    q.run_until([&] { return q.manager->get_metrics().released[release_result::stolen] == 1; });
    release_outcome& released = q.release(held);
    CHECK(released.value() == release_result::stolen);
    REQUIRE(released.why().votes.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        const vote said = released.vote_of(i).vote;
        CHECK((said == vote::owned_by_other || said == vote::pending)); // two decide
    }
}
