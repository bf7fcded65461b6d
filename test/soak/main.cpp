// soak: real masters, real processes, real faults, and one verdict at the end.
//
// Five things are counted and must not happen. Two workers believe at the same time that they have
// the lock (ledger.hpp). Tokens do not increase. Updates are lost at the fenced store (store.hpp),
// or the store refuses a holder. The quorum does not come back after all faults. Exit status: 0
// none of it happened, 1 something did, 2 the run says nothing.

#include "injector.hpp"
#include "site.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <thread>

namespace {

using namespace redlock;
using namespace redlock::soak;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr auto handoff = 250ms; // what one worker may take to get the lock after another
constexpr auto glance = 20ms;   // the store gives no event

struct run_options {
    site_options site;
    unsigned seconds = 60;
    unsigned patience = 30; // seconds, for the first lock, and for one after all faults
    bool loopback = false;
    bool verbose = false;
};

std::uint64_t writes(site& where) {
    return where.the_store().read().writes;
}

bool more_writes(site& where, std::uint64_t than, std::chrono::seconds limit) {
    const auto end = steady::now() + limit;
    while (writes(where) <= than) {
        if (steady::now() >= end || !where.deserters().empty()) {
            return false;
        }
        std::this_thread::sleep_for(glance);
    }
    return true;
}

struct verdict {
    findings found;
    store::totals stored;
    bool progress = false;
    std::size_t deserters = 0;

    bool good() const {
        return found.overlaps() == 0 && found.disorder() == 0 && stored.lost() == 0
               && found.wronged == 0 && progress && deserters == 0;
    }
};

void print(const verdict& it, const injector& damage, moment end) {
    const findings::service service = it.found.availability(handoff, end);
    fmt::print("acquisitions           {}\n", it.found.tenures.size());
    fmt::print("leases lost            {} (told by the library)\n", it.found.lost);
    fmt::print("faults\n");
    for (const auto& [kind, count] : damage.done()) {
        fmt::print("  {:<32} {}\n", kind, count);
    }
    fmt::print("OVERLAPS               {}\n", it.found.overlaps());
    fmt::print("TOKENS OUT OF ORDER    {}\n", it.found.disorder());
    fmt::print("LOST UPDATES           {} of {} writes\n", it.stored.lost(), it.stored.writes);
    fmt::print("HOLDERS REFUSED        {}\n", it.found.wronged);
    fmt::print("WORKERS THAT FAILED    {}\n", it.deserters);
    fmt::print("stale writes refused   {}\n", it.found.stale);
    fmt::print(
        "availability           {:.1f} % (gaps above {} ms are outages), longest gap {} ms\n",
        100 * service.share,
        handoff.count(),
        std::chrono::duration_cast<std::chrono::milliseconds>(service.longest_gap).count());
    fmt::print("progress at the end    {}\n", it.progress ? "yes" : "NO");
    fmt::print("{}\n", it.good() ? "held" : "BROKEN");
}

int soak_for(const run_options& options) {
    site where(options.site);
    fmt::print(
        "soak: seed {}, {} masters, {} workers, {}, ttl {} ms, {} s\n",
        options.site.seed,
        where.masters(),
        where.workers(),
        where.has_network() ? "each on a host of its own" : "on loopback",
        options.site.ttl.count(),
        options.seconds);
    std::fflush(stdout);
    const std::chrono::seconds patience(options.patience);
    if (!more_writes(where, 0, patience)) {
        for (const std::string& one : where.deserters()) {
            fmt::print("{}\n", one);
        }
        fmt::print("no worker got the lock before any fault\n");
        return 2;
    }
    const auto began = steady::now();
    injector damage(where, options.site.seed, [&](const std::string& what) {
        if (options.verbose) {
            fmt::print(
                "{:8.3f} {}\n", std::chrono::duration<double>(steady::now() - began).count(), what);
        }
    });
    const auto end = began + std::chrono::seconds(options.seconds);
    while (steady::now() < end) {
        std::this_thread::sleep_until(std::min(end, damage.proceed())); // the schedule
    }
    damage.mend_all();
    const moment over = now();
    for (std::size_t i = 0; options.site.how == unsafe::dead_end && i < where.masters(); ++i) {
        where.master(i).kill();
    }
    verdict it;
    it.progress = more_writes(where, writes(where) + where.workers(), patience);
    it.found = where.conclude();
    it.stored = where.the_store().read();
    it.deserters = where.deserters().size();
    for (const std::string& one : where.deserters()) {
        fmt::print("{}\n", one);
    }
    print(it, damage, over);
    return it.good() ? 0 : 1;
}

void add_worker(CLI::App& app, worker_settings& mine) {
    CLI::App* const worker = app.add_subcommand("worker", "")->group("");
    worker->add_option("--store", mine.store)->required();
    worker->add_option("--ledger", mine.ledger)->required();
    worker->add_option("--holder", mine.holder)->required();
    worker->add_option("--number", mine.number);
    worker->add_option("--seed", mine.seed);
    worker->add_option_function<int>("--ttl", [&](int ms) { mine.ttl = 1ms * ms; });
    worker->add_option_function<int>("--max-ttl", [&](int ms) { mine.max_ttl = 1ms * ms; });
    worker->add_option_function<int>("--work", [&](int ms) { mine.work = 1ms * ms; });
    worker->add_option_function<int>("--how", [&](int how) { mine.how = unsafe(how); });
    worker->add_flag("--careless", mine.careless);
    worker->add_option("masters", mine.masters)->required();
    worker->callback([&mine] { work(mine); });
}

int run(int argc, char** argv) {
    run_options options;
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
    app.add_option("--seconds", options.seconds, "how long")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    app.add_option("--seed", options.site.seed, "of the faults; a random one if not given");
    app.add_option("--patience", options.patience, "")->group("");
    app.add_flag("--loopback", options.loopback, "without namespaces, and so without partitions");
    app.add_flag("--verbose", options.verbose, "tell each fault");
    app.add_option("--unsafe", options.site.how, "")
        ->transform(CLI::CheckedTransformer(std::map<std::string, unsafe>{
            {"no-lock", unsafe::no_lock},
            {"one-token", unsafe::one_token},
            {"dead-end", unsafe::dead_end}}))
        ->group("");
    add_worker(app, worker);
    CLI11_PARSE(app, argc, argv);

    if (options.loopback) {
        options.site.namespaces = false;
    } else if (const std::string missing = test::network::missing(); !missing.empty()) {
        fmt::print("no network namespaces, so no partitions: {}\n", missing);
        options.site.namespaces = false;
    }
    return soak_for(options);
}

} // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN); // a master that dies while a command is written to it
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "soak: {}\n", error.what());
        return 2;
    }
}
