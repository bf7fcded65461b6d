// Names of keys: the part that a cluster hashes, and several of them in one text.

#include "admin/connection.hpp"
#include "core/bytes/form.hpp"
#include "core/bytes/keys.hpp"
#include "support/test.hpp"

namespace keys_test {

using namespace redlock::core;

TEST_CASE("the part of a key that is hashed is what is in its first braces, if there is any") {
    for (const auto& [key, part] : std::vector<std::pair<std::string_view, std::string_view>>{
             {"p:{r}:fence", "r"},
             {"{r}", "r"},
             {"{resource}{other}", "resource"},
             {"}{r}", "r"},
             {"p:{}{r}", "p:{}{r}"},
             {"{}", "{}"},
             {"plain", "plain"},
             {"open{end", "open{end"},
             {"plain}", "plain}"},
             {"", ""}}) {
        CAPTURE(key);
        CHECK(hash_part(key) == part);
    }
}

TEST_CASE("an operator gets all names of a lock") {
    redlock::config quorum;
    quorum.key_prefix = "p:";
    const redlock::detail::lock_keys some = redlock::detail::keys_of(quorum, "r");
    CHECK(some.lock == "p:{r}");
    CHECK(some.fence == "p:{r}:fence");
    CHECK(some.readers == "p:{r}:readers");
    CHECK(some.intent == "p:{r}:intent");
    CHECK(some.queue == "p:{r}:queue");
    CHECK(some.queue_until == "p:{r}:queue:until");
    CHECK(some.channel == "p:{r}:free");
    CHECK(some.record == "p::epoch");
    quorum.key_prefix.clear();
    CHECK(redlock::detail::keys_of(quorum, "r").lock == "r");
    CHECK(redlock::detail::keys_of(quorum, "r").fence == "{r}:fence");
}

TEST_CASE("keys of any length are packed and found again") {
    for (const std::size_t size : {0U, 1U, 255U, 256U, 300U, 511U, 70'000U}) {
        std::string packed;
        pack(packed, std::string(size, 'k'));
        pack(packed, "next");
        CHECK(packed.size() == 4 + size + 4 + 4);
        std::vector<std::string> found;
        for_each_packed(packed, [&](std::string_view key) { found.emplace_back(key); });
        CHECK(found == std::vector<std::string>{std::string(size, 'k'), "next"});
    }
}

} // namespace keys_test
