// How the fake master reads requests. The suite `simulation` shows that the master in memory that
// it uses replies as a real one does.
#include "fake_master.hpp"
#include "raw_client.hpp"
#include "support/test.hpp"

using namespace redlock::test;

TEST_CASE("the parser takes requests in any pieces and refuses other input") {
    const std::string bytes = request_bytes({"SET", "k", "a\r\nb"}) + request_bytes({"PING"});
    std::vector<std::vector<std::string>> seen;
    std::vector<std::string_view> words;
    std::string input;
    for (const char byte : bytes) {
        input += byte;
        std::size_t at = 0;
        if (memory::take_command(input, at, words)) {
            seen.emplace_back(words.begin(), words.end());
            input.erase(0, at);
        }
    }
    CHECK(seen == std::vector<std::vector<std::string>>{{"SET", "k", "a\r\nb"}, {"PING"}});
    for (const char* bad :
         {"PING\r\n",
          "*0\r\n",
          "*-1\r\n",
          "*1\r\n+PING\r\n",
          "*1\r\n$4\r\nPINGxx",
          "*1\r\n$x\r\n",
          "*11111111111111111111111111111111111111"}) {
        std::size_t at = 0;
        CHECK_THROWS_AS(memory::take_command(bad, at, words), std::runtime_error);
    }
}
