// Quoted by docs/slot_pool.md.

#include <redlock/lock_manager.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstddef>

namespace snippets::slots {

namespace asio = boost::asio;

void work_as(std::size_t number);

asio::awaitable<void>
one_of_three(redlock::lock_manager& manager, redlock::acquire_options options) {
    redlock::lock mine =
        co_await manager.async_acquire(redlock::slots("crew", 3), options, asio::use_awaitable);
    work_as(mine.slot()); // 0, 1 or 2; no other worker has it while mine.held()
    co_await mine.async_release(asio::use_awaitable);
}

} // namespace snippets::slots
