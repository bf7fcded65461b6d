// Quoted by docs/blocking.md.

#include <redlock/blocking.hpp>

#include <mutex>
#include <stop_token>
#include <utility>

namespace snippets::blocking {

void work(const std::stop_token& stop);

void scope(const redlock::config& config) {
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

} // namespace snippets::blocking
