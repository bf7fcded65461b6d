// Random bytes for tokens: none are given out twice, not even by a forked process.
#include "net/token.hpp"

#include <catch2/catch_test_macros.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <set>
#include <vector>

using redlock::net::fill_random;

namespace {

using token_bytes = std::array<unsigned char, 20>;

token_bytes drawn() {
    token_bytes out{};
    fill_random(out);
    return out;
}

} // namespace

TEST_CASE("no random bytes are given out twice") {
    std::set<token_bytes> seen;
    for (int i = 0; i < 1'000; ++i) {
        CHECK(seen.insert(drawn()).second);
    }
}

TEST_CASE("more random bytes than are drawn in advance") {
    std::vector<unsigned char> many(256);
    fill_random(many);
    std::vector<unsigned char> others(256);
    fill_random(others);
    CHECK(many != others);
}

TEST_CASE("a forked process does not draw the random bytes of its parent") {
    drawn(); // more are there now
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const token_bytes mine = drawn();
        ::_exit(::write(ends[1], mine.data(), mine.size()) == 20 ? 0 : 1);
    }
    token_bytes theirs{};
    CHECK(::read(ends[0], theirs.data(), theirs.size()) == 20);
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(theirs != drawn());
    ::close(ends[0]);
    ::close(ends[1]);
}
