// Quoted by README.md, docs/blocking.md and docs/cancellation.md.

#include <redlock/blocking.hpp>

#include <csignal>
#include <exception>
#include <iostream>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace snippets::blocking {

void work(const std::stop_token& stop);

void scope() {
    redlock::config config;
    config.masters = {"redis://lock-1.example", "redis://lock-2.example", "redis://lock-3.example"};
    redlock::blocking::manager manager(config); // its thread runs the library
    const auto mine = manager.acquire("invoices");
    work(mine.lost()); // a std::stop_token
}

void guard(redlock::blocking::manager& manager) {
    redlock::blocking::mutex invoices(manager, "invoices");
    {
        const std::lock_guard guard(invoices); // locks on a majority of the masters
        work(invoices.lost());
    }
}

redlock::lock_status ask(redlock::blocking::manager& manager) {
    const redlock::lock_status status = manager.call(
        [&](auto token) { return manager.async().async_query("invoices", std::move(token)); });
    return status;
}

void serve(redlock::blocking::manager& manager, const std::stop_token& shutdown) {
    const auto mine = manager.acquire("invoices", {}, shutdown); // a stop throws operation_aborted
    std::stop_source either;
    const auto stop = [&either] { either.request_stop(); };
    const std::stop_callback on_shutdown(shutdown, stop);
    const std::stop_callback on_loss(mine.lost(), stop);
    work(either.get_token());
}

void until_sigterm(const redlock::config& config) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr); // before the first thread, which inherits it
    redlock::blocking::manager manager(config);
    std::jthread worker([&](const std::stop_token& shutdown) {
        try {
            serve(manager, shutdown);
        } catch (const std::exception& error) {
            std::clog << error.what() << '\n';
        }
    });
    int received = 0;
    sigwait(&signals, &received);
    worker.request_stop(); // ends before the manager, which was made earlier
}

} // namespace snippets::blocking
