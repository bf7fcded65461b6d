// Quoted by docs/primitives.md.

#include <redlock/lock_manager.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <string>
#include <string_view>

namespace snippets::primitives {

namespace asio = boost::asio;

void send(std::string_view secret);
std::string receive();

asio::awaitable<void> pass_on(redlock::lock_manager& manager, redlock::acquire_options options) {
    options.transferable = true;
    redlock::lock mine = co_await manager.async_acquire("invoices", options, asio::use_awaitable);
    const std::string secret(mine.secret());
    mine.abandon(); // no longer renewed here
    send(secret);
}

asio::awaitable<redlock::lock>
take_over(redlock::lock_manager& manager, const redlock::acquire_options& options) {
    const std::string secret = receive();
    co_return co_await manager.async_attach("invoices", secret, options, asio::use_awaitable);
}

} // namespace snippets::primitives
