// A relay between a client and a real master, or another one later. While the test holds it,
// nothing from the client is passed on. Runs on the test's context.
#pragma once

#include "support/process.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <array>

namespace redlock::test {

class relay {
public:
    relay(boost::asio::io_context& io, std::uint16_t to) : state_(std::make_shared<state>(io, to)) {
        state_->accept();
    }
    relay(relay&&) noexcept = default;
    relay& operator=(relay&&) = delete;
    ~relay() {
        if (state_) {
            boost::system::error_code ignored;
            state_->acceptor.close(ignored);
        }
    }

    std::string url() const {
        return "redis://127.0.0.1:" + std::to_string(state_->acceptor.local_endpoint().port());
    }

    /// Passes on nothing of what the client says from now on.
    void hold() { state_->held = true; }

    /// Another server answers under this address from now on.
    void turn_to(std::uint16_t port) { state_->to = port; }

private:
    using tcp = boost::asio::ip::tcp;

    struct wire {
        explicit wire(boost::asio::io_context& io) : client(io), master(io) {}
        tcp::socket client;
        tcp::socket master;
        std::array<char, 4096> up{};
        std::array<char, 4096> down{};
    };

    struct state : std::enable_shared_from_this<state> {
        state(boost::asio::io_context& context, std::uint16_t port)
            : io(context),
              acceptor(context, tcp::endpoint(free_port::loopback(), 0)),
              to(port) {}

        void accept() {
            auto next = std::make_shared<wire>(io);
            acceptor.async_accept(
                next->client, [me = shared_from_this(), next](boost::system::error_code error) {
                    if (error) {
                        return;
                    }
                    next->master.connect(tcp::endpoint(free_port::loopback(), me->to), error);
                    me->pump_up(next);
                    pump_down(next);
                    me->accept();
                });
        }

        void pump_up(const std::shared_ptr<wire>& on) {
            on->client.async_read_some(
                boost::asio::buffer(on->up),
                [me = shared_from_this(), on](boost::system::error_code error, std::size_t size) {
                    if (error) {
                        on->master.close(error);
                        return;
                    }
                    if (!me->held) {
                        boost::asio::write(
                            on->master, boost::asio::buffer(on->up.data(), size), error);
                    }
                    me->pump_up(on);
                });
        }

        static void pump_down(const std::shared_ptr<wire>& on) {
            on->master.async_read_some(
                boost::asio::buffer(on->down),
                [on](boost::system::error_code error, std::size_t size) {
                    if (error) {
                        on->client.close(error);
                        return;
                    }
                    boost::asio::write(
                        on->client, boost::asio::buffer(on->down.data(), size), error);
                    pump_down(on);
                });
        }

        boost::asio::io_context& io;
        tcp::acceptor acceptor;
        std::uint16_t to;
        bool held = false;
    };

    std::shared_ptr<state> state_;
};

} // namespace redlock::test
