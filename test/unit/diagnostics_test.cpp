#include "config/explain.hpp"
#include "support/test.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/logger.hpp>
#include <redlock/metrics.hpp>
#include <redlock/observer.hpp>
#include <redlock/protocol.hpp>

#include <boost/asio/error.hpp>

#include <unistd.h>

#include <cstdio>

namespace diagnostics_test { namespace {

using namespace redlock;

template <typename Enum>
void check_names(int count) {
    std::set<std::string_view> names;
    for (int i = 0; i < count; ++i) {
        const std::string_view name = to_string(static_cast<Enum>(i));
        CHECK(name != "unknown");
        names.insert(name);
    }
    CHECK(names.size() == static_cast<std::size_t>(count));
    CHECK(to_string(static_cast<Enum>(count)) == "unknown");
}

master_vote said(
    std::string endpoint,
    vote what,
    std::chrono::microseconds latency = 0us,
    std::string text = {}) {
    master_vote out;
    out.endpoint = std::move(endpoint);
    out.vote = what;
    out.latency = latency;
    out.text = std::move(text);
    return out;
}

diagnostics of(std::vector<master_vote> votes) {
    diagnostics out;
    out.votes = std::move(votes);
    return out;
}

TEST_CASE("every enumerator has a name of its own") {
    check_names<vote>(10);
    check_names<release_result>(4);
    check_names<loss_reason>(7);
    check_names<lock_state>(3);
    check_names<log_level>(5);
    check_names<master_state>(8);
    check_names<operation_kind>(5);
    CHECK(to_string(vote::timed_out) == "timed_out");
    CHECK(to_string(release_result::stolen) == "stolen");
    CHECK(to_string(loss_reason::max_hold_reached) == "max_hold_reached");
    CHECK(to_string(lock_state::undecided) == "undecided");
    CHECK(to_string(master_state::quarantined) == "quarantined");
    CHECK(to_string(log_level::warning) == "warning");
    CHECK(to_string(operation_kind::renew) == "renew");
    CHECK(to_string(extend_result::capped) == "capped");
    CHECK(to_string(protocol::plain) == "plain");
}

TEST_CASE("diagnostics are one readable line") {
    diagnostics it =
        of({said("a:1", vote::granted, 400us),
            said("b:1", vote::held, 300us),
            said("c:1", vote::error, 0us, "OOM command not allowed")});
    it.message = "contended";
    it.attempts = 3;
    it.quorum = 2;
    it.elapsed = 12'400us;
    CHECK(
        to_string(it)
        == "contended after 3 attempts in 12.4 ms, 2 of 3 votes needed: "
           "a:1 granted 0.4 ms, b:1 held 0.3 ms, c:1 error (OOM command not allowed)");
    it.attempts = 1;
    CHECK(to_string(it).find("after 1 attempt in") != std::string::npos);
    it.message = "it is lost; stop the work";
    CHECK(
        to_string(it).starts_with("it is lost after 1 attempt in 12.4 ms; stop the work, 2 of 3"));
    CHECK(to_string(diagnostics{}) == "granted");
    for (const std::string text : {"", "12 s left: restarted recently"}) { // the time is said once
        diagnostics early = of({said("a:1", vote::quarantined, 0us, text)});
        early.votes[0].time_left = 12'000ms;
        early.message = "no quorum";
        early.quorum = 1;
        CHECK(
            to_string(early)
            == "no quorum, 1 of 1 votes needed: a:1 quarantined ("
                   + (text.empty() ? "12000 ms left" : text) + ")");
    }
}

TEST_CASE("text from the network cannot move the cursor") {
    const std::string line = to_string(
        of({said("a:1", vote::error, 0us, "x\r\n\x1b[2Jy\x7f\0z" + std::string("\0", 1))}));
    CHECK(line.find("x\\x0d\\x0a\\x1b[2Jy\\x7f") != std::string::npos);
    for (const char c : line) {
        CHECK(static_cast<unsigned char>(c) >= 0x20);
    }
}

TEST_CASE("a lock's status is one readable line") {
    lock_status it;
    it.state = lock_state::held;
    it.owner_digest = "0123456789abcdef";
    it.time_left = 900ms;
    it.masters.resize(2);
    it.masters[0].endpoint = "a:1";
    it.masters[0].vote = vote::held;
    it.masters[0].owner_digest = it.owner_digest;
    it.masters[0].time_left = 900ms;
    it.masters[1].endpoint = "b:1";
    it.masters[1].vote = vote::unreachable;
    it.masters[1].text = "connection\nrefused";
    CHECK(
        to_string(it)
        == "held by 0123456789abcdef, 900 ms left: a:1 held by 0123456789abcdef "
           "(900 ms left), b:1 unreachable (connection\\x0arefused)");
}

TEST_CASE("health is one readable line, and loud without quarantine") {
    health it;
    it.ready = true;
    it.admitted = 1;
    it.quorum = 2;
    it.masters.resize(2);
    it.masters[0].endpoint = "a:1";
    it.masters[0].state = master_state::admitted;
    it.masters[1].endpoint = "b:1";
    it.masters[1].state = master_state::ineligible;
    it.masters[1].text = "is a replica";
    CHECK(
        to_string(it)
        == "ready, 1 of 2 masters admitted, 2 needed: a:1 admitted, b:1 ineligible (is a replica)");
    it.ready = false;
    CHECK(to_string(it).starts_with("not ready, "));
}

TEST_CASE("the sentence on an outcome counts the votes that matter") {
    const diagnostics it =
        of({said("a", vote::granted),
            said("b", vote::held),
            said("c", vote::held),
            said("d", vote::unreachable),
            said("e", vote::absent)});
    CHECK(detail::message_of(error_code(), it) == "");
    CHECK(
        detail::message_of(errc::contended, it)
        == "contended: 2 of 5 masters hold it for another owner");
    CHECK(detail::message_of(errc::no_quorum, it) == "no quorum: 4 of 5 masters could vote");
    CHECK(
        detail::message_of(
            errc::no_quorum,
            of({said("a", vote::granted), said("b", vote::pending), said("c", vote::pending)}))
        == "no quorum: 1 of 3 masters voted, 2 pending");
    diagnostics early = of({said("a", vote::unreachable), said("b", vote::granted)});
    early.quorum = 2;
    early.votes.front().text = "not connected yet";
    CHECK(
        detail::message_of(errc::no_quorum, early)
        == "no quorum: 1 of 2 masters could vote; the manager was started just now: await its "
           "readiness (async_ready) first");
    diagnostics strange =
        of({said("a", vote::owned_by_other),
            said("b", vote::owned_by_other),
            said("c", vote::pending)});
    strange.quorum = 2;
    CHECK(
        detail::message_of(errc::no_quorum, strange)
        == "no quorum: 2 of 3 masters have a key that is not a lock");
    CHECK(
        detail::message_of(errc::contended, of({said("a", vote::pending)}))
        == "contended: this process holds it");
    CHECK(detail::message_of(boost::asio::error::operation_aborted, it) == "cancelled");
    CHECK(detail::message_of(errc::lost, it) == error_code(errc::lost).message());
}

TEST_CASE("the logger of the standard error writes one line with its level") {
    CHECK(log_to_stderr().level == log_level::warning);
    const logger mine = log_to_stderr(log_level::info);
    CHECK(mine.level == log_level::info);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
    REQUIRE(file);
    std::fflush(stderr);
    const int before = ::dup(STDERR_FILENO);
    ::dup2(::fileno(file.get()), STDERR_FILENO);
    mine.write(log_level::error, "the lock 'r' was lost");
    ::dup2(before, STDERR_FILENO);
    ::close(before);
    std::rewind(file.get());
    std::array<char, 100> text{};
    const std::size_t size = std::fread(text.data(), 1, text.size(), file.get());
    CHECK(std::string_view(text.data(), size) == "redlock: error: the lock 'r' was lost\n");
}

}} // namespace diagnostics_test
