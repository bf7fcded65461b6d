// What the pictures of docs/algorithm.md show: four runs of the library on masters in memory and a
// clock of the test's. Nothing is invented; what is drawn is what was sampled, each millisecond.
//
//     timelines acquire|rollback|loss|fenced
//
// Prints what draw.py draws, one thing a line.

#include "scene.hpp"

#include <redlock/redlock.hpp>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace timelines;

// --- What is done -------------------------------------------------------------------------------

struct result {
    bool ended = false;
    redlock::error_code error;
    redlock::lock lock;
    redlock::diagnostics votes;
    double at = 0;
};

void acquire(
    scene& here, redlock::lock_manager& manager, redlock::acquire_options options, result& out) {
    manager.async_acquire(
        "r",
        options,
        redlock::with_diagnostics(
            out.votes, [&here, &out](redlock::error_code error, redlock::lock lock) {
                out.ended = true;
                out.error = error;
                out.lock = std::move(lock);
                out.at = here.ms();
            }));
}

// The question to each master whose answer came before the decision, and that answer.
void messages(const result& got, double asked) {
    for (std::size_t i = 0; i < got.votes.votes.size(); ++i) {
        const auto& vote = got.votes.votes[i];
        if (vote.vote == redlock::vote::unreachable || vote.vote == redlock::vote::pending) {
            continue;
        }
        const double there = static_cast<double>(vote.latency.count()) / 1000;
        line("client A", asked, master(i), asked + there / 2, "ask");
        line(
            master(i),
            asked + there / 2,
            "client A",
            asked + there,
            vote.vote == redlock::vote::granted ? "yes" : "no");
    }
}

// --- The pictures -------------------------------------------------------------------------------

void show_acquire() {
    scene here;
    const milliseconds trips[] = {16ms, 24ms, 36ms, 52ms, 1ms};
    for (std::size_t i = 0; i < 5; ++i) {
        here.quorum.answer_after(i, trips[i]);
    }
    here.quorum.master(4).kill();
    here.quorum.advance(0ms);

    result got;
    here.client("client A", got.lock);
    redlock::acquire_options options;
    options.ttl = 240ms;
    options.renew = false;
    const double asked = here.ms();
    acquire(here, here.quorum.manager(), options, got);
    std::optional<redlock::time_point> deadline;
    here.advance(280ms, [&] {
        if (got.lock.valid() && !deadline) {
            deadline = got.lock.deadline();
            here.owner(std::string(got.lock.secret()), "key-a");
        }
    });
    require(got.ended && !got.error && deadline, "granted");

    std::cout << "title An acquire: a majority, validity and drift\n"
                 "desc Client A asks five masters at once, one of which is down. The third grant "
                 "decides. The lease counts from before the command was sent, minus the drift: it "
                 "ends before any key of the majority. At the deadline the client removes the "
                 "keys.\n"
                 "time 0|280\n";
    rows({"client A"});
    masters();
    here.print_bars(true);
    messages(got, asked);
    line("client A", asked, master(3), here.change(3), "ask");
    line(master(3), here.change(3), "client A", 2 * here.change(3) - asked, "yes");
    mark("client A", asked, "t0: asks all");
    mark("client A", got.at, "3 of 5: held()");
    const double end = asked + 240;
    mark("client A", here.ms_at(*deadline), "deadline");
    span("client A", asked, end, "ttl, 240 ms");
    span("client A", here.ms_at(*deadline), end, "drift");
    mark("master 5", asked, "down: no vote");
    for (std::size_t i = 0; i < 4; ++i) {
        line("client A", here.ms_at(*deadline), master(i), here.change(i, 1), "undo");
    }
}

