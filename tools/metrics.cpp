#include "metrics.hpp"

#include "command_line.hpp"
#include "exit_code.hpp"
#include "session.hpp"

#include <redlock/prometheus.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace cli {
namespace {

using asio::ip::tcp;

constexpr std::size_t request_max = 8'192;
constexpr std::chrono::seconds request_time{5};

struct metrics_wishes {
    std::optional<std::string> listen;
    std::string quorum = "default";
};

tcp::endpoint endpoint_of(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    std::string host = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
    if (host.starts_with("[") && host.ends_with("]")) {
        host = host.substr(1, host.size() - 2);
    }
    const std::string_view port = std::string_view(text).substr(colon + 1);
    std::uint16_t number = 0;
    const auto read = std::from_chars(port.data(), port.data() + port.size(), number);
    redlock::error_code error;
    const auto address = asio::ip::make_address(host.empty() ? "0.0.0.0" : host, error);
    if (error || read.ec != std::errc() || read.ptr != port.data() + port.size()) {
        throw failure(
            exit_code::configuration,
            fmt::format(
                "invalid address '{}'; write 9464, 127.0.0.1:9464 or [::]:9464", printable(text)));
    }
    return {address, number};
}

// Serves one request.
class visit : public std::enable_shared_from_this<visit> {
public:
    visit(tcp::socket socket, const redlock::lock_manager& manager, std::string quorum)
        : socket_(std::move(socket)),
          limit_(socket_.get_executor(), request_time),
          manager_(manager),
          quorum_(std::move(quorum)) {}

    void start() {
        auto self = shared_from_this();
        limit_.async_wait([self](const redlock::error_code& error) {
            if (!error) {
                redlock::error_code ignored;
                self->socket_.close(ignored);
            }
        });
        asio::async_read_until(
            socket_,
            asio::dynamic_buffer(text_, request_max),
            "\r\n\r\n",
            [self](const redlock::error_code& error, std::size_t) {
                if (!error) {
                    self->answer();
                }
                self->limit_.cancel();
            });
    }

private:
    void answer() {
        const bool head = text_.starts_with("HEAD ");
        const std::string_view path = std::string_view(text_).substr(text_.find(' ') + 1);
        const bool known = (head || text_.starts_with("GET "))
                           && (path.starts_with("/metrics ") || path.starts_with("/metrics?"));
        const std::string body = known ? redlock::to_prometheus(manager_, quorum_)
                                       : "not found; the only path is /metrics\n";
        text_ = fmt::format(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
            known ? "200 OK" : "404 Not Found",
            known ? redlock::prometheus_content_type : "text/plain",
            body.size(),
            head ? "" : body);
        asio::async_write(
            socket_,
            asio::buffer(text_),
            [self = shared_from_this()](const redlock::error_code&, std::size_t) {});
    }

    tcp::socket socket_;
    asio::steady_timer limit_;
    const redlock::lock_manager& manager_;
    std::string quorum_;
    std::string text_;
};

// The last accept ends when the acceptor is closed, but its handler runs only while the session
// ends: so the acceptor lives as long as the accept.
void accept(
    const std::shared_ptr<tcp::acceptor>& from,
    const redlock::lock_manager& manager,
    const std::string& quorum) {
    from->async_wait(
        tcp::acceptor::wait_read, [from, &manager, &quorum](const redlock::error_code&) {
            if (!from->is_open()) {
                return;
            }
            const int made = ::accept4(from->native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
            if (made >= 0) { // else it was closed again, or there are no descriptors
                tcp::socket socket(from->get_executor());
                socket.assign(from->local_endpoint().protocol(), made);
                std::make_shared<visit>(std::move(socket), manager, quorum)->start();
                accept(from, manager, quorum);
            } else if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) {
                accept(from, manager, quorum);
            } else { // the connection stays, and would be reported again at once
                say(fmt::format(
                    "cannot accept a connection: {}", std::generic_category().message(errno)));
                const auto later = std::make_shared<asio::steady_timer>(
                    from->get_executor(), std::chrono::seconds(1));
                later->async_wait([later, from, &manager, &quorum](const redlock::error_code&) {
                    if (from->is_open()) {
                        accept(from, manager, quorum);
                    }
                });
            }
        });
}

int serve(session& now, const std::string& quorum, const std::string& listen) {
    const auto shared = std::make_shared<tcp::acceptor>(now.io);
    tcp::acceptor& acceptor = *shared;
    try {
        const tcp::endpoint where = endpoint_of(listen);
        const int made =
            ::socket(where.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (made < 0) {
            throw boost::system::system_error(errno, boost::system::system_category());
        }
        acceptor.assign(where.protocol(), made);
        acceptor.set_option(tcp::acceptor::reuse_address(true));
        acceptor.bind(where);
        acceptor.listen();
    } catch (const boost::system::system_error& error) {
        throw failure(
            exit_code::internal,
            fmt::format("cannot listen on {}: {}", listen, error.code().message()));
    }
    const tcp::endpoint bound = acceptor.local_endpoint();
    const std::string host = bound.address().to_string();
    say(fmt::format(
        "http://{}:{}/metrics", bound.address().is_v6() ? "[" + host + "]" : host, bound.port()));
    accept(shared, now.manager, quorum);
    while (!now.pause(std::chrono::hours(1))) {
    }
    acceptor.close();
    return 0;
}

int metrics(const metrics_wishes& wanted, const settings& common) {
    session now(config_of(common));
    if (wanted.listen) {
        return serve(now, wanted.quorum, *wanted.listen);
    }
    now.settle(need::all);
    fmt::print("{}", redlock::to_prometheus(now.manager, wanted.quorum));
    return 0;
}

} // namespace

void add_metrics(command_line& to) {
    const auto wanted = std::make_shared<metrics_wishes>();
    CLI::App& app = to.add(
        "metrics",
        "Export the health of a quorum for Prometheus",
        "  redlock metrics | grep redlock_ready\n"
        "  redlock metrics --listen 9464           # http://127.0.0.1:9464/metrics, until Ctrl-C\n"
        "  redlock metrics --listen 0.0.0.0:9464\n\n"
        "Exports the masters as seen from here. Services export their own locks: see\n"
        "docs/operations.md.");
    app.add_option("--listen", wanted->listen, "Address to listen on")->type_name("[ADDRESS:]PORT");
    app.add_option("--quorum", wanted->quorum, "Value of the label quorum")
        ->type_name("NAME")
        ->capture_default_str();
    to.when(app, [wanted, &to] { return metrics(*wanted, to.common); });
}

} // namespace cli
