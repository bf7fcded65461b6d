// A TCP port that nobody uses, kept for us as long as the object lives, although nothing may be
// listening on it: a master that is down for a while must find its port free when it comes back.
//
// Two measures: the port lies below the range from which the system takes source ports, so that no
// outgoing connection takes it, and no client that retries a dead port can connect to itself; and
// an abstract Unix socket with the port in its name tells other test processes to keep off.
#pragma once

#include <redlock/version.hpp>

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace process {

class free_port {
public:
    // Throws std::runtime_error when no port can be found.
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
