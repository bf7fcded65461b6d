// Which quorum has a resource. The rule is a part of the protocol, and docs/primitives.md has the
// values as well.
#include "support/test.hpp"

#include <redlock/placement.hpp>

namespace placement_test { namespace {

using namespace redlock;

constexpr std::size_t resources = 20'000;

std::string resource(std::size_t i) {
    return "orders/" + std::to_string(i);
}

std::vector<std::string> names(std::size_t count) {
    std::vector<std::string> out;
    for (std::size_t i = 1; i <= count; ++i) {
        out.push_back("q" + std::to_string(i));
    }
    return out;
}

// As the header says, line by line.
std::uint64_t placement_weight(const std::string& quorum, const std::string& name) {
    std::uint64_t h = 0xcbf29ce484222325;
    for (const char b : quorum + '\0' + name) {
        h = (h ^ static_cast<unsigned char>(b)) * 0x100000001b3;
    }
    h = h + 0x9e3779b97f4a7c15;
    h = (h ^ h >> 30U) * 0xbf58476d1ce4e5b9;
    h = (h ^ h >> 27U) * 0x94d049bb133111eb;
    return h ^ h >> 31U;
}

TEST_CASE("the weights are those of the documentation, in every version") {
    CHECK(placement_weight("east", "jobs/nightly") == 0x038b4ee6608f9058);
    CHECK(placement_weight("west", "jobs/nightly") == 0xc4bca468e2dffad8);
    CHECK(placement_weight("north", "jobs/nightly") == 0x8af91591bde29334);
    CHECK(placement_weight("east", "orders/4711") == 0xc73d2615c9abc04f);
    CHECK(placement_weight("west", "orders/4711") == 0xe7a8fa1fceb66a7c);
    CHECK(placement_weight("north", "orders/4711") == 0xe39e12fcb108e2f1);
    CHECK(
        placement_weight(
            "east",
            "stra\xc3\x9f"
            "e")
        == 0x1526b8a81046bf91);
    CHECK(placement_weight("east", "") == 0x638bc41161a7ab2e);
}

TEST_CASE("the home is where the weight is largest, in whatever order the quorums are listed") {
    std::vector<std::string> quorums{"east", "west", "north"};
    std::sort(quorums.begin(), quorums.end());
    do {
        CHECK(quorums[place(quorums, "jobs/nightly")] == "west");
        CHECK(quorums[place(quorums, "orders/4711")] == "west");
        CHECK(quorums[place(quorums, "a")] == "east");
        CHECK(quorums[place(quorums, "b")] == "north");
    } while (std::next_permutation(quorums.begin(), quorums.end()));
    for (std::size_t i = 0; i < 1'000; ++i) {
        const std::string name = resource(i) + "\xc3\x9f";
        const auto weight = [&](const std::string& one) { return placement_weight(one, name); };
        CHECK(quorums[place(quorums, name)] == *std::ranges::max_element(quorums, {}, weight));
    }
}

TEST_CASE("a quorum that is added takes its share, and nothing else moves") {
    for (std::size_t k = 1; k <= 8; ++k) {
        CAPTURE(k);
        const std::vector<std::string> before = names(k);
        const std::vector<std::string> after = names(k + 1);
        std::size_t moved = 0;
        std::size_t elsewhere = 0;
        for (std::size_t i = 0; i < resources; ++i) {
            const std::string name = resource(i);
            const std::size_t home = place(after, name);
            if (home != place(before, name)) {
                ++moved;
                elsewhere += home == k ? 0 : 1;
            }
        }
        CHECK(elsewhere == 0);
        const std::size_t share = resources / (k + 1);
        CHECK(moved > share - share / 20);
        CHECK(moved < share + share / 20);
    }
}

}} // namespace placement_test
