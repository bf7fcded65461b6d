// The fake master, tested against a client that is known to be right. The suite `simulation` shows
// that the master in memory that it uses replies as a real one does.
#include "fake_master.hpp"
#include "process.hpp"
#include "raw_client.hpp"
#include "run.hpp"
#include "support/test.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <thread>

namespace asio = boost::asio;
using asio::ip::tcp;
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

TEST_CASE("a fake master is a healthy one that has been up for long, with a name of its own") {
    fake_options options;
    options.requirepass = "secret";
    options.info = {{"role", "slave"}, {"new_field", "1"}};
    fake_master fake(options);
    resp_client client("127.0.0.1", fake.port());
    CHECK(client.command({"EVAL", "return 1", "0"}).starts_with("(error) NOAUTH"));
    CHECK(client.command({"AUTH", "default", "wrong"}).starts_with("(error) WRONGPASS"));
    CHECK(client.command({"AUTH", "default", "secret"}) == "OK");
    CHECK(client.command({"EVAL", "return 1", "0"}) == "1");
    CHECK(client.command({"HELLO", "3\r\n"}).starts_with("(error) ERR unknown command"));
    const std::string info = client.command({"INFO"});
    for (const char* field :
         {"redis_version:7.0.15\r\n",
          "uptime_in_seconds:1000", // and the seconds since it began
          "role:slave\r\n",
          "new_field:1\r\n"}) {
        CHECK(info.find(field) != std::string::npos);
    }
    CHECK(fake.run_id().size() == 40);
    CHECK(fake.run_id() != fake_master().run_id());
}

