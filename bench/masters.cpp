// The masters of the testing kit, without their files.
#include "masters.hpp"

#include <filesystem>

namespace bench {

using redlock::testing::process::master_options;
using redlock::testing::process::master_process;

masters::masters(std::size_t count, const std::string& program) {
    master_options how;
    how.program = program;
    for (std::size_t i = 0; i < count; ++i) {
        servers_.emplace_back(how, master_process::no_wait());
    }
    for (master_process& one : servers_) {
        one.wait_until_ready();
        addresses_.push_back({"127.0.0.1", one.port()});
        // It writes no other file than its log, which stays open.
        std::filesystem::remove_all(one.unix_path().parent_path());
    }
}

void masters::kill(std::size_t index) {
    servers_.at(index).kill();
}

void masters::hang(std::size_t index) {
    servers_.at(index).hang();
}

void masters::resume(std::size_t index) {
    servers_.at(index).resume();
}

} // namespace bench
