#include "observer.hpp"

#include "masters.hpp"
#include "worker.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace demo {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr auto health_interval = 50ms;
constexpr auto locks_interval = 100ms;

} // namespace

observer::observer(boost::asio::any_io_executor executor, redlock::config config, timeline& events)
    : manager_(std::move(executor), std::move(config)),
      events_(events),
      health_(manager_.get_health()) {}

asio::awaitable<void> observer::watch_health() {
    asio::steady_timer timer(manager_.get_executor());
    for (;;) {
        note_changes(manager_.get_health());
        timer.expires_after(health_interval);
        co_await timer.async_wait(asio::use_awaitable);
    }
}

asio::awaitable<void> observer::watch_locks() {
    asio::steady_timer timer(manager_.get_executor());
    for (;;) {
        for (std::size_t i = 0; i < locks_.size(); ++i) {
            auto answer =
                co_await manager_.async_query(counter_name(i), asio::as_tuple(asio::use_awaitable));
            auto& [error, status] = answer;
            if (error) {
                co_return;
            }
            locks_[i] = std::move(status);
        }
        timer.expires_after(locks_interval);
        co_await timer.async_wait(asio::use_awaitable);
    }
}

void observer::note_changes(const redlock::health& now) {
    using redlock::master_state;
    const auto before = std::exchange(health_, now);
    for (std::size_t i = 0; i < now.masters.size(); ++i) {
        const auto state = now.masters[i].state;
        // Each failing attempt to connect is a state of its own, and of no interest.
        const bool trying = state == master_state::connecting;
        if (state != before.masters[i].state && !trying
            && !(
                state == master_state::down
                && before.masters[i].state == master_state::connecting)) {
            events_.seen(fmt::format("{}: {}", master_name(i), state_text(now.masters[i])));
        }
    }
    if (now.ready != before.ready) {
        events_.seen(fmt::format(
            "quorum {}: {} of {} masters vote, {} needed",
            now.ready ? "open" : "CLOSED",
            now.admitted,
            now.masters.size(),
            now.quorum));
    }
}

std::string state_text(const redlock::master_health& master) {
    using redlock::master_state;
    switch (master.state) {
    case master_state::admitted:
        return "votes";
    case master_state::quarantined:
        if (master.quarantine_left) {
            return fmt::format(
                "quarantined, {:.1f} s left",
                std::chrono::duration<double>(*master.quarantine_left).count());
        }
        return "quarantined";
    default: {
        const auto name = redlock::to_string(master.state);
        std::string text(name.data(), name.size());
        return master.text.empty() || master.text == text ? text : text + ": " + master.text;
    }
    }
}

} // namespace demo
