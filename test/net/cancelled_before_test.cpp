// An operation that was cancelled before it begins sends nothing.
#include "quorum.hpp"

#include <redlock/blocking.hpp>

#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <stop_token>

namespace redlock::test { namespace {

const error_code not_begun = asio::error::operation_aborted;
const std::string unused_token(40, 'a');

std::size_t requests(const quorum& q) {
    return q.count("SET") + q.count("EVAL") + q.count("EVALSHA") + q.count("GET");
}

using operation = std::function<asio::awaitable<void>()>;

struct named_operation {
    std::string name;
    operation begin;
};

// Every operation that a coroutine can begin, the ones on a held lock included.
std::vector<named_operation>
all_operations(quorum& q, lock& held, reentrant_mutex& mutex, election& leaders) {
    const acquire_options options = patiently();
    return {
        {"acquire",
         [&q, options]() -> asio::awaitable<void> {
             std::string name = "r";
             static_cast<void>(co_await q.manager->async_acquire(std::move(name), options));
         }},
        {"acquire several",
         [&q, options]() -> asio::awaitable<void> {
             std::vector<std::string> names(1, "r");
             names.emplace_back("s");
             static_cast<void>(co_await q.manager->async_acquire(std::move(names), options));
         }},
        {"acquire a slot",
         [&q, options]() -> asio::awaitable<void> {
             std::string name = "pool";
             static_cast<void>(
                 co_await q.manager->async_acquire(redlock::slots(std::move(name), 3), options));
         }},
        {"acquire with a token",
         [&q]() -> asio::awaitable<void> {
             std::string name = "r";
             std::string token = unused_token;
             const acquire_options single = once();
             static_cast<void>(
                 co_await q.manager->async_acquire_as(std::move(name), std::move(token), single));
         }},
        {"attach",
         [&q]() -> asio::awaitable<void> {
             std::string name = "r";
             std::string token = unused_token;
             const acquire_options single = once();
             static_cast<void>(
                 co_await q.manager->async_attach(std::move(name), std::move(token), single));
         }},
        {"query",
         [&q]() -> asio::awaitable<void> {
             std::string name = "held";
             static_cast<void>(co_await q.manager->async_query(std::move(name)));
         }},
        {"add a member",
         [&q]() -> asio::awaitable<void> {
             std::string name = to_string(q.settings.masters[0]);
             co_await q.manager->async_add_member(std::move(name));
         }},
        {"ready", [&q]() -> asio::awaitable<void> { co_await q.manager->async_ready(); }},
        {"extend", [&held]() -> asio::awaitable<void> { co_await held.async_extend(25s); }},
        {"wait for the loss",
         [&held]() -> asio::awaitable<void> { co_await held.async_wait_lost(); }},
        {"release", [&held]() -> asio::awaitable<void> { co_await held.async_release(); }},
        {"with_lock",
         [&q, options]() -> asio::awaitable<void> {
             std::string name = "r";
             locked_work work = [](lock&) -> asio::awaitable<void> { co_return; };
             co_await async_with_lock(*q.manager, std::move(name), options, std::move(work));
         }},
        {"enter",
         [&mutex]() -> asio::awaitable<void> {
             const reentrant_owner owner;
             static_cast<void>(co_await mutex.async_acquire(owner));
         }},
        {"campaign",
         [&leaders]() -> asio::awaitable<void> {
             static_cast<void>(co_await leaders.async_campaign());
         }},
        {"lead",
         [&leaders]() -> asio::awaitable<void> {
             locked_work work = [](lock&) -> asio::awaitable<void> { co_return; };
             co_await leaders.async_lead(std::move(work));
         }},
        {"observe",
         [&leaders]() -> asio::awaitable<void> {
             static_cast<void>(co_await leaders.async_observe());
         }},
        {"close", [&q]() -> asio::awaitable<void> { co_await q.manager->async_close(); }},
    };
}

TEST_CASE("a coroutine that was cancelled before begins no operation") {
    started_quorum q;
    lock held = q.acquired("held");
    reentrant_mutex mutex(*q.manager, "mutex", patiently());
    election leaders(*q.manager, "leaders");
    q.run_until([&] { return q.keys() == 3; });
    const std::size_t before = requests(q);
    asio::cancellation_signal cancel;
    std::vector<std::string> begun;
    bool ended = false;
    const auto work = [&]() -> asio::awaitable<void> {
        cancel.emit(asio::cancellation_type::terminal);
        const auto all = all_operations(q, held, mutex, leaders);
        for (const named_operation& one : all) {
            bool refused = false;
            try {
                co_await one.begin();
            } catch (const boost::system::system_error& error) {
                refused = error.code() == not_begun;
            }
            if (!refused) {
                begun.push_back(one.name);
            }
        }
        // Asio's own step after the coroutine would throw as well.
        co_await asio::this_coro::reset_cancellation_state();
    };
    asio::co_spawn(q.io, work, asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr) {
                       ended = true;
                   }));
    q.run_until([&] { return ended; });
    q.poll();
    CHECK(begun == std::vector<std::string>());
    CHECK(requests(q) == before);
    CHECK(held.held());
    CHECK_FALSE(q.running->done());
}

TEST_CASE("a stop token that was requested before a blocking call makes it send nothing") {
    quorum q;
    blocking::manager locks(q.settings);
    REQUIRE(locks.ready(20s));
    const std::size_t before = requests(q);
    std::stop_source stopped;
    stopped.request_stop();
    blocking::mutex plain(locks, "plain", patiently());
    const auto error_of = [](const auto& call) {
        try {
            call();
        } catch (const boost::system::system_error& error) {
            return error.code();
        }
        return error_code();
    };
    CHECK(error_of([&] { plain.lock(stopped.get_token()); }) == not_begun);
    CHECK(
        error_of(
            [&] { static_cast<void>(locks.acquire("lock", patiently(), stopped.get_token())); })
        == not_begun);
    CHECK(
        error_of([&] {
            static_cast<void>(locks.call(
                [&](auto token) { return locks.async().async_acquire("call", std::move(token)); },
                stopped.get_token()));
        })
        == not_begun);
    CHECK(requests(q) == before);
    CHECK(q.keys() == 0);
}

}} // namespace redlock::test
