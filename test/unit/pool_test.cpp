#include "core/base/pool.hpp"
#include "support/test.hpp"

#include <random>

namespace pool_test { namespace {

using redlock::core::handle;
using redlock::core::pool;

struct thing {
    handle<thing> self;
    std::string text;
    int resets = 0;

    void reset() {
        text.clear();
        ++resets;
    }
};

TEST_CASE("objects stay where they are while the pool grows") {
    pool<thing> things;
    thing& first = things.create();
    first.text = "first";
    for (int i = 0; i < 1'000; ++i) {
        things.create();
    }
    CHECK(things.size() == 1'001);
    CHECK(things.find(first.self) == &first);
    CHECK(first.text == "first");
}

TEST_CASE("for_each sees every object, may destroy the one it is given, and may create") {
    pool<thing> things;
    for (int i = 0; i < 10; ++i) {
        things.create().text = std::to_string(i);
    }
    int seen = 0;
    things.for_each([&](thing& one) {
        if (one.text == "3" || one.text == "9") {
            things.destroy(one);
        }
        if (one.text == "4") {
            things.create().text = "new";
        }
        ++seen;
    });
    CHECK(seen >= 10);
    CHECK(things.size() == 9);
}

TEST_CASE("for_some goes on where it stopped, and sees every object once") {
    pool<thing> things;
    for (int i = 0; i < 10; ++i) {
        things.create().text = std::to_string(i);
    }
    things.for_each([&](thing& one) {
        if (one.text == "2") {
            things.destroy(one);
        }
    });
    std::string seen;
    const auto look = [&](std::size_t from, std::size_t places) {
        return things.for_some(from, places, [&](thing& one) {
            if (one.text == "5" && !seen.ends_with("!")) {
                seen += "!";
                return false;
            }
            seen += one.text;
            return true;
        });
    };
    CHECK(look(0, 4) == 4);
    CHECK(look(4, 4) == 5); // stopped at it
    CHECK(look(5, 100) == things.end());
    CHECK(look(things.end(), 4) == things.end());
    CHECK(seen == "0134!56789");
}

TEST_CASE("handles agree with a map of what is alive") {
    pool<thing> things;
    std::mt19937 random(5);
    std::map<std::string, handle<thing>> alive;
    std::vector<handle<thing>> dead;
    for (int i = 0; i < 5'000; ++i) {
        if (alive.empty() || random() % 2 == 0) {
            thing& made = things.create();
            CHECK(made.text.empty());
            made.text = std::to_string(i);
            alive[made.text] = made.self;
        } else {
            const auto chosen =
                std::next(alive.begin(), static_cast<std::ptrdiff_t>(random() % alive.size()));
            dead.push_back(chosen->second);
            things.destroy(*things.find(chosen->second));
            alive.erase(chosen);
        }
        REQUIRE(things.size() == alive.size());
    }
    for (const auto& [text, name] : alive) {
        REQUIRE(things.find(name) != nullptr);
        REQUIRE(things.find(name)->text == text);
    }
    for (const handle<thing> name : dead) {
        REQUIRE(things.find(name) == nullptr);
    }
}

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

TEST_CASE("the places of a pool are named from the first generation on") {
    pool<thing> things;
    CHECK(things.create().self == handle<thing>{.index = 0, .generation = 1});
    thing& second = things.create();
    CHECK(second.self == handle<thing>{.index = 1, .generation = 1});
    things.destroy(second);
    CHECK(things.create().self == handle<thing>{.index = 1, .generation = 2});
}

}} // namespace pool_test
