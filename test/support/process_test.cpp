// The real masters of the tests, tested: processes, their files, and what can be done to them.
#include "master_process.hpp"
#include "process.hpp"
#include "raw_client.hpp"
#include "support/test.hpp"

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>

#include <unistd.h>

#include <csignal>

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace redlock::test;

namespace {

std::string tls_ping(
    const master_process& master,
    const std::filesystem::path& ca,
    const std::filesystem::path& certificate = {},
    const std::filesystem::path& key = {}) {
    asio::io_context io;
    asio::ssl::context context(asio::ssl::context::tls_client);
    context.load_verify_file(ca.string());
    context.set_verify_mode(asio::ssl::verify_peer);
    if (!certificate.empty()) {
        context.use_certificate_file(certificate.string(), asio::ssl::context::pem);
        context.use_private_key_file(key.string(), asio::ssl::context::pem);
    }
    asio::ssl::stream<tcp::socket> stream(io, context);
    stream.set_verify_callback(asio::ssl::host_name_verification("localhost"));
    stream.next_layer().connect(tcp::endpoint(free_port::loopback(), master.tls_port()));
    stream.handshake(asio::ssl::stream_base::client);
    asio::write(stream, asio::buffer(request_bytes({"PING"})));
    std::string line;
    asio::read_until(stream, asio::dynamic_buffer(line), "\r\n");
    return line;
}

} // namespace

TEST_CASE("a temporary directory goes with its object") {
    std::filesystem::path path;
    {
        temp_dir first;
        path = first.path();
        const temp_dir second = std::move(first);
        CHECK(std::filesystem::is_directory(path));
    }
    CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a program that does not exist is an exception") {
    const temp_dir dir;
    CHECK(find_program("no-such-program-anywhere").empty());
    CHECK_THROWS_AS(child_process({"/nonexistent/program"}, dir.path() / "log"), std::system_error);
}

TEST_CASE("a forked child runs its body, and its end is known") {
    child_process good(std::function<int()>([] { return 7; }));
    CHECK(good.wait() == 7);
    CHECK(good.status() == 7);
    child_process bad(std::function<int()>([]() -> int { throw std::runtime_error("no"); }));
    CHECK(bad.wait() == 125);
    child_process hung(std::function<int()>([] { return ::pause(); }));
    hung.stop();
    CHECK(hung.stopped());
    CHECK(hung.running());
    CHECK(hung.status() == 0);
    hung.kill();
    CHECK_FALSE(hung.running());
    CHECK(hung.status() == 128 + SIGKILL);
}

TEST_CASE("a master answers, hangs, resumes, dies and comes back empty") {
    master_process master;
    const pid_t first = master.pid();
    CHECK(master.url() == "redis://127.0.0.1:" + std::to_string(master.port()));
    CHECK(master.command({"SET", "a", "1", "NX", "PX", "60000"}) == "OK");
    CHECK(master.command({"SET", "a", "2", "NX"}) == "(nil)");
    CHECK(master.command({"INCR", "a"}) == "2");
    CHECK(master.command({"MGET", "a", "b"}) == "2\n(nil)");
    CHECK(master.command({"KEYS", "x*"}) == "(empty array)");
    CHECK(master.command({"NONSENSE"}).starts_with("(error) ERR unknown command"));
    CHECK(master.command({"DEBUG", "SLEEP", "0"}) == "OK");
    CHECK(master.keys() == std::vector<std::string>{"a"});

    master.hang();
    CHECK(master.running());
    CHECK_THROWS_AS(
        resp_client("127.0.0.1", master.port(), 100ms).command({"PING"}), std::runtime_error);
    master.resume();
    master.resume();
    CHECK(master.command({"PING"}) == "PONG");

    master.kill();
    CHECK_FALSE(master.running());
    CHECK_THROWS_AS(master.command({"PING"}), std::runtime_error);
    CHECK_THROWS_AS(master.hang(), std::runtime_error);
    const std::string url = master.url();
    master.restart();
    CHECK(master.url() == url);
    CHECK(master.pid() != first);
    CHECK(master.keys().empty());
}

