// Metrics for Prometheus: the smallest HTTP server that can be scraped. A service that has one
// already adds one path to it, and to_prometheus() is all that belongs there.
//
//     prometheus_endpoint redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103
//     curl http://127.0.0.1:9464/metrics
//
// It works under a lock now and then, so that there is something to see; end it with Ctrl-C. With
// --check before the masters it takes one lock, asks itself for its pages, prints them and ends.

#include <redlock/prometheus.hpp>
#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::size_t request_max = 8192;
constexpr std::chrono::seconds request_time{5};

std::string response_to(std::string_view request, const redlock::lock_manager& manager) {
    const bool known = request.starts_with("GET /metrics ");
    const std::string body = known ? redlock::to_prometheus(manager, "example")
                                   : "not found; the only path is /metrics\n";
    const std::string_view type = known ? redlock::prometheus_content_type : "text/plain";
    std::string out = known ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 404 Not Found\r\n";
    out += "Content-Type: " + std::string(type) + "\r\n";
    out += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    out += "Connection: close\r\n\r\n";
    return out + body;
}

asio::awaitable<void> answer(tcp::socket accepted, const redlock::lock_manager& manager) {
    // Silent clients are not waited for. The timer may still be pending when everything is done.
    const auto socket = std::make_shared<tcp::socket>(std::move(accepted));
    asio::steady_timer limit(socket->get_executor(), request_time);
    limit.async_wait([socket](const boost::system::error_code& error) {
        if (!error) {
            boost::system::error_code ignored;
            socket->close(ignored);
        }
    });
    std::string request;
    auto buffer = asio::dynamic_buffer(request, request_max);
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await asio::async_read_until(*socket, buffer, "\r\n\r\n", token);
    if (error) {
        co_return;
    }
    const std::string response = response_to(request, manager);
    const auto bytes = asio::buffer(response);
    co_await asio::async_write(*socket, bytes, token);
}

asio::awaitable<void> serve(tcp::acceptor& acceptor, const redlock::lock_manager& manager) {
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    for (;;) {
        tcp::socket socket = co_await acceptor.async_accept(token);
        if (error == asio::error::operation_aborted || !acceptor.is_open()) {
            co_return;
        }
        if (!error) {
            co_spawn(acceptor.get_executor(), answer(std::move(socket), manager), asio::detached);
        }
    }
}

// What is to be seen on the page.
asio::awaitable<void> work_once(redlock::lock_manager& manager) {
    redlock::acquire_options options;
    options.ttl = std::chrono::seconds(2);
    redlock::lock lock = co_await manager.async_acquire("report", options, asio::use_awaitable);
    asio::steady_timer work(co_await asio::this_coro::executor, std::chrono::milliseconds(20));
    co_await work.async_wait(asio::use_awaitable);
    co_await lock.async_release(asio::use_awaitable);
}

asio::awaitable<void> work_for_ever(redlock::lock_manager& manager) {
    asio::steady_timer pause(co_await asio::this_coro::executor);
    for (;;) {
        try {
            co_await work_once(manager);
        } catch (const boost::system::system_error& error) {
            if (error.code() == redlock::errc::closed) {
                co_return;
            }
            std::cerr << error.code().message() << '\n'; // and it is a figure on the page
        }
        pause.expires_after(std::chrono::milliseconds(200));
        co_await pause.async_wait(asio::use_awaitable);
    }
}

asio::awaitable<void> print_page(tcp::endpoint where, std::string path) {
    tcp::socket socket(co_await asio::this_coro::executor);
    co_await socket.async_connect(where, asio::use_awaitable);
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const auto bytes = asio::buffer(request);
    co_await asio::async_write(socket, bytes, asio::use_awaitable);
    std::string page;
    auto buffer = asio::dynamic_buffer(page);
    boost::system::error_code error; // the end of the file
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await asio::async_read(socket, buffer, token);
    std::cout << page << std::flush;
}

asio::awaitable<void> check(redlock::lock_manager& manager, tcp::endpoint where) {
    co_await work_once(manager);
    co_await print_page(where, "/metrics");
    co_await print_page(where, "/");
}

} // namespace

int main(int argc, char** argv) {
    try {
        const bool checks = argc > 1 && std::string_view(argv[1]) == "--check";
        redlock::config config;
        config.masters.assign(argv + (checks ? 2 : 1), argv + argc);
        config.max_ttl = std::chrono::seconds(2);

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        manager.async_run(asio::detached);

        const unsigned short port = checks ? 0 : 9464; // 0: any that is free
        tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), port));
        co_spawn(io, serve(acceptor, manager), asio::detached);

        int status = 0;
        asio::signal_set signals(io, SIGINT, SIGTERM);
        const auto stop = [&] {
            signals.cancel();
            acceptor.close();
            manager.async_close(asio::detached);
        };
        signals.async_wait([&](const boost::system::error_code& error, int) {
            if (!error) {
                stop();
            }
        });
        if (checks) {
            co_spawn(
                io,
                check(manager, acceptor.local_endpoint()),
                [&](const std::exception_ptr& error) {
                    status = error ? 1 : 0;
                    stop();
                });
        } else {
            std::cout << "http://" << acceptor.local_endpoint() << "/metrics" << std::endl;
            co_spawn(io, work_for_ever(manager), asio::detached);
        }
        io.run();
        return status;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
