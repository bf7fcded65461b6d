// A test in virtual time: does this worker stop before its lease ends, when it loses its masters?
// It needs no server and does not wait. The kit is `redlock-testing`, docs/testing_kit.md.

#include <redlock/redlock.hpp>
#include <redlock/testing.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <utility>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

// --- What is tested: as it is in the program, but that its waits are handed in ------------------

class worker {
public:
    using wait_function = std::function<asio::awaitable<void>(std::chrono::milliseconds)>;

    worker(redlock::lock_manager& manager, wait_function wait)
        : manager_(manager),
          wait_(std::move(wait)) {}

    void start() {
        redlock::acquire_options options;
        options.ttl = 10s;
        options.stop_margin = 2s;
        redlock::async_with_lock(
            manager_,
            "crawler",
            options,
            [this](redlock::lock& lock) { return work(lock); },
            [this](const std::exception_ptr&) { state = "stopped"; });
    }

    std::string state = "waits";
    int steps = 0;

private:
    asio::awaitable<void> work(redlock::lock& lock) {
        state = "works";
        while (lock.held()) {
            co_await wait_(500ms);
            ++steps;
        }
    }

    redlock::lock_manager& manager_;
    wait_function wait_;
};

// --- The test -----------------------------------------------------------------------------------

int failures = 0;

void check(bool holds, const char* what) {
    std::cout << (holds ? "ok: " : "FAILED: ") << what << '\n';
    failures += holds ? 0 : 1;
}

struct scene {
    redlock::testing::virtual_quorum quorum;
    worker tested{quorum.manager(), [this](std::chrono::milliseconds span) {
                      return quorum.async_sleep(span, asio::use_awaitable);
                  }};

    scene() {
        tested.start();
        quorum.advance(1h);
    }
    bool stops() {
        return quorum.advance_until([this] { return tested.state == "stopped"; });
    }
};

void keeps_working_without_a_minority() {
    scene here;
    here.quorum.master(0).kill();
    here.quorum.advance(1h);
    check(here.tested.state == "works", "one master of three may be down");
    check(here.tested.steps > 2 * 2 * 3600 - 10, "two steps a second, for two hours");
}

void stops_before_the_lease_ends() {
    scene here;
    here.quorum.master(0).kill();
    here.quorum.master(1).hang();
    check(here.stops(), "without a majority it stops");
    // No other client can have the lock yet: the master that is left still has the key.
    check(here.quorum.keys_of("crawler") > 0, "... while the lease lasts");
}

void stops_when_another_has_the_lock() {
    scene here;
    here.quorum.occupy("crawler", 30s);
    check(here.stops(), "robbed of its lock it stops");
}

void knows_after_a_pause() {
    scene here;
    const int before = here.tested.steps;
    here.quorum.freeze(1min); // a suspended machine
    here.quorum.advance(1s);
    check(here.tested.state == "stopped", "after a pause past the lease it stops");
    check(here.tested.steps - before <= 1, "... at its first look");
}

} // namespace

int main() {
    keeps_working_without_a_minority();
    stops_before_the_lease_ends();
    stops_when_another_has_the_lock();
    knows_after_a_pause();
    return failures == 0 ? 0 : 1;
}
