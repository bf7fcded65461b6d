// The testing kit's real masters, as a user has them.
#include "client.hpp"
#include "support/process.hpp"

#include <redlock/testing.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace redlock::test {
namespace {

using testing::process::child_process;
using testing::process::tie;

/// Not ours to reap: it may stay a zombie until somebody does.
bool is_gone(pid_t process) {
    std::ifstream status("/proc/" + std::to_string(process) + "/stat");
    std::string word;
    status >> word >> word >> word;
    return !status || word == "Z" || word == "X";
}

/// The process that a child of the test has told of; the child was then killed.
pid_t orphan_of(const std::function<pid_t()>& spawn) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const pid_t made = spawn();
        [[maybe_unused]] const auto said = ::write(ends[1], &made, sizeof made);
        for (;;) {
            ::pause();
        }
    }
    ::close(ends[1]);
    pid_t made = 0;
    const auto got = ::read(ends[0], &made, sizeof made);
    ::close(ends[0]);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    REQUIRE(got == sizeof made);
    return made;
}

} // namespace

TEST_CASE("the kit's masters make a quorum, and come back from what is done to them") {
    testing::masters masters;
    asio::io_context io;
    client me(io, masters.make_config(), 3);
    lock held = me.take("r");
    CHECK(masters[0].command({"SET", "a", "1"}) == "OK");
    masters[0].kill();
    CHECK_THROWS_AS(masters[0].command({"PING"}), std::runtime_error);
    me.until_admitted(2);
    CHECK(me.extend(held, 10s) == error_code());
    masters[0].restart();
    me.until_admitted(3);
    CHECK(masters[0].command({"EXISTS", "a"}) == "0");
    masters[1].cut();
    me.until_admitted(3);
    CHECK(masters[2].command({"SET", "a", "1"}) == "OK");
    masters[2].flush();
    CHECK(masters[2].command({"EXISTS", "a"}) == "0");
    CHECK(held.held());
}

TEST_CASE("masters of the kit that are declared new vote without a quarantine") {
    testing::masters masters(1);
    masters.declare_new();
    asio::io_context io;
    config settings = masters.make_config();
    settings.quarantine = true;
    client me(io, settings, 1);
    const lock held = me.take("r");
}

TEST_CASE("a master of the kit that hangs or pauses goes on later") {
    testing::masters masters(1);
    asio::io_context io;
    config settings = masters.make_config();
    settings.master_timeout = 50ms;
    client me(io, settings, 1);
    masters[0].hang();
    CHECK(me.acquire("r")->error == errc::no_quorum);
    masters[0].resume();
    const lock held = me.take("r", waiting(20s));
    masters[0].command({"CLIENT", "PAUSE", "300", "ALL"});
    CHECK(me.acquire("s")->error == errc::no_quorum);
    const lock other = me.take("s", waiting(20s));
}

TEST_CASE("a durable master of the kit keeps its data over a restart, unless that is empty") {
    testing::master_options options;
    options.durable = true;
    options.password = "secret";
    options.arguments = {"--databases", "3"};
    testing::masters masters(1, options);
    CHECK(masters.make_config().password == "secret");
    CHECK(masters[0].command({"SET", "a", "1"}) == "OK");
    masters[0].restart();
    CHECK(masters[0].command({"GET", "a"}) == "1");
    masters[0].restart_empty();
    CHECK(masters[0].command({"GET", "a"}) == "(nil)");
    CHECK(masters[0].command({"SELECT", "3"}).starts_with("(error)"));
}

TEST_CASE("a master of the kit is reached over a Unix socket") {
    testing::master_options options;
    options.unix_socket = true;
    testing::masters masters(1, options);
    CHECK(masters.urls().front().starts_with("unix://"));
    asio::io_context io;
    client me(io, masters.make_config(), 1);
    const lock held = me.take("r");
    CHECK(held.held());
}

TEST_CASE("masters that cannot be started say why") {
    testing::master_options options;
    options.program = "no-such-server";
    std::string why;
    try {
        const testing::masters none(1, options);
    } catch (const std::runtime_error& error) {
        why = error.what();
    }
    CHECK(why == "no program to run masters with: no-such-server");
    options.program = {};
    options.arguments = {"--no-such-option"};
    CHECK_THROWS_AS(testing::masters(1, options), std::runtime_error);
}

TEST_CASE("the kit's masters end with a test that is killed") {
    const pid_t server = orphan_of([] {
        auto* const masters = new testing::masters(1); // nobody destroys it
        const std::string info = (*masters)[0].command({"INFO", "server"});
        return std::atoi(info.c_str() + info.find("process_id:") + 11);
    });
    REQUIRE(server > 0);
    asio::io_context io;
    run_until(io, [&] { return is_gone(server); });
}

TEST_CASE("a child process ends with its parent, with the kernel's help and without") {
    const temp_dir dir;
    for (const tie how : {testing::process::usual_tie, tie::guardian}) {
        const pid_t orphan = orphan_of([&] {
            auto* const child = new child_process(
                {testing::process::find_program("sleep").string(), "1000"},
                dir.path() / "output",
                how);
            return child->pid();
        });
        REQUIRE(orphan > 0);
        asio::io_context io;
        run_until(io, [&] { return is_gone(orphan); });
    }
}

TEST_CASE("a guardian goes with its child") {
    const temp_dir dir;
    child_process child(
        {testing::process::find_program("sleep").string(), "1000"},
        dir.path() / "output",
        tie::guardian);
    CHECK(child.running());
    child.kill();
    CHECK(!child.running());
    CHECK(::waitpid(-1, nullptr, WNOHANG) == -1); // nobody is left
}

} // namespace redlock::test
