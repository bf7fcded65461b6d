// A held lock and masters that misbehave on cue. The rest of renewal, extension and loss: the
// suites unit and integration.
#include "quorum.hpp"

using namespace redlock;
using namespace redlock::test;

TEST_CASE("without renewal a lock is lost a tenth of its ttl before the deadline, by a timer") {
    started_quorum q;
    lock held = q.acquired("r", once(300ms));
    loss_outcome& loss = q.wait(q.begin_wait_lost(held));
    CHECK(!loss.error());
    CHECK(loss.value() == loss_reason::expired);
    CHECK_FALSE(held.held());
    CHECK(held.valid());
    CHECK(clock::now() >= held.deadline() - 30ms);
    CHECK(held.remaining() == 0s);
    CHECK(q.manager->get_metrics().lost.total() == 1);
    CHECK(q.manager->get_metrics().held == 0);
    // A loss that was reported to one waiter is reported to the next as well.
    CHECK(q.wait(q.begin_wait_lost(held)).value() == loss_reason::expired);
    CHECK(q.extend(held, 300ms).error() == errc::lost);
    q.run_until([&] { return q.keys() == 0; });
}

TEST_CASE("the longest wait and the longest name work") {
    started_quorum q;
    acquire_options options = patiently(30s);
    options.max_hold = std::chrono::milliseconds::max();
    std::string name(resource_name_max, '\0');
    name.back() = '\n';
    lock held = q.acquired_everywhere(name, options);
    CHECK(held.resource() == name);
    CHECK(q.masters[0].keys().at("redlock:{" + name + "}") == held.secret());
    CHECK(q.release(held).value() == release_result::released);
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
    q.run_until([&] { return q.manager->get_metrics().released_late == 1; });
    release_outcome& released = q.release(held);
    CHECK(released.value() == release_result::stolen);
    REQUIRE(released.why().votes.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        const vote said = released.vote_of(i).vote;
        CHECK((said == vote::owned_by_other || said == vote::pending)); // two decide
    }
}
