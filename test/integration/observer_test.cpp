// What an observer receives: each operation from its start to its end, each lock from its first
// moment to its last, and how the masters voted.
#include "guarded_quorum.hpp"

namespace redlock::test { namespace {

/// Records its notifications, and checks what must hold of every story. The manager runs in the
/// test's thread only.
class notebook : public observer {
public:
    struct page {
        operation_kind kind{};
        std::string resource;
        std::uint64_t lock = 0;
        std::chrono::milliseconds ttl{};
        unsigned ends = 0;
        error_code error;
        std::optional<release_result> released;
        std::optional<lock_state> found;
        diagnostics votes;
    };

    void started(const operation_start& what) override {
        CHECK(what.id != 0);
        CHECK((what.options != nullptr) == (what.kind == operation_kind::acquire));
        CHECK(pages.count(what.id) == 0);
        pages[what.id] = {
            what.kind, std::string(what.resource), what.lock, what.ttl, 0, {}, {}, {}, {}};
        story.push_back("started " + std::string(to_string(what.kind)));
    }
    void ended(const operation_end& what, const diagnostics& votes) override {
        REQUIRE(pages.count(what.id) == 1);
        page& mine = pages[what.id];
        CHECK(what.kind == mine.kind);
        CHECK(what.resource == mine.resource);
        ++mine.ends;
        mine.lock = what.lock;
        mine.error = what.error;
        mine.released = what.released;
        mine.found = what.found;
        mine.votes = votes;
        story.push_back("ended " + std::string(to_string(what.kind)));
    }
    void acquired(const held_lock& lock) override { note("acquired", lock); }
    void lost(const held_lock& lock, loss_reason reason, const diagnostics& votes) override {
        note("lost " + std::string(to_string(reason)), lock);
        loss_votes = votes;
    }
    void released(const held_lock& lock, release_result result) override {
        note("released " + std::string(to_string(result)), lock);
    }
    void abandoned(const held_lock& lock) override { note("abandoned", lock); }
    void held_long(const held_lock& lock, std::chrono::nanoseconds held) override {
        note("held long", lock);
        CHECK(held >= 100ms);
    }

    void note(const std::string& what, const held_lock& lock) {
        CHECK(lock.id != 0);
        CHECK(pages[lock.id].kind == operation_kind::acquire);
        CHECK(pages[lock.id].ends == 1);
        CHECK(pages[lock.id].resource == lock.resource);
        token = lock.fencing_token;
        story.push_back(what);
    }
    /// The last operation of that kind.
    const page& last(operation_kind kind) const {
        const page* found = nullptr;
        for (const auto& [id, one] : pages) {
            found = one.kind == kind ? &one : found;
        }
        REQUIRE(found != nullptr);
        return *found;
    }
    bool all_ended_once() const {
        return std::all_of(
            pages.begin(), pages.end(), [](const auto& one) { return one.second.ends == 1; });
    }
    bool tells(const std::string& what) const {
        return std::find(story.begin(), story.end(), what) != story.end();
    }

    std::map<std::uint64_t, page> pages;
    std::vector<std::string> story;
    diagnostics loss_votes;
    std::optional<std::uint64_t> token;
};

struct observed_quorum {
    explicit observed_quorum(
        std::size_t n, const std::function<void(config&)>& change = [](config&) {})
        : site(n, [&](config& c) {
              c.observer = notes;
              change(c);
          }) {}

