// The life of a manager: before it runs, while it runs, while it closes, after that.
#include "quorum.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace redlock;
using namespace redlock::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("nothing works before the manager runs, which it does once") {
    quorum q;
    CHECK(q.acquire("r", patiently()).error() == errc::not_running);
    CHECK(q.query("r").error() == errc::not_running);
    CHECK(q.wait(q.begin_ready()).error() == errc::not_running);
    CHECK_FALSE(q.manager->get_health().ready);
    CHECK(q.manager->get_metrics().waiting == 0);
    CHECK(q.masters[0].connections_accepted() == 0);
    q.start();
    CHECK(q.wait(q.begin_run()).error() == asio::error::already_started);
    CHECK_THAT(q.log().back(), ContainsSubstring("async_run was called before"));
    CHECK(q.acquired("r").held());
    q.close();
    CHECK(!q.running->error());
    CHECK(q.wait(q.begin_run()).error() == errc::closed);
    quorum never_run;
    CHECK(!never_run.wait(never_run.begin_close()).error());
    CHECK(never_run.wait(never_run.begin_run()).error() == errc::closed);
    CHECK(never_run.acquire("r").error() == errc::closed);
}

TEST_CASE("close ends the waiting, releases what is let go, and lets run complete") {
    started_quorum q;
    q.hold_elsewhere("taken");
    lock first = q.acquired("a");
    lock second = q.acquired("b");
    lock third = q.acquired("c");
    loss_outcome& loss = q.begin_wait_lost(first);
    q.run_until([&] { return q.keys() == 11; });
    acquisition& waiting = q.begin_acquire("taken", patiently());
    q.run_until([&] { return q.manager->get_metrics().attempts >= 5; });
    nothing& closing = q.begin_close();
    CHECK(q.wait(waiting).error() == errc::closed);
    CHECK(q.wait(loss).value() == loss_reason::closed);
    CHECK_FALSE(first.held());
    CHECK_FALSE(second.held());
    CHECK_FALSE(closing.done()); // its holders may still act, and have not let go
    release_outcome& released = q.begin_release(first);
    { const lock dropped = std::move(third); }
    CHECK(!q.wait(closing).error());
    CHECK(q.wait(released).value() == release_result::expired);
    CHECK(!q.wait(*q.running).error());
    CHECK(q.manager->get_metrics().held == 0);
    CHECK(q.manager->get_metrics().waiting == 0);
    for (fake_master& master : q.masters) {
        q.run_until([&] { return master.connections_open() == 0; });
    }

    // Afterwards everything answers at once.
    CHECK(!q.wait(q.begin_close()).error());
    CHECK(q.acquire("r").error() == errc::closed);
    CHECK(q.query("r").error() == errc::closed);
    CHECK(q.wait(q.begin_ready()).error() == errc::closed);
    CHECK(q.extend(first, 5s).error() == errc::closed);
    CHECK(!q.release(first).error());
    CHECK(q.release(second).value() == release_result::uncertain);
    CHECK(q.wait(q.begin_wait_lost(second)).value() == loss_reason::closed);
    CHECK(q.keys() == 5); // somebody's, and of the lock that was not let go
}

TEST_CASE("close ends a wait for readiness and a query") {
    quorum q(3, [](config& c) { c.master_timeout = 1h; });
    q.masters[0].refuse_connections(true);
    q.masters[1].refuse_connections(true);
    q.start(1);
    q.masters[2].when("GET", fake_action::hang(), 1);
    nothing& ready = q.begin_ready();
    query_outcome& asked = q.begin_query("r");
    q.run_until([&] { return q.masters[2].count("GET") == 1; });
    nothing& closing = q.begin_close();
    CHECK(q.wait(ready).error() == errc::closed);
    q.wait(asked);
    CHECK((asked.error() == errc::closed || asked.value().state == lock_state::undecided));
    CHECK(!q.wait(closing).error());
}

TEST_CASE("a release ends an extension under way, and gives the same result when repeated") {
    started_quorum q(3, [](config& c) { c.master_timeout = 1h; });
    lock held = q.acquired("r");
    q.when("EVAL", fake_action::hang(), 1);
    extend_outcome& extension = q.begin_extend(held, 25s);
    q.run_until([&] { return q.count("EVAL") == 3; });
    release_outcome& first = q.begin_release(held);
    CHECK_FALSE(held.held()); // at once
    CHECK(held.valid());
    release_outcome& second = q.begin_release(held);
    CHECK(q.wait(extension).error() == errc::released);
    q.each(&fake_master::release_hung);
    CHECK(q.wait(first).value() == release_result::released);
    CHECK(q.wait(second).value() == release_result::released);
    CHECK(q.release(held).value() == release_result::released);
    CHECK(q.manager->get_metrics().released[release_result::released] == 1);
    CHECK(q.wait(q.begin_wait_lost(held)).error() == errc::released);
    q.run_until([&] { return q.keys() == 0; });
}

TEST_CASE("an empty handle holds nothing and takes no orders") {
    lock empty;
    CHECK_FALSE(empty.valid());
    CHECK_FALSE(empty.held());
    CHECK(empty.deadline() == time_point::min());
    CHECK(empty.remaining() == 0s);
    const auto ignore = [](auto&&...) {};
    const auto why = Catch::Matchers::MessageMatches(ContainsSubstring("check valid() first"));
    CHECK_THROWS_MATCHES(empty.resource(), std::logic_error, why);
    CHECK_THROWS_MATCHES(empty.secret(), std::logic_error, why);
    CHECK_THROWS_MATCHES(empty.async_extend(5s, ignore), std::logic_error, why);
    CHECK_THROWS_MATCHES(empty.async_release(ignore), std::logic_error, why);
    CHECK_THROWS_MATCHES(empty.async_wait_lost(ignore), std::logic_error, why);
    empty.abandon();
    lock other = std::move(empty);
    other = lock();
}

// The system goes on for minutes to send what was written to a socket that is closed in the
// ordinary way, while the next connection is already in use.
TEST_CASE(
    "a connection that is given up takes with it what was not sent, one that is done does not") {
    const bool gives_up = GENERATE(true, false);
    asio::io_context io;
    asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    config settings;
    settings.masters.emplace_back(
        "redis://127.0.0.1:" + std::to_string(acceptor.local_endpoint().port()));
    settings.connect_timeout = gives_up ? 100ms : 1h;
    settings.release_notifications = false;
    lock_manager manager(io.get_executor(), settings);
    manager.async_run([](error_code) {});
    asio::ip::tcp::socket peer(io);
    std::array<char, 4096> buffer{};
    error_code end;
    const std::function<void()> read = [&] {
        peer.async_read_some(asio::buffer(buffer), [&](error_code error, std::size_t) {
            end = error;
            if (!error) {
                read();
                if (!gives_up) {
                    manager.async_close([](error_code) {});
                }
            }
        });
    };
    acceptor.async_accept(peer, [&](error_code) { read(); });
    while (!end) {
        io.run_one();
    }
    const error_code reset = asio::error::connection_reset;
    const error_code eof = asio::error::eof;
    CHECK(end == (gives_up ? reset : eof));
}
