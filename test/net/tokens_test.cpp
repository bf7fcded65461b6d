// Completion tokens: the default one, errors with votes, diagnostics within other adapters.
#include "quorum.hpp"
#include "support/error_of.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace redlock::test { namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

TEST_CASE("the default token is deferred, and an error has the votes") {
    started_quorum q;
    std::optional<error_with_diagnostics> thrown;
    const auto acquire_twice = [&]() -> asio::awaitable<void> {
        auto first = q.manager->async_acquire("r", asio::use_awaitable); // options may be left out
        const lock held = co_await std::move(first);
        try {
            const lock mine = co_await q.manager->async_acquire("r", once());
        } catch (const error_with_diagnostics& error) {
            thrown = error;
        }
    };
    redlock::test::run(q.io, acquire_twice);
    REQUIRE(thrown);
    CHECK(thrown->code() == errc::contended);
    CHECK(thrown->get_diagnostics().votes.size() == 3);
    CHECK(thrown->get_diagnostics().resource == "r");
    const std::string text = thrown->what();
    CHECK_THAT(text, StartsWith("'r': contended: ") && ContainsSubstring(" held "));
    CHECK(text.find("contended") == text.rfind("contended")); // each thing is said once
    CHECK_THAT(text, EndsWith(" [redlock:1]"));
}

TEST_CASE("an error without an attempt is thrown with the reason, if there is one") {
    quorum q;
    const auto text_of = [&](auto begin) {
        auto future = begin(with_diagnostics(asio::use_future));
        q.run_until([&] { return future.wait_for(0s) == std::future_status::ready; });
        try {
            static_cast<void>(future.get());
        } catch (const error_with_diagnostics& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK_THAT(
        text_of([&](auto token) { return q.manager->async_acquire("r", once(), token); }),
        ContainsSubstring("call async_run first"));
    q.start();
    CHECK_THAT(
        text_of([&](auto token) { return q.manager->async_acquire("r", once(1ms), token); }),
        StartsWith("'r': ttl is 1 ms; allowed: "));
    q.wait(q.begin_close());
    CHECK(
        text_of([&](auto token) { return q.manager->async_acquire("r", once(), token); })
        == "'r': the lock manager was closed [redlock:7]");
}

TEST_CASE("with_diagnostics fills the diagnostics of the caller, also within other adapters") {
    started_quorum q;
    const lock held = q.acquired("r");
    diagnostics why;
    std::size_t votes_seen = 0;
    bool done = false;
    const auto note = [&](auto&&...) {
        votes_seen = why.votes.size();
        done = true;
    };
    const auto acquire = [&](auto&& token) {
        q.manager->async_acquire("r", once(), std::forward<decltype(token)>(token));
    };
    SECTION("around a handler") {
        acquire(with_diagnostics(why, note));
    }
    SECTION("around as_tuple") {
        acquire(with_diagnostics(why, asio::as_tuple(note)));
    }
    SECTION("within as_tuple") {
        acquire(asio::as_tuple(with_diagnostics(why, note)));
    }
    SECTION("within bind_executor") {
        acquire(asio::bind_executor(asio::make_strand(q.io), with_diagnostics(why, note)));
    }
    SECTION("around one that throws") {
        acquire(with_diagnostics(why, with_diagnostics(note)));
    }
    SECTION("of a composed operation") {
        auto token = with_diagnostics(why, note);
        asio::async_compose<decltype(token), void(error_code)>(
            [&acquire, begun = false](auto& self, error_code error = {}, lock = {}) mutable {
                if (std::exchange(begun, true)) {
                    self.complete(error);
                } else {
                    acquire(std::move(self));
                }
            },
            token);
    }
    q.run_until([&] { return done; });
    CHECK(votes_seen == 3);
    CHECK_THAT(why.message, StartsWith("contended: "));
}

TEST_CASE("what is associated with a handler stays so within with_diagnostics") {
    started_quorum q;
    const auto strand = asio::make_strand(q.io);
    const lock held = q.acquired("r");
    asio::cancellation_signal cancel;
    diagnostics why;
    int calls = 0;
    error_code ended;
    const auto bound = [&](auto handler) {
        return asio::bind_cancellation_slot(cancel.slot(), asio::bind_executor(strand, handler));
    };
    const auto note = [&](error_code error) {
        ++calls;
        CHECK(strand.running_in_this_thread());
        ended = error;
    };
    SECTION("with diagnostics of the caller") {
        const auto handler = bound([&](error_code error, lock) { note(error); });
        q.manager->async_acquire("r", patiently(), with_diagnostics(why, handler));
    }
    SECTION("with an exception") {
        const auto handler =
            bound([&](const std::exception_ptr& error, lock) { note(error_of(error)); });
        q.manager->async_acquire("r", patiently(), with_diagnostics(handler));
    }
    q.poll();
    cancel.emit(asio::cancellation_type::terminal);
    q.run_until([&] { return calls > 0; });
    CHECK(calls == 1);
    CHECK(ended == asio::error::operation_aborted);
}

}} // namespace redlock::test
