// Quoted by docs/operations.md and docs/operations/masters.md.

#include <redlock/lock_manager.hpp>
#include <redlock/logger.hpp>
#include <redlock/prometheus.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <string>
#include <utility>

namespace snippets::operations {

namespace asio = boost::asio;

std::string metrics_page(const redlock::lock_manager& manager) {
    std::string page = redlock::to_prometheus(manager);
    return page;
}

void turn_log_on(redlock::config& config) {
    config.log = redlock::log_to_stderr(redlock::log_level::info);
}

asio::awaitable<void> replace(redlock::lock_manager& locks) {
    std::string from = "lock-1.example:6379";
    std::string to = "lock-4.example:6379";
    co_await locks.async_replace_member(std::move(from), std::move(to)); // or throws the reason
}

} // namespace snippets::operations
