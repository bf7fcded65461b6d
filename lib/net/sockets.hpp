// The production transport: a socket for each connection, one timer, the system's random bytes.

#pragma once

#include "backend.hpp"
#include "platform.hpp"
#include "socket.hpp"
#include "wake_timer.hpp"

#include <memory>
#include <vector>

namespace redlock::net {

class sockets final : public backend {
public:
    /// Throws if the TLS files cannot be read.
    sockets(
        const boost::asio::any_io_executor& io,
        const config& configuration,
        socket_callbacks& owner);

    void open(std::size_t link) override { sockets_[link]->open(); }
    void close(std::size_t link) override { sockets_[link]->close(); }
    void finish(std::size_t link) override { sockets_[link]->finish(); }
    std::size_t write(std::size_t link, std::string& bytes) override {
        return sockets_[link]->write(bytes);
    }
#if REDLOCK_LINUX
    void read() override {
        ready_sockets_.read();
    }
    void wait() override {
        ready_sockets_.wait();
    }
#endif
    void wake_by(time_point moment) override {
        timer_.wake_by(moment);
    }
    void sleep() noexcept override {
        timer_.cancel();
    }
    void random(std::span<unsigned char> out) override;

private:
    tls_files tls_;
#if REDLOCK_LINUX
    ready_set ready_sockets_;
#endif
    std::vector<std::unique_ptr<socket>> sockets_;
    wake_timer timer_;
};

} // namespace redlock::net
