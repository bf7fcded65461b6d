// Takes locks on real Redis masters while they fail, and shows that the locks hold.
//
// Five masters, six worker processes, two counters. A worker increments a counter by reading it,
// working a while and writing it back, under a lock. At the same time one master is killed and
// comes back without its memory, another one hangs, and a worker is frozen for longer than its
// lease. In the end the counters must show each increment, and no two workers may have held one
// lock at once.

#include "board.hpp"
#include "crew.hpp"
#include "masters.hpp"
#include "settings.hpp"
#include "show.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <random>

namespace {

// Until the show can handle them, and that is when all processes have been started.
void block_signals() {
    sigset_t all;
    ::sigemptyset(&all);
    for (const int number : demo::ending_signals) {
        ::sigaddset(&all, number);
    }
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
}

int play(const demo::settings& chosen) {
    demo::screen::protect_descriptors();
    block_signals();
    demo::screen output;
    output.print(fmt::format("starting {} masters and {} workers", chosen.masters, chosen.workers));
    demo::masters masters(chosen.masters);
    const demo::shared_board shared;
    // Before anything of Asio exists here: a fork would share it.
    demo::crew crew(*shared, chosen, masters.urls());
    output.enter();
    demo::show show(chosen, masters, crew, *shared, output);
    return show.run();
}

} // namespace

int main(int argc, char** argv) {
    demo::settings chosen;
    chosen.seed = std::random_device{}();
    CLI::App app("Contending workers take locks on real Redis masters, some of which fail.");
    app.add_option("--masters", chosen.masters, "redis-servers to start")
        ->check(CLI::Range(std::size_t{3}, demo::masters_max))
        ->capture_default_str();
    app.add_option("--workers", chosen.workers, "worker processes")
        ->check(CLI::Range(std::size_t{1}, demo::workers_max))
        ->capture_default_str();
    int seconds = static_cast<int>(chosen.seconds.count());
    app.add_option("--seconds", seconds, "how long it takes, with the quarantine at its start")
        ->check(CLI::Range(15, 3600))
        ->capture_default_str();
    app.add_option("--seed", chosen.seed, "which master fails, and how long the workers work");
    app.add_flag(
        "--unlocked",
        chosen.unlocked,
        "take no locks: shows that the verdict notices (exit status 1)");
    CLI11_PARSE(app, argc, argv);
    chosen.seconds = std::chrono::seconds(seconds);
    try {
        return play(chosen);
    } catch (const std::exception& error) {
        fmt::print(stderr, "demo: {}\n", error.what());
        return 2;
    }
}
