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

TEST_CASE("a fake master answers as its rules say, as often as they say") {
    fake_master fake;
    fake.when("SET", fake_action::reply("-OOM no memory\r\n"), 2);
    fake.when("CLIENT SETNAME", fake_action::reply("-ERR no\r\n"));
    resp_client client("127.0.0.1", fake.port());
    CHECK(client.command({"SET", "k", "v"}) == "(error) OOM no memory");
    CHECK(client.command({"SET", "k", "v"}) == "(error) OOM no memory");
    CHECK(fake.keys().empty());
    CHECK(client.command({"SET", "k", "v"}) == "OK");
    CHECK(client.command({"CLIENT", "SETNAME", "x"}) == "(error) ERR no");
    CHECK(client.command({"CLIENT", "ID"}) != "(error) ERR no");
    fake.clear_rules();
    CHECK(client.command({"CLIENT", "SETNAME", "x"}) == "OK");
    CHECK(fake.count("SET") == 3);
    CHECK(fake.commands().size() == 6);
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

TEST_CASE("a fake master executes what a client sent before it went away") {
    fake_master fake;
    fake.when("SET", fake_action::hang(), 1);
    raw_client(fake.port()).send(request_bytes({"SET", "k", "v"}));
    fake.wait_for_command("SET");
    fake.release_hung();
    CHECK(fake.keys().size() == 1);
}

TEST_CASE("a fake master closes before, in the middle of and after, or at once") {
    fake_master fake;
    fake.when("SET", fake_action::close_before_reply(), 1);
    fake.when("SET", fake_action::execute_then_close(), 1);
    fake.when("GET", fake_action::close_mid_reply(3), 1);
    const std::string set = request_bytes({"SET", "k", "v"});
    const auto reply_to = [&](const std::string& request) {
        raw_client client(fake.port());
        client.send(request);
        return client.receive_all();
    };
    CHECK(reply_to(request_bytes({"PING"}) + set) == "+PONG\r\n");
    CHECK(fake.keys().empty());
    CHECK(reply_to(set).empty());
    CHECK(fake.keys().size() == 1);
    CHECK(reply_to(request_bytes({"GET", "k"})) == "$1\r");
    raw_client dropped(fake.port());
    dropped.send(request_bytes({"PING"}));
    CHECK(dropped.receive(7) == "+PONG\r\n");
    fake.drop_connections();
    CHECK(dropped.receive_all().empty());
    CHECK(fake.connections_accepted() == 4);
}
