#include "masters.hpp"

#include <stdexcept>

namespace demo {

using redlock::testing::process::master_process;

masters::masters(std::size_t count) : servers_(redlock::testing::process::start_masters(count)) {
    for (master_process& one : servers_) {
        one.remove_files();
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
    servers_.at(index).remove_files();
}

} // namespace demo
