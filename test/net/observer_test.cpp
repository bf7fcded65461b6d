// What an observer receives: each operation from its start to its end, each lock from its first
// moment to its last, and how the masters voted.
#include "two_processes.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <span>

namespace redlock::test::in_memory { namespace {

using story = std::vector<std::string>;

/// Writes a line for each call, and checks what must hold of each of them.
class notebook : public observer {
public:
    void started(const operation& what) override {
        CHECK(what.id != 0);
        CHECK(under_way.emplace(what.id, what.resource).second);
        ttl = what.ttl;
        note("started", to_string(what.kind));
    }
    void ended(const operation& what, const error_code& result, const diagnostics& votes) override {
        CHECK(under_way[what.id] == what.resource);
        CHECK(under_way.erase(what.id) == 1);
        const bool won = what.kind == operation_kind::acquire && !result;
        CHECK((what.lock == what.id) == won);
        if (won) {
            locks.emplace(what.id, what.resource);
        }
        error = result;
        seen = votes;
        note("ended", to_string(what.kind));
    }
    void acquired(const held_lock& lock) override { note_of(lock, "acquired"); }
    void lost(const held_lock& lock, loss_reason reason, const diagnostics& votes) override {
        note_of(lock, "lost", to_string(reason));
        seen = votes;
    }
    void released(const held_lock& lock, release_result result) override {
        note_of(lock, "released", to_string(result));
    }
    void abandoned(const held_lock& lock) override { note_of(lock, "abandoned"); }
    void held_long(const held_lock& lock, std::chrono::nanoseconds held) override {
        note_of(lock, "held long");
        CHECK(held >= 1min);
    }
    void members_changed(std::uint64_t generation, std::span<const std::string> members) override {
        note("members", std::to_string(generation) + " " + std::to_string(members.size()));
    }

    std::size_t votes(vote what) const {
        return static_cast<std::size_t>(std::ranges::count(seen.votes, what, &master_vote::vote));
    }

