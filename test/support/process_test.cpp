// The real masters of the tests, tested: processes, their files, and what can be done to them.
#include "master_process.hpp"
#include "process.hpp"
#include "support/test.hpp"

#include <unistd.h>

#include <csignal>

using namespace redlock::test;

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
