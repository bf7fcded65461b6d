// Quoted by docs/howto/migrating.md.

#include <redlock/lock_manager.hpp>
#include <redlock/with_lock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace snippets::migrating {

namespace asio = boost::asio;

redlock::config beside_others(const std::vector<std::string>& masters) {
    redlock::config config;
    config.masters.assign(masters.begin(), masters.end()); // exactly those of the other clients
    config.protocol = redlock::protocol::plain;
    config.key_prefix = "";                    // the resource's name is the key
    config.max_ttl = std::chrono::seconds(30); // the longest ttl of all clients
    // Their releases notify nobody.
    config.release_notifications = false;
    return config;
}

asio::awaitable<void> with_new(redlock::lock_manager& next, redlock::locked_work work) {
    redlock::acquire_options options;
    co_await redlock::async_with_lock(next, "orders/7", options, work, asio::use_awaitable);
}

// `old` has the one master of before, `next` has the new ones.
asio::awaitable<void>
with_both(redlock::lock_manager& old, redlock::lock_manager& next, redlock::locked_work work) {
    redlock::acquire_options options;
    const redlock::locked_work inside = [&next, work](redlock::lock&) {
        return with_new(next, work);
    };
    co_await redlock::async_with_lock(old, "orders/7", options, inside, asio::use_awaitable);
}

} // namespace snippets::migrating
