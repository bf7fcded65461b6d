// Asking the operating system, the compiler and the servers what they are.
#include "machine.hpp"

#include "wire.hpp"

#include <fmt/format.h>

#include <sys/utsname.h>

#include <chrono>
#include <fstream>
#include <thread>

#ifndef QUORUM_BENCH_BUILD_TYPE
#define QUORUM_BENCH_BUILD_TYPE "unknown"
#endif

namespace bench {
namespace {

std::string cpu_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("model name", 0) == 0) {
            return line.substr(line.find(':') + 2);
        }
    }
    return "unknown";
}

std::string server_version(const address& master) {
    blocking_connection connection(master, std::chrono::seconds(2));
    const auto info = connection.command({"INFO", "server"});
    const auto valkey = info_field(info, "valkey_version");
    return valkey.empty() ? "redis " + info_field(info, "redis_version") : "valkey " + valkey;
}

} // namespace

machine describe_machine(const std::vector<address>& masters) {
    machine here;
    here.cores = std::thread::hardware_concurrency();
    here.cpu = cpu_model();
    utsname system{};
    if (::uname(&system) == 0) {
        here.kernel = fmt::format("{} {}", system.sysname, system.release);
    }
#if defined(__clang__)
    here.compiler = "clang " __clang_version__;
#else
    here.compiler = "g++ " __VERSION__;
#endif
    here.build_type = QUORUM_BENCH_BUILD_TYPE;
#ifndef NDEBUG
    here.assertions = true;
#endif
    for (const auto& master : masters) {
        here.servers.push_back(server_version(master));
    }
    return here;
}

} // namespace bench
