// Quoted by docs/election.md.

#include <redlock/election.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstdint>
#include <exception>
#include <string>

namespace snippets::election {

namespace asio = boost::asio;

struct storage {
    void write(const std::string& data, std::uint64_t token);
};

asio::awaitable<void> serve(redlock::lock& term);
void report(const std::exception_ptr& ended);

asio::awaitable<void>
lead(redlock::lock_manager& manager, storage& store, const std::string& data) {
    redlock::election election(manager, "scheduler");

    // As a scope: campaigns, runs the work, and resigns however the work ends. Each call is one
    // term.
    const redlock::locked_work work = [](redlock::lock& term) { return serve(term); };
    co_await election.async_lead(work, asio::use_awaitable); // throws what ended it

    // The same, and a candidate again after a loss: a hot standby, until it is cancelled.
    election.async_lead_always(work, [](std::exception_ptr ended) { report(ended); });

    // By hand.
    redlock::lock term = co_await election.async_campaign(asio::use_awaitable);
    store.write(data, term.fencing_token()); // refused there if a later leader has written
    co_await term.async_release(asio::use_awaitable);
}

} // namespace snippets::election
