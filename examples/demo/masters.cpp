#include "masters.hpp"

#include <filesystem>
#include <stdexcept>

namespace demo {
namespace {

using redlock::testing::process::master_process;

// It writes no other file than its log, which stays open.
void remove_files(const master_process& server) {
    std::filesystem::remove_all(server.unix_path().parent_path());
}

} // namespace

masters::masters(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        servers_.emplace_back(
            redlock::testing::process::master_options{}, master_process::no_wait());
    }
    for (master_process& one : servers_) {
        one.wait_until_ready();
        remove_files(one);
    }
}

std::vector<std::string> masters::urls() const {
    std::vector<std::string> all;
    for (const master_process& one : servers_) {
        all.push_back(one.url());
    }
    return all;
}

bool masters::hang(std::size_t index) {
    if (running(index)) {
        servers_.at(index).hang();
    }
    return running(index);
}

void masters::resume(std::size_t index) {
    if (running(index)) {
        servers_.at(index).resume();
    }
}

void masters::restart(std::size_t index) {
    try {
        servers_.at(index).restart();
    } catch (const std::runtime_error&) { // whether it runs is what the caller looks at
    }
    remove_files(servers_.at(index));
}

} // namespace demo
