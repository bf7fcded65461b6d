// A process that takes one of the primitives, or waits for it, until it is killed.
//
//     doomed_worker KIND TTL_MS URL...
//
// Prints `waits` when it listens for a release, `holds` when it has what it wants, and the reason
// when it has lost that.

#include "family_member.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

namespace {

void say(const char* what) {
    std::printf("%s\n", what);
    std::fflush(stdout);
}

void run(const std::string& kind, redlock::config settings, redlock::acquire_options options) {
    redlock::blocking::manager manager(std::move(settings));
    const std::jthread watcher([&](std::stop_token over) {
        while (!over.stop_requested()) {
            if (manager.async().get_metrics().subscriptions > 0) {
                say("waits");
                return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    });
    const auto held = redlock::test::take_member(manager, kind, options);
    say("holds");
    const redlock::loss_reason reason =
        manager.call([&](auto token) { return held->async_wait_lost(std::move(token)); });
    say(std::string(to_string(reason)).c_str());
    for (;;) {
        ::pause();
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        return 2;
    }
    redlock::config settings;
    settings.quarantine = false;
    settings.master_timeout = std::chrono::milliseconds(500);
    settings.masters.assign(argv + 3, argv + argc);
    redlock::acquire_options options;
    options.ttl = std::chrono::milliseconds(std::stoi(argv[2]));
    options.wait = redlock::wait_for::forever();
    try {
        run(argv[1], settings, options);
    } catch (const std::exception& error) {
        say(error.what());
    }
    return 1;
}