TEST_CASE("a fake master's keys expire, and can be seen and changed") {
    fake_master fake;
    resp_client client("127.0.0.1", fake.port());
    client.command({"SET", "short", "t", "PX", "1"});
    client.command({"SET", "long", "t", "PX", "60000"});
    fake.set_key("mine", "v");
    CHECK(fake.get_key("long") == "t");
    CHECK(fake.pttl("long") > 50'000);
    CHECK(fake.pttl("mine") == -1);
    const auto until = std::chrono::steady_clock::now() + 5s;
    while (fake.get_key("short") && std::chrono::steady_clock::now() < until) {
        std::this_thread::yield();
    }
    CHECK(fake.keys() == std::map<std::string, std::string>{{"long", "t"}, {"mine", "v"}});
    CHECK(fake.erase_key("mine"));
    fake.flush_keys();
    CHECK(fake.keys().empty());
}

TEST_CASE("a fake master answers as its rules say, as often as they say") {
    fake_master fake;
    fake.when("SET", fake_action::reply("-OOM no memory\r\n"), 2);
    fake.when("client setname", fake_action::reply("-ERR no\r\n"));
    resp_client client("127.0.0.1", fake.port());
    CHECK(client.command({"SET", "k", "v"}) == "(error) OOM no memory");
    CHECK(client.command({"set", "k", "v"}) == "(error) OOM no memory");
    CHECK(fake.keys().empty());
    CHECK(client.command({"SET", "k", "v"}) == "OK");
    CHECK(client.command({"CLIENT", "SETNAME", "x"}) == "(error) ERR no");
    CHECK(client.command({"CLIENT", "ID"}) != "(error) ERR no");
    fake.clear_rules();
    CHECK(client.command({"CLIENT", "SETNAME", "x"}) == "OK");
    CHECK(fake.count("SET") == 3);
    CHECK(fake.commands().back().sequence == 5);
}

TEST_CASE("a hanging fake master executes late, or answers late") {
    fake_master fake;
    fake.when("SET", fake_action::hang(), 1);
    fake.when("DEL", fake_action::execute_then_hang(), 1);
    raw_client client(fake.port());
    client.send(request_bytes({"SET", "k", "v"}) + request_bytes({"PING"}));
    fake.wait_for_command("PING");
    CHECK(fake.keys().empty());
    CHECK(client.available() == 0);
    fake.release_hung();
    CHECK(client.receive(12) == "+OK\r\n+PONG\r\n");
    CHECK(fake.get_key("k") == "v");

    client.send(request_bytes({"DEL", "k"}));
    fake.wait_for_command("DEL");
    CHECK(fake.keys().empty());
    CHECK(resp_client("127.0.0.1", fake.port()).command({"PING"}) == "PONG");
    CHECK(client.available() == 0);
    fake.release_hung();
    CHECK(client.receive(4) == ":1\r\n");
}

TEST_CASE("after a hanging command rules are asked when it is released") {
    fake_master fake;
    fake.when("SET", fake_action::hang(), 2);
    raw_client client(fake.port());
    client.send(
        request_bytes({"SET", "a", "1"}) + request_bytes({"SET", "b", "2"})
        + request_bytes({"GET", "b"}));
    fake.wait_for_command("GET");
    fake.release_hung();
    CHECK(fake.keys() == std::map<std::string, std::string>{{"a", "1"}});
    client.send(request_bytes({"GET", "a"}));
    fake.wait_for_command("GET", 2);
    CHECK(client.receive(5) == "+OK\r\n");
    fake.release_hung();
    CHECK(fake.keys().size() == 2);
    CHECK(client.receive(19) == "+OK\r\n$1\r\n2\r\n$1\r\n1\r\n");
}

TEST_CASE("a fake master executes what a client sent before it went away") {
    fake_master fake;
    fake.when("SET", fake_action::hang(), 1);
    {
        raw_client client(fake.port());
        client.send(request_bytes({"SET", "k", "v"}));
        fake.wait_for_command("SET");
    }
    fake.wait_for_open_connections(0);
    fake.release_hung();
    CHECK(fake.get_key("k") == "v");
}

TEST_CASE("a fake master closes before, in the middle of and after") {
    fake_master fake;
    fake.when("SET", fake_action::close_before_reply(), 1);
    fake.when("SET", fake_action::execute_then_close(), 1);
    fake.when("GET", fake_action::close_mid_reply(3), 1);
    const std::string set = request_bytes({"SET", "k", "v"});
    raw_client first(fake.port());
    first.send(request_bytes({"PING"}) + set);
    CHECK(first.receive_all() == "+PONG\r\n");
    CHECK(fake.keys().empty());
    raw_client second(fake.port());
    second.send(set);
    CHECK(second.receive_all().empty());
    CHECK(fake.get_key("k") == "v");
    raw_client third(fake.port());
    third.send(request_bytes({"GET", "k"}));
    CHECK(third.receive_all() == "$1\r");
    fake.wait_for_open_connections(0);
    CHECK(fake.connections_accepted() == 3);
}

TEST_CASE("a fake master delays, splits, babbles and exaggerates") {
    fake_master fake;
    fake.when("GET", fake_action::delay(30ms), 1);
    fake.when("GET", fake_action::split_bytes(50ms), 1);
    fake.when("GET", fake_action::garbage(), 1);
    fake.when("GET", fake_action::too_large(200'000), 1);
    fake.set_key("k", "v");
    raw_client client(fake.port());
    const std::string get = request_bytes({"GET", "k"});

    const auto start = std::chrono::steady_clock::now();
    client.send(get);
    CHECK(client.receive(7) == "$1\r\nv\r\n");
    CHECK(std::chrono::steady_clock::now() - start >= 30ms);
    client.send(get);
    const std::size_t first = client.receive_some();
    CHECK(first < 7);
    CHECK(client.receive(7 - first).ends_with("v\r\n"));
    client.send(get);
    CHECK(client.receive(29)[1] == '\xff');
    client.send(get);
    CHECK(client.receive(9 + 200'000 + 2).starts_with("$200000\r\nxxx"));
    client.send(get);
    CHECK(client.receive(7) == "$1\r\nv\r\n");
    CHECK_THROWS_AS(
        [&fake] {
            fake.when("PING", fake_action::garbage());
            resp_client("127.0.0.1", fake.port()).command({"PING"});
        }(),
        std::runtime_error);
}

TEST_CASE("a fake master refuses, drops, keeps silent and restarts") {
    fake_master fake;
    raw_client old(fake.port());
    fake.wait_for_connections(1);
    fake.refuse_connections(true);
    CHECK_THROWS_AS(raw_client(fake.port()), boost::system::system_error);
    old.send(request_bytes({"PING"}));
    CHECK(old.receive(7) == "+PONG\r\n");
    fake.refuse_connections(false);
    fake.drop_connections();
    CHECK(old.receive_all().empty());

    fake.accept_but_say_nothing(true);
    raw_client patient(fake.port());
    patient.send(request_bytes({"SET", "k", "v"}));
    fake.wait_for_command("SET");
    CHECK(patient.available() == 0);
    fake.accept_but_say_nothing(false);
    CHECK(patient.receive(5) == "+OK\r\n");

    const std::string id = fake.run_id();
    fake.restart_empty();
    CHECK(patient.receive_all().empty());
    CHECK(fake.run_id() != id);
    CHECK(fake.keys().empty());
}

TEST_CASE("a fake master records what came in one write as one read") {
    fake_master fake;
    raw_client client(fake.port());
    std::string batch;
    for (int i = 0; i < 100; ++i) {
        batch += request_bytes({"SET", "k" + std::to_string(i), "v"});
    }
    client.send(batch);
    fake.wait_for([](const fake_master::log& log) { return log.size() == 100; });
    CHECK(fake.commands_per_read() == std::vector<std::size_t>{100});
    CHECK(fake.reads().front().bytes == batch.size());
    fake.clear_log();
    client.send("nonsense\r\n");
    fake.wait_for_open_connections(0);
    CHECK(fake.protocol_errors().size() == 1);
    CHECK_THROWS_AS(fake.wait_for_command("NEVER", 1, 0s), time_limit_error);
}

TEST_CASE("a fake master runs on the context of the test") {
    asio::io_context io;
    fake_master fake(io);
    asio::ip::tcp::socket socket(io);
    run(io, [&]() -> asio::awaitable<void> {
        const tcp::endpoint endpoint(free_port::loopback(), fake.port());
        co_await socket.async_connect(endpoint, asio::use_awaitable);
        const std::string ping = request_bytes({"PING"});
        co_await asio::async_write(socket, asio::buffer(ping), asio::use_awaitable);
        std::string pong(7, '\0');
        co_await asio::async_read(socket, asio::buffer(pong), asio::use_awaitable);
        if (pong != "+PONG\r\n") {
            throw std::runtime_error("got " + pong);
        }
    });
    CHECK(fake.count("PING") == 1);
    socket.close();
    run_until(io, [&fake] { return fake.connections_open() == 0; });
}
