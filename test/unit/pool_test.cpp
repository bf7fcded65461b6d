#include "core/base/pool.hpp"
#include "support/test.hpp"

namespace pool_test { namespace {

using redlock::core::handle;
using redlock::core::pool;

struct thing {
    handle<thing> self;
    void reset() {}
};

TEST_CASE(
    "a pool returns the memory that very many objects needed, and no old handle finds a new one") {
    pool<thing> things;
    std::vector<handle<thing>> old;
    for (int i = 0; i < 100'000; ++i) {
        old.push_back(things.create().self);
    }
    std::size_t forgotten = 0;
    const auto shrink = [&] { things.shrink([&](thing&) { ++forgotten; }); };
    shrink();
    CHECK(forgotten == 0);
    for (std::size_t i = 1; i < old.size(); ++i) {
        things.destroy(*things.find(old[i]));
    }
    shrink();
    CHECK(forgotten > 90'000);
    CHECK(things.size() == 1);
    CHECK(things.find(old[0]) != nullptr);
    std::size_t seen = 0;
    things.for_each([&](thing&) { ++seen; });
    CHECK(seen == 1);
    for (std::size_t i = 1; i < old.size(); ++i) {
        thing& made = things.create();
        REQUIRE(things.find(made.self) == &made);
        REQUIRE(things.find(old[i]) == nullptr);
    }
    CHECK(things.end() == 100'000); // the places are used again
}

}} // namespace pool_test
