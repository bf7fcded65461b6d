// Reserves an unused TCP port as long as the object lives, even while no process listens on it: a
// master that restarts must find its port free.
//
// There are two measures. First, the port lies below the range from which the system takes source
// ports. No outgoing connection takes it, and no client that retries a dead port can connect to
// itself. Second, an abstract Unix socket with the port in its name shows other test processes that
// it is reserved.
#pragma once

#include <redlock/version.hpp>

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace process {

class free_port {
public:
    // Throws std::runtime_error if no port can be found.
    explicit free_port(const boost::asio::ip::address& address = loopback());
    free_port(free_port&& other) noexcept
        : number_(std::exchange(other.number_, std::uint16_t{0})),
          claim_(std::exchange(other.claim_, -1)) {}
    free_port& operator=(free_port&& other) noexcept;
    ~free_port();

    std::uint16_t number() const noexcept { return number_; }

    static boost::asio::ip::address loopback();

private:
    std::uint16_t number_ = 0;
    int claim_ = -1; // the abstract socket whose name is the claim
};

}}}} // namespace redlock::REDLOCK_ABI::testing::process
