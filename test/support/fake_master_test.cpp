// The fake master, tested against a client that is known to be right. The suite `simulation` shows
// that the master in memory that it uses replies as a real one does.
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

TEST_CASE("a hanging fake master executes late, or answers late, and asks its rules late") {
    const std::map<std::string, std::string> first{{"a", "1"}};
    fake_master fake;
    fake.when("SET", fake_action::hang(), 2);
    fake.when("DEL", fake_action::execute_then_hang(), 1);
    raw_client client(fake.port());
    client.send(
        request_bytes({"SET", "a", "1"}) + request_bytes({"SET", "b", "2"})
        + request_bytes({"GET", "b"}));
    fake.wait_for_command("GET");
    CHECK(fake.keys().empty());
    CHECK(client.available() == 0);
    fake.release_hung();
    CHECK(fake.keys() == first);
    CHECK(client.receive(5) == "+OK\r\n");
    fake.release_hung();
    CHECK(client.receive(12) == "+OK\r\n$1\r\n2\r\n");
    client.send(request_bytes({"DEL", "b"}) + request_bytes({"PING"}));
    fake.wait_for_command("PING");
    CHECK(fake.keys() == first);
    CHECK(client.available() == 0);
    fake.release_hung();
    CHECK(client.receive(11) == ":1\r\n+PONG\r\n");
}
