// Several quorums behind one manager: each resource is locked in one of them. Beside the locks it
// shows where each resource has its home, and what an outage would take away.
//
//     sharded redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103
//
// Each master is a quorum of its own here, to keep the example small; yours have three or five.

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>

namespace asio = boost::asio;

namespace {

asio::awaitable<void> work(redlock::lock& lock, std::string quorum) {
    std::cout << lock.resource() << " is locked in " << quorum << '\n';
    co_return;
}

asio::awaitable<void> run(redlock::sharded_manager& manager) {
    co_await manager.async_ready(asio::use_awaitable);
    std::cout << to_string(manager.get_health()) << '\n';

    redlock::acquire_options options;
    options.ttl = std::chrono::seconds(1);
    for (const char* const name : {"orders/1", "orders/2", "orders/3", "orders/4"}) {
        const std::string resource = name;
        const std::string quorum(manager.quorum_of(resource));
        // Made before the statement with co_await: see docs/compilers.md.
        redlock::locked_work locked = [quorum](redlock::lock& lock) { return work(lock, quorum); };
        co_await redlock::async_with_lock(manager, resource, options, locked, asio::use_awaitable);
    }
    for (const redlock::quorum_metrics& one : manager.get_metrics()) {
        std::cout << one.quorum << " had " << one.metrics.acquired << " locks\n";
    }
}

} // namespace

int main(int argc, char** argv) {
    try {
        redlock::sharded_config config;
        for (int i = 1; i < argc; ++i) {
            // The names are what counts: every program must give the same ones.
            redlock::named_quorum& quorum = config.quorums.emplace_back();
            quorum.name = "quorum-" + std::to_string(i);
            quorum.config.masters = {argv[i]};
            quorum.config.max_ttl = std::chrono::seconds(1);
        }
        asio::io_context io;
        redlock::sharded_manager manager(io.get_executor(), config);
        manager.async_run(asio::detached);
        int status = 0;
        asio::co_spawn(io, run(manager), [&](const std::exception_ptr& error) {
            status = error ? 1 : 0;
            manager.async_close(asio::detached);
        });
        io.run();
        return status;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
