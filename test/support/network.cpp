#include "network.hpp"

#include "process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace redlock::test {
namespace {

constexpr const char* here = "/proc/thread-self/ns/net";

int open_namespace() {
    const int fd = ::open(here, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        throw std::system_error(errno, std::generic_category(), here);
    }
    return fd;
}

void enter(int fd) {
    if (::setns(fd, CLONE_NEWNET) != 0) {
        throw std::system_error(errno, std::generic_category(), "setns");
    }
}

// The program is often where only root looks.
std::filesystem::path program(const std::string& name) {
    for (const std::string folder : {"", "/usr/sbin/", "/sbin/"}) {
        std::filesystem::path found = find_program(folder + name);
        if (!found.empty()) {
            return found;
        }
    }
    return {};
}

std::string port_of(std::size_t host) {
    return "port" + std::to_string(host);
}

std::string blackholes(const char* verb, const std::vector<std::size_t>& to) {
    std::string batch;
    for (const std::size_t host : to) {
        batch += std::string("route ") + verb + " blackhole " + network::address(host) + "/32\n";
    }
    return batch;
}

} // namespace

network_namespace::network_namespace() {
    const int back = open_namespace();
    if (::unshare(CLONE_NEWNET) != 0) {
        const int error = errno;
        ::close(back);
        throw std::system_error(error, std::generic_category(), "no network namespace");
    }
    fd_ = ::open(here, O_RDONLY | O_CLOEXEC);
    const int error = errno;
    const bool returned = ::setns(back, CLONE_NEWNET) == 0;
    ::close(back);
    if (fd_ < 0 || !returned) {
        throw std::system_error(error, std::generic_category(), "network namespace");
    }
}

network_namespace::~network_namespace() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

visit::visit(const network_namespace& where) : back_(open_namespace()) {
    enter(where.descriptor());
}

visit::~visit() {
    // The way back is open: only a program that has given up its rights in between has none, and
    // in the wrong namespace no test can go on.
    if (::setns(back_, CLONE_NEWNET) != 0) {
        std::terminate();
    }
    ::close(back_);
}

std::string network::missing() {
    if (program("ip").empty()) {
        return "the program ip is not installed (package iproute2)";
    }
    try {
        const network probe(1);
        return {};
    } catch (const std::exception& error) {
        return error.what();
    }
}

std::string network::address(std::size_t host) {
    return "10.213.0." + std::to_string(host + 1);
}

network::network(std::size_t hosts) {
    std::string cables = "link set lo up\n"
                         "link add bridge type bridge\n"
                         "link set bridge up\n";
    for (std::size_t i = 0; i < hosts; ++i) {
        hosts_.emplace_back();
        cables += "link add " + port_of(i) + " type veth peer name eth0 netns /proc/"
                  + std::to_string(::getpid()) + "/fd/" + std::to_string(hosts_[i].descriptor())
                  + "\nlink set " + port_of(i) + " master bridge up\n";
    }
    {
        const visit there(hub_);
        ip(cables);
    }
    for (std::size_t i = 0; i < hosts; ++i) {
        const visit there(hosts_[i]);
        ip("link set lo up\naddr add " + address(i) + "/24 dev eth0\nlink set eth0 up\n");
    }
}

void network::cut(std::size_t from, const std::vector<std::size_t>& to) {
    const visit there(host(from));
    ip(blackholes("replace", to));
}

void network::mend(std::size_t from, const std::vector<std::size_t>& to) {
    const visit there(host(from));
    ip(blackholes("del", to));
}

// At the bridge, so that the host itself sees no carrier go.
void network::unplug(std::size_t host) {
    const visit there(hub_);
    ip("link set " + port_of(host) + " nomaster\n");
}

void network::plug_in(std::size_t host) {
    const visit there(hub_);
    ip("link set " + port_of(host) + " master bridge\n");
}

void network::ip(const std::string& batch) const {
    const std::filesystem::path script = dir_.path() / "batch";
    std::ofstream(script) << batch;
    const ended_program got =
        run_program({program("ip").string(), "-batch", script.string()}, dir_.path());
    if (got.status != 0) {
        throw std::runtime_error("ip failed: " + got.text);
    }
}

} // namespace redlock::test
