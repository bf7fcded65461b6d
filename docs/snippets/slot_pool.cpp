// Quoted by docs/slot_pool.md.

#include <redlock/slot_pool.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstddef>

namespace snippets::slots {

namespace asio = boost::asio;

void work_as(std::size_t number);

asio::awaitable<void>
one_of_three(redlock::lock_manager& manager, redlock::acquire_options options) {
    redlock::slot_pool pool(manager, "crew", 3);
    redlock::slot slot = co_await pool.async_acquire(options, asio::use_awaitable);
    work_as(slot.number()); // 0, 1 or 2; no other worker has it while slot.held()
    co_await slot.async_release(asio::use_awaitable);
}

} // namespace snippets::slots
