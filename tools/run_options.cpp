// The options of `redlock run`, `attach`, `pool` and `elect`.
#include "acquire.hpp"
#include "command_line.hpp"
#include "exit_code.hpp"
#include "options.hpp"
#include "resolution.hpp"
#include "run.hpp"

#include <redlock/options.hpp>

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <string>

namespace cli {
namespace {

void add_times_of_run(CLI::App& app, run_options& into) {
    add_duration(
        app,
        "--grace",
        into.grace,
        "Time from TERM to the end of the lease; KILL follows just before it")
        ->default_str("a quarter of the ttl, 2s at most");
    add_duration(
        app,
        "--kill-margin",
        into.kill_margin,
        "Time from KILL to the end of the lease, for which the machine may stand still")
        ->default_str("a fiftieth of the ttl, 10ms to 100ms");
    add_duration(app, "--max-hold", into.max_hold, "Longest time to hold the lock")
        ->default_str("no limit");
    app.add_flag(
        "--leave-daemons", into.leave_daemons, "Do not stop processes that outlive the command");
}

run_end run_it(const run_options& options, command_line& from) {
    if (!from.has_command || from.command.empty()) {
        const std::string name = asked_of(from).get_name();
        throw failure(
            exit_code::usage,
            fmt::format(
                "no command given; put it after --: redlock {} {}RESOURCE -- COMMAND",
                name,
                name == "pool" ? "--size L " : ""));
    }
    return run_under_lock(options, config_of(from.common), from.command);
}

void add_attach(command_line& to) {
    auto options = std::make_shared<run_options>();
    CLI::App& app = to.add(
        "attach",
        "Run a command under a lock that acquire has acquired",
        "  REDLOCK_TOKEN=$(redlock acquire backup) || exit\n"
        "  export REDLOCK_TOKEN\n"
        "  redlock attach --keep backup -- first-part    # renewed while it runs\n"
        "  redlock attach backup -- second-part          # released afterwards\n\n"
        "Otherwise the same as run. Exits with 202 also if the lock was lost before.");
    add_resource(app, options->lock.resource);
    add_token(app, options->token);
    add_ttl(app, options->lock.ttl, "Duration of the lease; a crash blocks others for this long");
    app.add_flag("--fencing", options->lock.fencing, "Request a fencing token for the command");
    app.add_flag("--keep", options->keep, "Keep the lock for its ttl afterwards");
    add_times_of_run(app, *options);
    to.when(app, [options, &to] {
        require_token(options->token);
        return run_it(*options, to).status;
    });
}

void add_pool(command_line& to) {
    auto options = std::make_shared<run_options>();
    CLI::App& app = to.add(
        "pool",
        "Run a command under one slot of a pool",
        "  redlock pool --size 3 encoders -- sh -c 'encode --gpu $REDLOCK_SLOT'\n\n"
        "The same as run --slots.");
    app.add_option("--size", options->slots, "Number of slots")
        ->check(whole_number(1, slots_max))
        ->type_name("L");
    add_wishes(app, options->lock, "forever");
    app.get_option("--fifo")->group(""); // refused below, with the reason
    app.add_flag(
        "--skip-if-held",
        options->lock.skip_if_held,
        "Exit with 0 if all slots are held; --wait is then none by default");
    add_times_of_run(app, *options);
    to.when(app, [options, &to] {
        if (options->lock.fifo) {
            throw failure(exit_code::usage, "--fifo is not supported for a pool");
        }
        if (options->slots == 0) {
            throw failure(exit_code::usage, "--size is missing: the number of slots");
        }
        return run_it(*options, to).status;
    });
}

void add_elect(command_line& to) {
    auto options = std::make_shared<run_options>();
    CLI::App& app = to.add(
        "elect",
        "Run a command on the leader only",
        "  redlock elect scheduler -- /usr/sbin/scheduler    # on every machine\n\n"
        "Waits until it is the leader, then runs the command. When the term ends, it stops the\n"
        "command and is a candidate again. When the command ends, it resigns and exits with the\n"
        "command's status. The command gets a fencing token.");
    add_resource(app, options->lock.resource);
    add_ttl(
        app, options->lock.ttl, "Duration of the lease; a crashed leader is replaced after this");
    app.add_flag("--fifo", options->lock.fifo, "Elect in the order of arrival");
    add_times_of_run(app, *options);
    to.when(app, [options, &to] {
        options->lock.fencing = to.common.protocol == "guarded";
        run_end last{0, true};
        while (last.lost) {
            last = run_it(*options, to);
        }
        return last.status;
    });
}

} // namespace

void add_run(command_line& to) {
    auto options = std::make_shared<run_options>();
    CLI::App& app = to.add(
        "run",
        "Run a command under a lock",
        "  redlock run nightly-report -- /usr/local/bin/report --all\n"
        "  redlock run --skip-if-held --at-least 30s cron/clean -- clean-up   # on every machine\n"
        "  redlock run --wait 1m --ttl 5s deploy -- sh -c 'git pull && make install'\n"
        "  redlock run --fencing ledger -- sh -c 'book --token $REDLOCK_FENCING_TOKEN'\n\n"
        "Exits with the status of the command, or 128 + N if signal N ended it. Otherwise:\n"
        "200 held by another, 201 no quorum, 202 lost while it ran, 203 bad usage,\n"
        "204 bad configuration, 205 internal, 126 not executable, 127 not found.");
    add_wishes(app, options->lock, "forever");
    add_times_of_run(app, *options);
    add_duration(
        app,
        "--at-least",
        options->at_least,
        "Shortest time to hold the lock, even if the command ends sooner");
    app.add_flag(
        "--skip-if-held",
        options->lock.skip_if_held,
        "Exit with 0 if another owner holds the lock; --wait is then none by default");
    auto* const slots =
        app.add_option(
               "--slots", options->slots, "Number of slots; the command runs under one of them")
            ->check(whole_number(1, slots_max))
            ->type_name("L");
    auto* const shared =
        app.add_flag("--shared", options->shared, "Lock as a reader, together with other readers");
    auto* const exclusive =
        app.add_flag("--exclusive", options->exclusive, "Lock alone, as without --shared");
    auto* const fifo = app.get_option("--fifo"); // other forms of a lock keep no order
    fifo->excludes(slots);
    fifo->excludes(shared);
    shared->excludes(app.get_option("--fencing")); // a reader writes nothing
    slots->excludes(shared);
    shared->excludes(exclusive);
    to.when(app, [options, &to] { return run_it(*options, to).status; });
    add_attach(to);
    add_pool(to);
    add_elect(to);
}

} // namespace cli
