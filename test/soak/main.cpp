// soak: real masters, real processes, real faults, and one verdict at the end. With --screen it is
// the demo: fewer faults, and what happens is shown.

#include "run.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <random>

namespace {

using namespace redlock;
using namespace redlock::soak;

void add_worker(CLI::App& app, worker_settings& mine) {
    CLI::App* const worker = app.add_subcommand("worker", "")->group("");
    worker->add_option("store", mine.store)->required();
    worker->add_option("ledger", mine.ledger)->required();
    worker->add_option("seed", mine.seed)->required();
    worker->add_option("slow", mine.slow)->required();
    worker->add_option("dawdles", mine.dawdles)->required();
    worker->add_option("how", mine.how)->required();
    worker->add_option("masters", mine.masters)->required();
    worker->callback([&mine] { work(mine); });
}

int main_program(int argc, char** argv) {
    run_options options;
    bool unlocked = false;
    options.site.seed = std::random_device()();
    options.site.program = std::filesystem::read_symlink("/proc/self/exe");
    worker_settings worker;

    CLI::App app("Locks under faults: starts masters and workers, does damage, and judges.");
    app.add_option("--masters", options.site.masters, "how many Redis servers")
        ->check(CLI::Range(1, 31))
        ->capture_default_str();
    app.add_option("--workers", options.site.workers, "how many processes want the lock")
        ->check(CLI::Range(1, 100))
        ->capture_default_str();
    const auto* const seconds =
        app.add_option("--seconds", options.seconds, "how long; with --screen 20 if not given")
            ->check(CLI::Range(1, 1'000'000))
            ->capture_default_str();
    app.add_option("--seed", options.site.seed, "of the faults; a random one if not given");
    app.add_option("--patience", options.patience, "")->group("");
    app.add_flag("--verbose", options.verbose, "tell each fault");
    app.add_flag(
        "--screen",
        options.screen,
        "show what happens: a master is killed, another one hung, a holder stopped; on loopback");
    app.add_flag(
        "--unlocked", unlocked, "take no locks: shows that the verdict notices (exit status 1)");
    app.add_option("--unsafe", options.site.how, "")
        ->transform(CLI::CheckedTransformer(std::map<std::string, unsafe>{
            {"one-token", unsafe::one_token}, {"dead-end", unsafe::dead_end}}))
        ->group("");
    add_worker(app, worker);
    CLI11_PARSE(app, argc, argv);

    if (options.screen) {
        options.site.slow = true;
        options.site.namespaces = false;
        options.seconds = seconds->count() == 0 ? 20 : options.seconds;
        if (options.site.masters < 3 || options.seconds < 10) {
            return app.exit(CLI::ValidationError("--screen", "needs three masters and 10 seconds"));
        }
    } else if (const std::string missing = test::network::missing(); !missing.empty()) {
        fmt::print("no network namespaces, so no partitions: {}\n", missing);
        options.site.namespaces = false;
    }
    options.site.how = unlocked ? unsafe::no_lock : options.site.how;
    return run(options);
}

} // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN); // a master that dies while a command is written to it
    try {
        return main_program(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "soak: {}\n", error.what());
        return 2;
    }
}
