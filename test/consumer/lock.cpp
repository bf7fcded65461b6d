// Takes a lock. `scripts/platforms --ways` builds it in each way to depend on redlock.
#include <redlock/redlock.hpp>

#include <iostream>
int main(int argc, char** argv) {
    redlock::config config;
    config.masters.assign(argv + 1, argv + argc);
    config.max_ttl = std::chrono::seconds(3);
    redlock::blocking::manager manager(config);
    redlock::blocking::mutex daily(manager, "reports/daily");
    const std::lock_guard guard(daily);
    std::cout << "locked\n";
}
