// What a real master of the tests leaves: nothing.
#include "master_process.hpp"
#include "support/test.hpp"

#include <csignal>

using namespace redlock::test;

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
