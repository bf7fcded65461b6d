// The real masters of the tests, tested: processes, their files, and what can be done to them.
#include "master_process.hpp"
#include "process.hpp"
#include "support/test.hpp"

#include <unistd.h>

#include <csignal>

using namespace redlock::test;

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
