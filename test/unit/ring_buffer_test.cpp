#include "core/base/ring_buffer.hpp"

#include <catch2/catch_test_macros.hpp>

TEST_CASE("a ring buffer keeps the order, also when it grows with its front in the middle") {
    redlock::core::ring_buffer<int> it;
    int pushed = 0;
    int popped = 0;
    const auto push = [&](int count) {
        for (int i = 0; i < count; ++i) {
            it.push_back(pushed++);
        }
    };
    const auto pop = [&](int count) {
        for (int i = 0; i < count; ++i, it.pop_front()) {
            REQUIRE(it.front() == popped++);
        }
    };
    push(16);
    pop(10);
    push(10); // around the end
    push(30); // and more than there is room for
    CHECK(it.size() == 46);
    pop(46);
    CHECK(it.empty());
    push(3);
    pop(3);
}
