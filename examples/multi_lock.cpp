// Several resources under one lock: two accounts of which one pays the other. A
// payment in the other direction waits until then, and the two never deadlock.
//
//     multi_lock redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace asio = boost::asio;

namespace {

int alice = 100;
int bob = 100;

asio::awaitable<void>
pay(redlock::lock_manager& manager, std::string from, std::string to, int& payer, int& payee) {
    // Named first: no braces in a statement with co_await (docs/packaging.md).
    const std::vector<std::string> accounts{std::move(from), std::move(to)};
    const redlock::acquire_options options;
    redlock::lock both = co_await manager.async_acquire(accounts, options, asio::use_awaitable);
    std::cout << "locked " << both.resource() << '\n';
    payer -= 10;
    payee += 10;
    co_await both.async_release(asio::use_awaitable);
}

asio::awaitable<void> work(redlock::lock_manager& manager) {
    const auto executor = co_await asio::this_coro::executor;
    for (int i = 0; i < 3; ++i) {
        auto back = pay(manager, "account/bob", "account/alice", bob, alice);
        asio::co_spawn(executor, std::move(back), asio::detached); // at the same time
        co_await pay(manager, "account/alice", "account/bob", alice, bob);
    }
    std::cout << "together they have " << alice + bob << '\n';
}

} // namespace

int main(int argc, char** argv) {
    try {
        redlock::config config;
        config.masters.assign(argv + 1, argv + argc);
        // Use this only if no client can have held a lock before these masters started, as in this
        // example's test, which starts them. In production leave it on.
        config.quarantine = false;

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        manager.async_run(asio::detached);
        int status = 0;
        asio::co_spawn(io, work(manager), [&](const std::exception_ptr& error) {
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