    std::shared_ptr<notebook> notes = std::make_shared<notebook>();
    quorum_fixture site;
};

using story = std::vector<std::string>;

TEST_CASE("an observer sees a lock from its acquire to its release, with the votes") {
    observed_quorum it(3);
    lock mine = it.site.take_everywhere("r", once(10s));
    CHECK(it.notes->story == story{"started acquire", "ended acquire", "acquired"});
    const auto& acquire = it.notes->last(operation_kind::acquire);
    CHECK(acquire.resource == "r");
    CHECK(acquire.ttl == 10s);
    CHECK(!acquire.error);
    CHECK(acquire.votes.attempts == 1);
    CHECK(acquire.votes.votes.size() == 3);
    CHECK(count_votes(acquire.votes, vote::granted) >= 2);

    CHECK(!it.site.me.extend(mine, 12s));
    const auto& extend = it.notes->last(operation_kind::extend);
    CHECK(extend.ttl == 12s);
    CHECK(it.notes->pages.at(extend.lock).resource == "r");
    CHECK(count_votes(extend.votes, vote::granted) >= 2);

    CHECK(it.site.me.release(mine) == release_result::released);
    CHECK(it.notes->last(operation_kind::release).released == release_result::released);
    CHECK(
        it.notes->story
        == story{
            "started acquire",
            "ended acquire",
            "acquired",
            "started extend",
            "ended extend",
            "started release",
            "ended release",
            "released released"});
    CHECK(it.notes->all_ended_once());
}

TEST_CASE("an observer sees which acquire was refused, and what a query found") {
    observed_quorum it(3);
    lock mine = it.site.take_everywhere("r");
    CHECK(it.site.me.acquire("r")->error == errc::contended);
    const auto& refused = it.notes->last(operation_kind::acquire);
    CHECK(refused.error == errc::contended);
    CHECK(refused.lock == 0);
    CHECK(count_votes(refused.votes, vote::held) >= 2);
    CHECK(contains(refused.votes.message, "contended"));

    it.site.me.query("r");
    const auto& query = it.notes->last(operation_kind::query);
    CHECK(query.found == lock_state::held);
    CHECK(count_votes(query.votes, vote::held) >= 2);

    const std::size_t before = it.notes->story.size();
    CHECK(it.site.me.acquire("")->error == errc::invalid_argument);
    CHECK(it.notes->story.size() == before); // refused arguments start no operation
}

TEST_CASE("what is cancelled ends for the observer as well, and once") {
    observed_quorum it(3);
    lock mine = it.site.take_everywhere("r");
    const auto begun = it.site.me.begin("r", waiting(1h));
    it.site.pass(20ms);
    it.site.me.cancel(begun);
    CHECK(it.notes->last(operation_kind::acquire).error == asio::error::operation_aborted);

    asio::cancellation_signal stop;
    bool done = false;
    mine.async_extend(
        10s,
        asio::bind_cancellation_slot(stop.slot(), [&](error_code, extend_result) { done = true; }));
    stop.emit(asio::cancellation_type::terminal);
    run_until(it.site.io, [&] { return done; });
    CHECK(it.notes->last(operation_kind::extend).error == asio::error::operation_aborted);
    it.site.pass(20ms);

    asio::cancellation_signal enough;
    bool asked = false;
    it.site.me.manager().async_query(
        "r", asio::bind_cancellation_slot(enough.slot(), [&](error_code, const lock_status&) {
            asked = true;
        }));
    enough.emit(asio::cancellation_type::terminal);
    run_until(it.site.io, [&] { return asked; });
    CHECK(it.notes->last(operation_kind::query).error == asio::error::operation_aborted);
    it.site.pass(20ms);
    CHECK(it.notes->all_ended_once());
}

TEST_CASE("a handle that is destroyed or abandoned, and a manager that closes, are reported") {
    observed_quorum it(3);
    { const lock mine = it.site.take_everywhere("dropped"); }
    run_until(it.site.io, [&] { return it.notes->tells("released released"); });

    lock left = it.site.take_everywhere("left", once_unrenewed(300ms));
    left.abandon();
    CHECK(it.notes->story.back() == "abandoned");

    const lock open = it.site.take_everywhere("open");
    it.site.me.close();
    CHECK(it.notes->story.back() == "lost closed");
    CHECK(it.notes->all_ended_once());
}

TEST_CASE("an observer receives the fencing token, and never the lock's token") {
    observed_quorum it(3, [](config& c) { c.protocol = protocol::guarded; });
    const lock mine = it.site.take_everywhere("r", with_token());
    CHECK(it.notes->token == mine.fencing_token());
    for (const auto& [id, one] : it.notes->pages) {
        CHECK(to_string(one.votes).find(mine.secret()) == std::string::npos);
    }
}

}} // namespace redlock::test
