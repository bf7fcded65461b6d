#include "core/fair_queue_scripts.hpp"
#include "core/form_scripts.hpp"
#include "core/guarded_scripts.hpp"
#include "core/heal_scripts.hpp"
#include "core/scripts.hpp"
#include "memory/sha1.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string_view>

namespace scripts_test {

using redlock::core::compare_and_delete;
using redlock::core::compare_and_extend;
using redlock::testing::memory::sha1_hex;

TEST_CASE("the digests of the scripts are theirs") {
    CHECK(sha1_hex("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d"); // the helper itself
    CHECK(sha1_hex(compare_and_delete.text) == compare_and_delete.sha1);
    CHECK(sha1_hex(compare_and_extend.text) == compare_and_extend.sha1);
    CHECK(compare_and_delete.sha1 != compare_and_extend.sha1);
    for (const redlock::core::script& one :
         {redlock::core::compare_and_extend_each,
          redlock::core::guarded_handshake,
          redlock::core::guarded_acquire,
          redlock::core::guarded_raise,
          redlock::core::guarded_extend,
          redlock::core::guarded_release,
          redlock::core::all_acquire,
          redlock::core::all_raise,
          redlock::core::all_extend,
          redlock::core::all_release,
          redlock::core::writer_acquire,
          redlock::core::writer_release,
          redlock::core::writer_extend,
          redlock::core::shared_acquire,
          redlock::core::shared_extend,
          redlock::core::shared_release,
          redlock::core::guarded_heal,
          redlock::core::all_heal,
          redlock::core::writer_heal,
          redlock::core::shared_heal,
          redlock::core::turn_take,
          redlock::core::turn_leave}) {
        CHECK(sha1_hex(one.text) == one.sha1);
    }
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
