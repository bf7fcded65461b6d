// The sockets of a fake master: one coroutine accepts, and each connection has two, one that reads
// and records at once and one that answers in order. All run on the one thread that runs the
// context, and every function is called there: only fake_state is shared with the test's thread.
#pragma once

#include "fake_state.hpp"
#include "process.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace redlock::test {

class fake_connection;

class fake_server : public std::enable_shared_from_this<fake_server> {
public:
    fake_server(boost::asio::io_context& io, std::shared_ptr<fake_state> state);

    std::uint16_t port() const noexcept { return port_.number(); }

    void listen();
    void stop_listening();
    void close_connections();
    void release_hung();

private:
    boost::asio::awaitable<void> accept_all(std::shared_ptr<fake_server> self);
    std::vector<std::shared_ptr<fake_connection>> connections() const;

    free_port port_;
    boost::asio::ip::tcp::acceptor acceptor_;
    std::shared_ptr<fake_state> state_;
    std::vector<std::weak_ptr<fake_connection>> connections_;
};

} // namespace redlock::test
