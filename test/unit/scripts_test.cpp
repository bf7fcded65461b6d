#include "core/scripts.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string_view>

namespace scripts_test {

using redlock::core::compare_and_delete;
using redlock::core::compare_and_extend;

TEST_CASE("the scripts of the plain protocol are those that other versions of the library run") {
    CHECK(compare_and_delete.sha1 == "ceb7e5a2eb8190898c3fa6a0edf51c8cfc1ac620");
    CHECK(compare_and_extend.sha1 == "1f3328dfb974ba8ac4ca107d3d97d24092297c97");
}

TEST_CASE("a script is one line that compares before it changes anything") {
    for (const auto& one : {compare_and_delete, compare_and_extend}) {
        CHECK(one.text.find('\n') == std::string_view::npos);
        const std::size_t compares = one.text.find("if v == ARGV[1] then");
        REQUIRE(compares != std::string_view::npos);
        for (const std::string_view change : {R"("DEL")", R"("PEXPIRE")"}) {
            const std::size_t at = one.text.find(change);
            CHECK((at == std::string_view::npos || at > compares));
        }
    }
    CHECK(
        compare_and_extend.text.find(R"("PTTL", KEYS[1]) < tonumber(ARGV[2]))")
        != std::string_view::npos);
}

} // namespace scripts_test
