// A network of hosts that exist only for a test. Each is a network namespace with one address, all
// on one bridge; what one host sends to another can be lost, in either direction alone.
//
// The namespaces have no names. They live by this object's descriptors and by the processes in
// them, which the kernel kills with the test (see child_process.hpp). So nothing is left to clean
// up, however the test ends, and tests at the same time do not see each other.
#pragma once

#include "process.hpp"

#include <cstddef>

namespace redlock::test {

class network_namespace {
public:
    // A new one; the calling thread stays where it is. Throws std::system_error: without the right
    // to make any (root, or CAP_SYS_ADMIN in a user namespace), for one.
    network_namespace();
    network_namespace(network_namespace&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    network_namespace& operator=(network_namespace&&) = delete;
    ~network_namespace();

    int descriptor() const noexcept { return fd_; }

private:
    int fd_ = -1;
};

// The calling thread is in that namespace for as long as this lives: sockets it opens, threads and
// processes it starts are there, and stay there.
class visit {
public:
    explicit visit(const network_namespace& where);
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit();

private:
    int back_ = -1;
};

class network {
public:
    // Throws std::runtime_error or std::system_error.
    explicit network(std::size_t hosts);

    // Why there can be no such network here; empty when there can. For visible skips.
    static std::string missing();

    std::size_t size() const noexcept { return hosts_.size(); }
    const network_namespace& host(std::size_t i) const { return hosts_.at(i); }
    static std::string address(std::size_t host);

    // One way: what `from` sends to these is lost from now on, without a report. Only a connect at
    // `from` fails at once: the host cannot be reached.
    void cut(std::size_t from, const std::vector<std::size_t>& to);
    void mend(std::size_t from, const std::vector<std::size_t>& to);

    // The host's cable: nothing comes in or out while it is pulled, without a report.
    void unplug(std::size_t host);
    void plug_in(std::size_t host);

private:
    void ip(const std::string& batch) const;

    temp_dir dir_{"redlock-network-"};
    network_namespace hub_;
    std::vector<network_namespace> hosts_;
};

} // namespace redlock::test
