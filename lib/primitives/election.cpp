#include "procedure.hpp"

#include <redlock/election.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <memory>

namespace redlock { inline namespace REDLOCK_ABI {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds poll_min(10);

// Repeats queries until the leader changes.
class observation : public detail::procedure<observation> {
    friend procedure;

public:
    using handler = asio::any_completion_handler<void(error_code, lock_status)>;

    observation(
        const detail::shared_manager& manager,
        std::string name,
        std::string seen,
        std::chrono::milliseconds poll,
        handler done)
        : io_(manager.get_executor()),
          watch_(manager, std::move(name)),
          seen_(std::move(seen)),
          poll_(poll),
          pause_(poll_min),
          done_(std::move(done), asio::any_completion_executor(io_)) {}

    void start() {
        cancel_with(done_, detail::strand_executor::make(io_), asio::cancellation_type::all);
        ask();
    }

private:
    void ask() {
        step(
            [&](auto handler) {
                if (!watch_.query(std::move(handler))) {
                    finish(errc::closed, {});
                }
            },
            [](observation& me, error_code error, const lock_status& found) {
                me.answered(error, found);
            });
    }

    void answered(error_code error, const lock_status& found) {
        if (!error && cancelled_) { // too late for the query to notice
            error = asio::error::operation_aborted;
        }
        const bool told = found.state != lock_state::undecided;
        if (error || (told && found.owner_digest != seen_)) {
            finish(error, error ? lock_status() : found);
            return;
        }
        // An unknown result is probably a change of leader or an outage: retry less and less often.
        pause_ = told ? poll_min : std::min(2 * pause_, poll_);
        std::chrono::milliseconds pause = told ? poll_ : pause_;
        if (told && found.time_left) {
            pause = std::min(pause, *found.time_left + poll_min);
        }
        step(
            [&](auto handler) {
                if (!watch_.wait(pause, std::move(handler))) {
                    finish(errc::closed, {});
                }
            },
            [](observation& me, error_code failed) { failed ? me.finish(failed, {}) : me.ask(); });
    }

    void finish(error_code error, lock_status found) {
        std::move(done_)(io_, error, std::move(found));
    }

    const asio::any_io_executor io_;
    detail::lock_watch watch_;
    std::string seen_;
    std::chrono::milliseconds poll_;
    std::chrono::milliseconds pause_;
    detail::caller<error_code, lock_status> done_;
};

// One term after the other.
class leading : public detail::procedure<leading> {
    friend procedure;

public:
    leading(
        const detail::shared_manager& manager,
        std::string name,
        acquire_options term,
        locked_work work,
        asio::any_completion_handler<void(std::exception_ptr)> done)
        : manager_(manager),
          name_(std::move(name)),
          term_(term),
          work_(std::move(work)),
          done_(std::move(done), manager.get_executor()) {}

    void start() {
        cancel_with(done_, detail::strand_executor::make(manager_.get_executor()));
        lead();
    }

private:
    void lead() {
        led_to_the_end_ = false;
        returned_ = false;
        step(
            [&](auto handler) {
                detail::start_with_lock(
                    manager_,
                    name_,
                    term_,
                    [this](lock& term) { return run(term); },
                    {},
                    std::move(handler));
            },
            [](leading& me, std::exception_ptr thrown) { me.ended(std::move(thrown)); });
    }

    asio::awaitable<void> run(lock& term) {
        try {
            co_await work_(term);
        } catch (...) {
            led_to_the_end_ = term.held();
            throw;
        }
        returned_ = true;
        led_to_the_end_ = term.held() || !term.valid();
        const auto signalled = co_await asio::this_coro::cancellation_state;
        if (!led_to_the_end_ && signalled.cancelled() == asio::cancellation_type::none) {
            const auto [error, reason] =
                co_await term.async_wait_lost(asio::as_tuple(asio::use_awaitable));
            led_to_the_end_ = error == errc::released;
        }
    }

    void ended(std::exception_ptr thrown) {
        if (returned_ && led_to_the_end_) {
            thrown = nullptr; // it has resigned, perhaps by a release
        } else if (detail::code_of(thrown) == condition::lost && !led_to_the_end_) {
            if (!cancelled_) {
                lead();
                return;
            }
            thrown = std::make_exception_ptr(
                boost::system::system_error(asio::error::operation_aborted));
        }
        std::move(done_)(manager_.get_executor(), std::move(thrown));
    }

    const detail::shared_manager manager_;
    const std::string name_;
    const acquire_options term_;
    const locked_work work_;
    detail::caller<std::exception_ptr> done_;
    bool led_to_the_end_ = false; // the last term was not lost before its work ended
    bool returned_ = false;       // and its work did not throw
};

} // namespace

election::election(lock_manager& manager, std::string name, election_options options)
    : manager_(manager),
      name_(std::move(name)),
      poll_(std::max(options.poll, poll_min)) {
    term_.ttl = options.ttl;
    term_.wait = options.wait;
    term_.stop_margin = options.stop_margin;
    term_.max_hold = options.max_hold;
    term_.fifo = options.fifo;
    term_.fencing = manager_.configuration().protocol == protocol::guarded;
    manager_.require(name_, term_);
}

void election::start_lead_always(
    election mine, locked_work work, asio::any_completion_handler<void(std::exception_ptr)> done) {
    std::make_shared<leading>(
        mine.manager_, mine.name_, mine.term_, std::move(work), std::move(done))
        ->start();
}

void election::start_wait_change(
    election mine,
    std::string seen,
    asio::any_completion_handler<void(error_code, lock_status)> done) {
    std::make_shared<observation>(
        mine.manager_, mine.name_, std::move(seen), mine.poll_, std::move(done))
        ->start();
}

}} // namespace redlock::REDLOCK_ABI