void show_rollback() {
    scene here;
    const milliseconds trips[] = {16ms, 24ms, 36ms, 30ms, 44ms};
    const std::string other(40, 'b');
    here.owner(other, "key-b");
    for (std::size_t i = 0; i < 5; ++i) {
        here.quorum.answer_after(i, trips[i]);
        if (i >= 2) {
            here.quorum.master(i).command({"SET", key, other, "PX", "1000"});
        }
    }
    result got;
    here.client("client A", got.lock);
    redlock::acquire_options options;
    options.ttl = 240ms;
    options.wait = redlock::wait_for::none();
    acquire(here, here.quorum.manager(), options, got);
    here.advance(100ms);
    require(got.error == redlock::errc::contended, "contended");

    std::cout
        << "title A partial grant, rolled back\n"
           "desc Client B has the lock on three masters. Two masters grant to client A and three "
           "refuse: a majority is impossible. The grants are removed, after the command and on "
           "the same connection, and the result of A is contended.\n"
           "time 0|100\n";
    rows({"client A"});
    masters();
    here.print_bars();
    messages(got, 0);
    for (std::size_t i = 0; i < 2; ++i) {
        const double gone = here.change(i, 1);
        const double trip = std::chrono::duration<double, std::milli>(trips[i]).count();
        line("client A", gone - trip / 2, master(i), gone, "undo");
    }
    mark("client A", 0, "asks all");
    mark("client A", got.at, "3 refused: contended, and 2 removals");
}

void show_loss() {
    scene here;
    redlock::lock_manager& other = here.quorum.add_manager();
    here.quorum.advance(1s);
    result a;
    result b;
    std::cout << "title A lost lease: signalled before it ends\n"
                 "desc Client A renews at a third of its ttl. Then three of five masters hang. A's "
                 "renewals find no majority, and held() turns false a stop margin before the "
                 "deadline, while the keys of A still exclude all others. When the masters reply "
                 "again and A's keys have expired, client B gets the lock.\n";

    redlock::acquire_options options;
    options.ttl = 240ms;
    options.stop_margin = 40ms;
    here.client("client A", a.lock);
    here.client("client B", b.lock);
    const double asked = here.ms();
    acquire(here, here.quorum.manager(), options, a);
    std::vector<double> renewals;
    std::optional<redlock::time_point> deadline;
    const auto watch = [&] {
        if (a.lock.valid() && a.lock.held()) {
            if (deadline && a.lock.deadline() != *deadline) {
                renewals.push_back(here.ms());
            }
            deadline = a.lock.deadline();
            here.owner(std::string(a.lock.secret()), "key-a");
        }
        if (b.lock.valid()) {
            here.owner(std::string(b.lock.secret()), "key-b");
        }
    };
    here.advance(20ms, watch);
    redlock::acquire_options waiting = options;
    waiting.wait = redlock::wait_for::forever();
    const double b_asked = here.ms();
    acquire(here, other, waiting, b);
    here.advance(150ms, watch);
    const double hung = here.ms();
    for (std::size_t i = 2; i < 5; ++i) {
        here.quorum.master(i).hang();
    }
    std::optional<double> lost;
    const auto until_lost = [&] {
        watch();
        if (!lost && a.lock.valid() && !a.lock.held()) {
            lost = here.ms();
        }
    };
    here.advance(290ms, until_lost);
    const double resumed = here.ms();
    for (std::size_t i = 2; i < 5; ++i) {
        here.quorum.master(i).resume();
    }
    here.advance(140ms, until_lost);
    require(lost && deadline && !renewals.empty(), "lost");
    require(b.ended && !b.error && b.at >= here.ms_at(*deadline), "B has it, after the deadline");

    std::cout << "time " << asked << '|' << here.ms() << '\n';
    rows({"client A", "client B"});
    masters();
    here.print_bars();
    mark("client A", renewals.front(), "renewed");
    mark("client A", *lost, "loss signalled");
    mark("client A", here.ms_at(*deadline), "deadline");
    scene::print_bar("client B", b_asked, b.at, "waits");
    mark("client B", b_asked, "waits");
    mark("client B", b.at, "held()");
    for (std::size_t i = 2; i < 5; ++i) {
        scene::print_bar(master(i), hung, resumed, "hung");
    }
    mark("master 3", hung, "hang");
    mark("master 3", resumed, "reply again");
}

