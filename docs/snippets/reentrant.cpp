// Quoted by docs/primitives.md.

#include <redlock/reentrant_mutex.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace snippets::reentrant {

namespace asio = boost::asio;

asio::awaitable<void>
enter_twice(redlock::lock_manager& manager, redlock::acquire_options options) {
    redlock::reentrant_mutex mutex(manager, "ledger", options);
    redlock::reentrant_owner request; // one for each flow of work
    redlock::reentrant_hold outer = co_await mutex.async_acquire(request, asio::use_awaitable);
    redlock::reentrant_hold inner = co_await mutex.async_acquire(request, asio::use_awaitable);
}

} // namespace snippets::reentrant
