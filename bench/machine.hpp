// Where the figures were measured: a benchmark without its machine has no meaning.
#pragma once

#include "load.hpp"

#include <string>
#include <vector>

namespace bench {

struct machine {
    unsigned cores = 0;
    std::string cpu;
    std::string kernel;
    std::string compiler;
    // Meson's build type of the benchmark and whether assertions were compiled in.
    std::string build_type;
    bool assertions = false;
    // Of each master, in order.
    std::vector<std::string> servers;
};

// Collects the data of this machine and of the masters.
machine describe_machine(const std::vector<address>& masters);

} // namespace bench