void show_fenced() {
    scene here;
    redlock::lock_manager& other = here.quorum.add_manager();
    here.quorum.advance(1s);
    result a;
    result b;
    redlock::fenced<std::string> store;
    here.client("client A", a.lock);
    here.client("client B", b.lock);
    redlock::acquire_options options;
    options.ttl = 120ms;
    options.fencing = true;
    options.renew = false; // as of a process that is paused and renews nothing
    const double asked = here.ms();
    acquire(here, here.quorum.manager(), options, a);
    std::uint64_t token_a = 0;
    std::uint64_t token_b = 0;
    std::optional<redlock::time_point> deadline;
    const auto watch = [&] {
        if (a.lock.valid() && token_a == 0) {
            token_a = a.lock.fencing_token();
            deadline = a.lock.deadline();
            here.owner(std::string(a.lock.secret()), "key-a");
        }
        if (b.lock.valid() && token_b == 0) {
            token_b = b.lock.fencing_token();
            here.owner(std::string(b.lock.secret()), "key-b");
        }
    };
    here.advance(20ms, watch);
    require(a.lock.held(), "A looks: it holds the lock");
    const double looked = here.ms();
    redlock::acquire_options waiting = options;
    waiting.renew = true;
    acquire(here, other, waiting, b);
    here.advance(160ms, watch);
    require(b.lock.held() && token_b > token_a, "B holds it, with a larger token");
    const double b_writes = here.ms();
    store.write(token_b, [](std::string& text) { text = "by B"; });
    here.advance(30ms, watch);
    const double a_writes = here.ms();
    bool refused = false;
    try {
        store.write(token_a, [](std::string& text) { text = "by A, too late"; });
    } catch (const redlock::stale_token_error& error) {
        refused = error.highest() == token_b;
    }
    require(refused && store.get() == "by B", "refused");
    here.advance(70ms, watch);

    std::cout
        << "title A late write, refused by its token\n"
           "desc Client A sees that it holds the lock, and is paused before it writes. Its "
           "lease ends, client B gets the lock and a larger fencing token, and writes. When A "
           "continues and writes, the resource refuses: it has seen a larger token.\n"
           "time "
        << asked << '|' << here.ms() << '\n';
    rows({"client A", "client B", "resource"});
    here.print_bars();
    scene::print_bar("client A", looked, a_writes, "paused");
    scene::print_bar("client B", looked, b.at, "waits");
    scene::print_bar("resource", b_writes, here.ms(), "fence");
    mark("client A", asked, "held(), token a");
    mark("client A", here.ms_at(*deadline), "deadline");
    mark("client A", a_writes, "continues, writes");
    mark("client B", looked, "waits");
    mark("client B", b.at, "held(), token b > a");
    line("client B", b_writes, "resource", b_writes, "yes");
    line("client A", a_writes, "resource", a_writes, "no");
    mark("resource", b_writes, "accepts b");
    mark("resource", a_writes, "a < b: refused");
}

} // namespace

int main(int argc, char** argv) {
    const std::map<std::string, void (*)()> pictures{
        {"acquire", show_acquire},
        {"rollback", show_rollback},
        {"loss", show_loss},
        {"fenced", show_fenced},
    };
    const auto chosen = pictures.find(argc == 2 ? argv[1] : "");
    if (chosen == pictures.end()) {
        std::cerr << "timelines acquire|rollback|loss|fenced\n";
        return EXIT_FAILURE;
    }
    try {
        chosen->second();
        return EXIT_SUCCESS;
    } catch (const std::exception& error) {
        std::cerr << "timelines: " << error.what() << '\n';
        return EXIT_FAILURE;
    }
}
