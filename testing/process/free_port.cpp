// Draws random ports until one can be claimed among the test processes and bound by a server.
#include "free_port.hpp"

#include "child_process.hpp"
#include "stream_socket.hpp"

#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace process {
namespace {

constexpr int port_min = 10'000;
constexpr int tries_max = 1'000;

int first_source_port() {
    const int first = std::atoi(read_text("/proc/sys/net/ipv4/ip_local_port_range").c_str());
    return first > 0 ? first : 32'768;
}

// An abstract name vanishes with its last descriptor, even after a crash. Systems other than Linux
// do not have such names, and no other process sees the claim.
int claim([[maybe_unused]] int port) {
#if defined(__linux__) && !defined(REDLOCK_PORTABLE)
    const std::string name = "redlock-test-port-" + std::to_string(port);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(), address.sun_path + 1);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const int descriptor = ::socket(AF_UNIX, stream_socket, 0);
    if (descriptor >= 0
        && ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
        ::close(descriptor);
        return -1;
    }
    return descriptor;
#else
    return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
#endif
}

bool can_listen(const boost::asio::ip::address& address, std::uint16_t port) {
    const boost::asio::ip::tcp::endpoint endpoint(address, port);
    const int made = ::socket(endpoint.protocol().family(), stream_socket, 0);
    const int on = 1;
    const bool listens =
        ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0
        && ::bind(made, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0
        && ::listen(made, 1) == 0;
    ::close(made);
    return listens;
}

} // namespace

boost::asio::ip::address free_port::loopback() {
    return boost::asio::ip::address_v4::loopback();
}

free_port::free_port(const boost::asio::ip::address& address) {
    const int port_max = std::max(first_source_port() - 1, port_min + 1'000);
    std::random_device random;
    std::uniform_int_distribution<int> draw(port_min, port_max);
    for (int i = 0; i < tries_max; ++i) {
        const int port = draw(random);
        const int claimed = claim(port);
        if (claimed < 0) {
            continue;
        }
        if (can_listen(address, static_cast<std::uint16_t>(port))) {
            number_ = static_cast<std::uint16_t>(port);
            claim_ = claimed;
            return;
        }
        ::close(claimed);
    }
    throw std::runtime_error("no free port found on " + address.to_string());
}

free_port& free_port::operator=(free_port&& other) noexcept {
    std::swap(number_, other.number_);
    std::swap(claim_, other.claim_);
    return *this;
}

free_port::~free_port() {
    if (claim_ >= 0) {
        ::close(claim_);
    }
}

}}}} // namespace redlock::REDLOCK_ABI::testing::process
