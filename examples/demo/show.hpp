// One run, from the first picture to the verdict.
#pragma once

#include "board.hpp"
#include "crew.hpp"
#include "masters.hpp"
#include "observer.hpp"
#include "plan.hpp"
#include "screen.hpp"
#include "settings.hpp"
#include "timeline.hpp"
#include "view.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <array>
#include <csignal>

namespace demo {

// The show ends early on these. To be blocked in the whole process before it.
inline constexpr std::array<int, 4> ending_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

class show {
public:
    show(const settings& chosen, masters& servers, crew& workers, board& shared, screen& output);

    // Returns the exit status: 0 if the verdict is good, 1 if not, 128 + the signal that ended it.
    int run();

private:
    void handle_signals();
    boost::asio::awaitable<void> play();
    boost::asio::awaitable<void> draw();
    boost::asio::awaitable<void> end_workers();

    boost::asio::io_context io_{1};
    const settings& settings_;
    crew& crew_;
    board& board_;
    screen& screen_;
    timeline timeline_;
    observer observer_;
    plan plan_;
    view view_;
    boost::asio::signal_set signals_{io_};
    int signal_ = 0;
};

} // namespace demo
