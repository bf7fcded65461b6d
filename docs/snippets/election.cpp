// Quoted by docs/election.md.

#include <redlock/election.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstdint>
#include <string>

namespace snippets::election {

namespace asio = boost::asio;

struct storage {
    void write(const std::string& data, std::uint64_t token);
};

asio::awaitable<void> serve(redlock::lock& term);

asio::awaitable<void>
lead(redlock::lock_manager& manager, storage& store, const std::string& data) {
    redlock::election election(manager, "scheduler");

    // As a scope: campaigns, runs the work, and resigns however the work ends. Each call is one
    // term.
    election.async_lead([](redlock::lock& term) { return serve(term); }, asio::detached);

    // The same, and a candidate again after a loss: a hot standby.
    election.async_lead_always([](redlock::lock& term) { return serve(term); }, asio::detached);

    // By hand.
    redlock::lock term = co_await election.async_campaign(asio::use_awaitable);
    store.write(data, term.fencing_token()); // refused there if a later leader has written
    co_await term.async_release(asio::use_awaitable);
}

} // namespace snippets::election
