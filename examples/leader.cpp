// A leader with a hot standby: two candidates, of which one leads at a time. The first resigns by
// itself, the second takes over, and an observer watches.
//
//     leader redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103

#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>

namespace asio = boost::asio;

namespace {

// The term of one leader. Each co_await is a point where it ends early if the term is over. Writes
// carry the fencing token, so a leader that has not noticed its loss is refused.
asio::awaitable<void> serve(redlock::lock& term, std::string host) {
    std::cout << host << " leads as " << term.owner_digest() << ", token " << term.fencing_token()
              << '\n';
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_after(std::chrono::milliseconds(300));
    co_await timer.async_wait(asio::use_awaitable);
    std::cout << host << " steps down\n";
}

// A candidate: stands by until it is elected, and leads for one term.
asio::awaitable<void> candidate(redlock::lock_manager& manager, std::string host) {
    redlock::election_options options;
    options.ttl = std::chrono::seconds(2);
    options.stop_margin = std::chrono::milliseconds(300);
    redlock::election election(manager, "scheduler", options);
    redlock::locked_work work = [host](redlock::lock& term) { return serve(term, host); };
    co_await election.async_lead(work, asio::use_awaitable);
}

// Reports the leader until its manager is closed. A term may be over before it is seen, and between
// two leaders there may be a moment without one.
asio::awaitable<void> look_on(redlock::lock_manager& manager) {
    redlock::election election(manager, "scheduler");
    std::string leader;
    for (;;) {
        auto [error, now] =
            co_await election.async_wait_change(leader, asio::as_tuple(asio::use_awaitable));
        if (error) {
            co_return;
        }
        leader = now.owner_digest;
        std::cout << "seen: " << (leader.empty() ? "nobody" : leader) << '\n';
    }
}

} // namespace

int main(int argc, char** argv) {
    try {
        redlock::config config;
        config.masters.assign(argv + 1, argv + argc);
        config.max_ttl = std::chrono::seconds(2);

        asio::io_context io;
        // Each of them stands for a process on a host of its own.
        redlock::lock_manager first(io.get_executor(), config);
        redlock::lock_manager standby(io.get_executor(), config);
        redlock::lock_manager observer(io.get_executor(), config);
        int status = 0;
        int candidates = 2;
        const auto ended = [&](const std::exception_ptr& error) {
            status = error ? 1 : status;
            if (--candidates == 0) {
                for (auto* const manager : {&first, &standby, &observer}) {
                    manager->async_close(asio::detached);
                }
            }
        };
        for (auto* const manager : {&first, &standby, &observer}) {
            manager->async_run(asio::detached);
        }
        asio::co_spawn(io, candidate(first, "host-1"), ended);
        asio::co_spawn(io, candidate(standby, "host-2"), ended);
        asio::co_spawn(io, look_on(observer), asio::detached);
        io.run();
        return status;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
