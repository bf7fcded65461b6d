#include "show.hpp"

#include "verdict.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>

namespace demo {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr auto picture_interval = 100ms;
constexpr auto line_interval = 1s;
constexpr auto poll_interval = 10ms;
constexpr std::size_t everything = 1'000;
// A worker's last turn: an acquire that waits, and its work.
constexpr auto workers_end_limit = 10s;

} // namespace

show::show(const settings& chosen, masters& servers, crew& workers, board& shared, screen& output)
    : settings_(chosen),
      crew_(workers),
      board_(shared),
      screen_(output),
      observer_(io_.get_executor(), quorum_config(servers.urls(), "demo-observer"), timeline_),
      plan_(servers, workers, observer_, timeline_, chosen),
      view_(output, shared, observer_, timeline_, chosen) {}

int show::run() {
    if (!screen_.is_terminal()) {
        timeline_.on_event = [this](const event& one) { screen_.print(view_.event_line(one)); };
    }
    handle_signals();
    const auto spawn = [this](asio::awaitable<void> what) {
        asio::co_spawn(io_, std::move(what), [](const std::exception_ptr& error) {
            // Out of run(), and to main.
            if (error) {
                std::rethrow_exception(error);
            }
        });
    };
    observer_.manager().async_run(asio::detached);
    spawn(observer_.watch_health());
    spawn(observer_.watch_locks());
    spawn(plan_.run());
    spawn(draw());
    spawn(play());
    io_.run();

    // The last picture stays readable when the terminal is back.
    screen_.leave();
    if (screen_.is_terminal()) {
        for (const auto& line : view_.picture(everything)) {
            screen_.print(line);
        }
    }
    if (signal_ != 0 || !screen_.open()) {
        screen_.print("interrupted: no verdict");
        return signal_ != 0 ? 128 + signal_ : 1;
    }
    const auto made = judge(board_, plan_, crew_.failure(), settings_, screen_);
    screen_.print(made.text);
    return made.passed ? 0 : 1;
}

void show::handle_signals() {
    for (const int number : ending_signals) {
        struct sigaction now {};
        ::sigaction(number, nullptr, &now);
        // nohup has a reason.
        if (now.sa_handler != SIG_IGN) {
            signals_.add(number);
        }
    }
    signals_.async_wait([this](const redlock::error_code& error, int number) {
        if (!error) {
            signal_ = number;
            io_.stop();
        }
    });
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

asio::awaitable<void> show::play() {
    asio::steady_timer timer(io_, settings_.seconds);
    co_await timer.async_wait(asio::use_awaitable);
    co_await end_workers();
    io_.stop();
}

asio::awaitable<void> show::end_workers() {
    board_.stop = true;
    asio::steady_timer timer(io_);
    const auto limit = redlock::clock::now() + workers_end_limit;
    while (crew_.running() > 0 && redlock::clock::now() < limit) {
        timer.expires_after(poll_interval);
        co_await timer.async_wait(asio::use_awaitable);
    }
    crew_.kill();
}

asio::awaitable<void> show::draw() {
    asio::steady_timer timer(io_);
    while (screen_.open()) {
        if (screen_.is_terminal()) {
            screen_.draw(view_.picture(screen_.rows()));
            timer.expires_after(picture_interval);
        } else {
            screen_.print(view_.summary_line());
            timer.expires_after(line_interval);
        }
        co_await timer.async_wait(asio::use_awaitable);
    }
    // No reader is left.
    io_.stop();
}

} // namespace demo