    story lines;
    std::map<std::uint64_t, std::string> under_way;
    std::map<std::uint64_t, std::string> locks;
    std::chrono::milliseconds ttl{};
    std::optional<std::uint64_t> token;
    error_code error;
    diagnostics seen;
    std::string errors; // in the log

private:
    void note(const std::string& what, std::string_view more) {
        lines.push_back(what + " " + std::string(more));
    }
    void note_of(const held_lock& lock, const std::string& what, std::string_view more = "") {
        CHECK(locks[lock.id] == lock.resource);
        token = lock.fencing_token;
        note(what, more);
    }
};

config observed_by(const std::shared_ptr<notebook>& notes) {
    config settings;
    settings.observer = notes;
    settings.held_warning = 1min;
    settings.log.level = log_level::error;
    settings.log.write = [notes](log_level, std::string_view line) { notes->errors += line; };
    return settings;
}

struct observed_site {
    std::shared_ptr<notebook> notes = std::make_shared<notebook>();
    two_processes site{observed_by(notes)};
};

TEST_CASE("an observer sees a lock from its acquire to its release, with the votes") {
    observed_site it;
    acquire_options options = once();
    options.fencing = true;
    blocking::lock mine = it.site.mine.acquire("r", options);
    CHECK(it.notes->ttl == options.ttl);
    CHECK(!it.notes->error);
    CHECK(it.notes->seen.attempts == 1);
    CHECK(it.notes->seen.votes.size() == 3);
    CHECK(it.notes->votes(vote::granted) >= 2);
    CHECK(to_string(it.notes->seen).find(mine.secret()) == std::string::npos);
    CHECK(it.notes->token == mine.fencing_token());
    mine.extend(12s);
    CHECK(it.notes->ttl == 12s);
    CHECK(it.notes->votes(vote::granted) >= 2);
    it.site.quorum.advance(5s);
    CHECK(mine.release() == release_result::released);
    CHECK(it.notes->seen.message == "released");
    CHECK(it.notes->seen.elapsed < 1s); // without the time of the lock
    CHECK(
        it.notes->lines
        == story{
            "started acquire",
            "ended acquire",
            "acquired ",
            "started extend",
            "ended extend",
            "started renew",
            "ended renew",
            "started release",
            "ended release",
            "released released"});
    CHECK(it.notes->under_way.empty());
}

TEST_CASE("an observer sees which acquire was refused, and what a query found") {
    observed_site it;
    it.site.quorum.occupy("r", 1min);
    CHECK(
        error_of([&] { static_cast<void>(it.site.mine.acquire("r", once())); }) == errc::contended);
    CHECK(it.notes->error == errc::contended);
    CHECK(it.notes->votes(vote::held) >= 2);
    CHECK(it.notes->seen.message.find("contended") != std::string::npos);
    it.site.mine.call(
        [&](auto token) { return it.site.mine.async().async_query("r", std::move(token)); });
    CHECK(it.notes->seen.message == "held");
    CHECK(it.notes->votes(vote::held) >= 2);
    const std::size_t before = it.notes->lines.size();
    CHECK(
        error_of([&] { static_cast<void>(it.site.mine.acquire("", once())); })
        == errc::invalid_argument);
    CHECK(it.notes->lines.size() == before); // refused arguments start no operation
}

TEST_CASE("what is cancelled ends for the observer as well, and once") {
    observed_site it;
    const auto cancelled = [&](const auto& start) {
        boost::asio::cancellation_signal stop;
        bool done = false;
        start(boost::asio::bind_cancellation_slot(stop.slot(), [&](auto&&...) { done = true; }));
        stop.emit(boost::asio::cancellation_type::terminal);
        CHECK(it.site.quorum.advance_until([&] { return done; }));
        CHECK(it.notes->error == operation_aborted);
        it.site.quorum.advance(20ms);
        CHECK(it.notes->under_way.empty());
    };
    lock_manager& manager = it.site.mine.async();
    blocking::lock mine = it.site.mine.acquire("s", once());
    it.site.quorum.occupy("r", 1min);
    cancelled([&](auto h) { manager.async_acquire("r", waiting(), std::move(h)); });
    cancelled([&](auto h) { mine.async().async_extend(10s, std::move(h)); });
    cancelled([&](auto h) { manager.async_query("r", std::move(h)); });
}

TEST_CASE("an observer sees what becomes of each lock") {
    observed_site it;
    const auto comes = [&](const std::string& line) {
        return it.site.quorum.advance_until([&] { return it.notes->lines.back() == line; }, 2min);
    };
    static_cast<void>(it.site.mine.acquire("r", once())); // and dropped
    CHECK(comes("released released"));
    it.site.mine.acquire("s", once()).async().abandon();
    CHECK(comes("abandoned "));
    blocking::lock mine = it.site.mine.acquire("r", once());
    CHECK(comes("held long "));
    it.site.quorum.occupy("r", 10s);
    CHECK(comes("lost owned_by_other"));
    CHECK(it.notes->votes(vote::owned_by_other) >= 2);
    CHECK(it.notes->seen.message == "lost: owned_by_other");
    CHECK(it.notes->errors.find("lost: owned_by_other") != std::string::npos);
    CHECK(it.site.mine.async().get_metrics().lost[loss_reason::owned_by_other] == 1);
    mine = it.site.mine.acquire("r", waiting());
    it.site.mine.async().async_close([](error_code) {});
    CHECK(comes("lost closed"));
    CHECK(it.notes->under_way.empty());
}

TEST_CASE("an observer is notified when the members change") {
    const auto notes = std::make_shared<notebook>();
    testing::virtual_quorum quorum(4, observed_by(notes));
    const std::vector<std::string> members = quorum.manager().get_health().members;
    REQUIRE(members.size() == 4);
    std::optional<error_code> changed;
    quorum.manager().async_remove_member(members[3], [&](error_code error) { changed = error; });
    REQUIRE(quorum.advance_until([&] { return changed.has_value(); }, 1h));
    CHECK(changed == error_code());
    CHECK(notes->lines == story{"members 2 3"});
}

}} // namespace redlock::test::in_memory
