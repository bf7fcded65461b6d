// A first test with the testing kit: a lock is renewed for an hour, and lost with its masters. It
// needs no server.
#include <redlock/testing.hpp>

#include <chrono>
#include <iostream>
#include <utility>

int main() {
    using namespace std::chrono_literals;
    redlock::testing::virtual_quorum quorum;
    redlock::lock mine;
    quorum.manager().async_acquire(
        "r", {}, [&](redlock::error_code, redlock::lock held) { mine = std::move(held); });
    quorum.advance(1h);
    const bool kept = mine.held();
    quorum.master(0).kill();
    quorum.master(1).kill();
    quorum.advance(10s);
    std::cout << (kept ? "kept, " : "not kept, ") << (mine.held() ? "not lost\n" : "lost\n");
    return kept && !mine.held() ? 0 : 1;
}