TEST_CASE("a master with an append-only file keeps its data over a kill, until it is wiped") {
    master_options options;
    options.appendonly = true;
    options.appendfsync = "always";
    master_process master(options);
    CHECK(master.command({"SET", "a", "1"}) == "OK");
    master.hang();
    master.restart();
    CHECK(master.command({"GET", "a"}) == "1");
    master.restart_empty();
    CHECK(master.command({"GET", "a"}) == "(nil)");
    CHECK(master.command({"CONFIG", "GET", "appendfsync"}) == "appendfsync\nalways");
}

TEST_CASE("a master takes options: password, socket, memory, others") {
    master_options options;
    options.requirepass = "secret";
    options.unix_socket = true;
    options.maxmemory = "64mb";
    options.maxmemory_policy = "volatile-lru";
    options.extra = {"--databases", "3"};
    master_process master(options);
    CHECK(master.command({"CONFIG", "GET", "maxmemory-policy"}).ends_with("volatile-lru"));
    CHECK(master.command({"CONFIG", "GET", "databases"}).ends_with("3"));
    CHECK(resp_client("127.0.0.1", master.port()).command({"PING"}).starts_with("(error) NOAUTH"));

    asio::io_context io;
    asio::local::stream_protocol::socket socket(io);
    socket.connect(master.unix_path().string());
    CHECK(master.unix_url() == "unix://" + master.unix_path().string());
    asio::write(socket, asio::buffer(request_bytes({"PING"})));
    std::string line;
    asio::read_until(socket, asio::dynamic_buffer(line), "\r\n");
    CHECK(line.starts_with("-NOAUTH"));
}

TEST_CASE("a master that cannot start says why") {
    master_options options;
    options.extra = {"--no-such-directive", "1"};
    CHECK_THROWS_AS(master_process(options), std::runtime_error);
}

TEST_CASE("a master leaves neither process nor directory") {
    pid_t pid = 0;
    std::filesystem::path dir;
    {
        master_process first;
        master_process second;
        pid = first.pid();
        dir = first.unix_path().parent_path();
        second = std::move(first);
        CHECK(second.pid() == pid);
        second.hang();
    }
    CHECK(::kill(pid, 0) == -1);
    CHECK_FALSE(std::filesystem::exists(dir));
}

TEST_CASE("a master accepts TLS with the right authority only") {
    master_options options;
    options.tls = true;
    const master_process master(options);
    const tls_files& files = master.certificates();
    CHECK(master.tls_url() == "rediss://localhost:" + std::to_string(master.tls_port()));
    CHECK(tls_ping(master, files.ca()) == "+PONG\r\n");
    CHECK_THROWS_AS(tls_ping(master, files.other_ca()), boost::system::system_error);
}

TEST_CASE("a master may ask for a client's certificate") {
    master_options options;
    options.tls = true;
    options.tls_auth_clients = true;
    const master_process master(options);
    const tls_files& files = master.certificates();
    CHECK(
        tls_ping(master, files.ca(), files.client_certificate(), files.client_key())
        == "+PONG\r\n");
    CHECK_THROWS_AS(tls_ping(master, files.ca()), boost::system::system_error);
    CHECK_THROWS_AS(
        tls_ping(master, files.ca(), files.other_client_certificate(), files.other_client_key()),
        boost::system::system_error);
}

TEST_CASE("a quorum of masters is independent servers") {
    quorum_of_masters masters(5);
    REQUIRE(masters.size() == 5);
    REQUIRE(masters.urls().size() == 5);
    CHECK(masters[2].command({"SET", "k:1", "v"}) == "OK");
    CHECK(masters[3].command({"SET", "k:2", "v"}) == "OK");
    masters[4].kill();
    using counts = std::vector<std::optional<std::size_t>>;
    CHECK(masters.count_keys("k:*") == counts{0, 0, 1, 1, std::nullopt});
    CHECK(masters.total_keys() == 2);
}
