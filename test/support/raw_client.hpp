// Bare bytes to a server: for what a well-behaved client would not show.
#pragma once

#include "memory/answer.hpp"
#include "process.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <poll.h>

#include <array>
#include <cstddef>
#include <stdexcept>

namespace redlock::test {

class raw_client {
public:
    explicit raw_client(std::uint16_t port) : socket_(io_) {
        socket_.connect(boost::asio::ip::tcp::endpoint(free_port::loopback(), port));
    }

    void send(const std::string& bytes) { boost::asio::write(socket_, boost::asio::buffer(bytes)); }

    std::string receive(std::size_t bytes) {
        constexpr int patience_ms = 10'000;
        std::string result(bytes, '\0');
        for (std::size_t have = 0; have < bytes;) {
            pollfd waits{socket_.native_handle(), POLLIN, 0};
            if (::poll(&waits, 1, patience_ms) <= 0) {
                throw std::runtime_error("no more bytes come after: " + result.substr(0, have));
            }
            have += socket_.read_some(boost::asio::buffer(result.data() + have, bytes - have));
        }
        return result;
    }

    std::string receive_all() {
        std::string result;
        boost::system::error_code ignored;
        boost::asio::read(socket_, boost::asio::dynamic_buffer(result), ignored);
        return result;
    }

private:
    boost::asio::io_context io_;
    boost::asio::ip::tcp::socket socket_;
};

inline std::string request_bytes(const std::vector<std::string>& args) {
    std::vector<testing::memory::answer> words;
    for (const std::string& arg : args) {
        words.push_back(testing::memory::answer::bulk(arg));
    }
    std::string bytes;
    testing::memory::answer::array(std::move(words)).encode(bytes);
    return bytes;
}

} // namespace redlock::test
