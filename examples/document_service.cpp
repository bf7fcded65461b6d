// An HTTP service, of which several instances run, that keeps documents in PostgreSQL. A document
// is written under a lock, and with its fencing token. If a writer was paused past its lease and
// the lock has had another owner since, the UPDATE itself refuses the write.
//
//     document_service PORT CONNECTION MASTER...
//     document_service 8080 "host=/run/postgresql dbname=test" redis://127.0.0.1:7101 ...
//     curl -T letter.txt http://127.0.0.1:8080/documents/letter
//
//     PUT /documents/NAME   200 written; 409 too late, a later owner has written; 423 being written
//     GET /documents/NAME   200, 404
//     GET /health           200 while documents can be written, else 503, and why
//
// Its table:
//     CREATE TABLE documents (name text PRIMARY KEY, body text, fencing_token bigint NOT NULL)
//
// Port 0 is any free port; the first line of output names it. SIGTERM ends the service: it finishes
// the requests in flight and releases its locks.

#include "postgres.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::seconds lease{2};       // a crash in a write blocks a document for this long
constexpr std::chrono::seconds patience{10};   // with other writers
constexpr std::chrono::seconds client_time{5}; // for the next part of a request
constexpr std::uint64_t body_max = 1 << 20;
constexpr std::string_view documents = "/documents/";

using response = http::response<http::string_body>;

// Its functions block, so they run on a thread of their own: while the database thinks, locks are
// renewed and other requests are answered.
class document_store {
public:
    explicit document_store(const char* where) : data_(where) {}

    asio::awaitable<void> save(std::string name, std::string text, std::uint64_t token) {
        auto work = save_now(std::move(name), std::move(text), std::to_string(token));
        co_await asio::co_spawn(thread_, std::move(work), asio::use_awaitable);
    }

    asio::awaitable<std::optional<std::string>> load(std::string name) {
        auto work = load_now(std::move(name));
        co_return co_await asio::co_spawn(thread_, std::move(work), asio::use_awaitable);
    }

private:
    // Compares and writes in one statement: between two, the other owner could write.
    asio::awaitable<void> save_now(std::string name, std::string text, std::string token) {
        const examples::database::values row{name, text, token};
        const int written = data_.change(
            "INSERT INTO documents (name, body, fencing_token) VALUES ($1, $2, $3)"
            " ON CONFLICT (name) DO UPDATE"
            " SET body = excluded.body, fencing_token = excluded.fencing_token"
            " WHERE documents.fencing_token <= excluded.fencing_token",
            row);
        if (written == 0) {
            throw redlock::stale_token_error(std::stoull(token));
        }
        co_return;
    }

    asio::awaitable<std::optional<std::string>> load_now(std::string name) {
        const examples::database::values wanted{name};
        const auto row = data_.find("SELECT body FROM documents WHERE name = $1", wanted);
        co_return row ? std::optional(row->front()) : std::nullopt;
    }

    examples::database data_;
    asio::thread_pool thread_{1}; // one connection, so one at a time
};

class service {
public:
    service(redlock::lock_manager& manager, document_store& store, tcp::acceptor acceptor)
        : manager_(manager),
          store_(store),
          acceptor_(std::move(acceptor)),
          all_answered_(acceptor_.get_executor(), asio::steady_timer::time_point::max()) {}

    // Ends when `stop` was called and everything that was begun is answered.
    asio::awaitable<void> run() {
        auto token = asio::as_tuple(asio::use_awaitable);
        while (acceptor_.is_open()) {
            auto accepted = co_await acceptor_.async_accept(token);
            auto& [error, socket] = accepted;
            if (!error) {
                ++under_way_;
                asio::co_spawn(acceptor_.get_executor(), serve(std::move(socket)), asio::detached);
            } else if (acceptor_.is_open()) { // no more file descriptors, for example
                std::cerr << "cannot accept: " << error.message() << std::endl;
                asio::steady_timer pause(acceptor_.get_executor(), 100ms);
                co_await pause.async_wait(token);
            }
        }
        if (under_way_ > 0) {
            co_await all_answered_.async_wait(token);
        }
    }

    void stop() { acceptor_.close(); }

private:
    // One request: what keeps connections open is the proxy in front.
    asio::awaitable<void> serve(tcp::socket socket) {
        beast::tcp_stream stream(std::move(socket));
        try {
            co_await answer(stream);
        } catch (const std::exception& gone) {
            // The client is too slow, has gone, or does not use HTTP.
            std::cerr << "a request was not answered: " << gone.what() << std::endl;
        }
        if (--under_way_ == 0 && !acceptor_.is_open()) {
            all_answered_.cancel();
        }
    }

    asio::awaitable<void> answer(beast::tcp_stream& stream) {
        beast::flat_buffer buffer;
        http::request_parser<http::string_body> request;
        request.body_limit(body_max);
        stream.expires_after(client_time);
        co_await http::async_read_header(stream, buffer, request, asio::use_awaitable);
        const std::string path(request.get().target());
        const http::verb how = request.get().method();

        response out{http::status::not_found, 11};
        try {
            if (how == http::verb::get && path == "/health") {
                const redlock::health now = manager_.get_health();
                out.result(now.ready ? http::status::ok : http::status::service_unavailable);
                out.body() = to_string(now);
            } else if (how == http::verb::get && path.starts_with(documents)) {
                const auto text = co_await store_.load(path.substr(documents.size()));
                out.result(text ? http::status::ok : http::status::not_found);
                out.body() = text.value_or("no such document");
            } else if (how == http::verb::put && path.starts_with(documents)) {
                co_await put(stream, buffer, request, path.substr(documents.size()), out);
            }
        } catch (const std::runtime_error& error) { // the database, or the lock's masters
            out.result(http::status::service_unavailable);
            out.body() = error.what();
        }
        out.body() += '\n';
        out.keep_alive(false);
        out.prepare_payload();
        stream.expires_after(client_time);
        co_await http::async_write(stream, out, asio::use_awaitable);
    }

    // The lock comes before the body: a client that sends "Expect: 100-continue", as curl does for
    // large files, does not send a body that could not be written.
    asio::awaitable<void>
    put(beast::tcp_stream& stream,
        beast::flat_buffer& buffer,
        http::request_parser<http::string_body>& request,
        std::string name,
        response& out) {
        redlock::acquire_options options;
        options.ttl = lease;
        options.wait = patience;
        options.max_hold = 4 * client_time; // no client keeps a document from the others for longer
        options.fencing = true;
        auto token = asio::as_tuple(asio::use_awaitable);
        auto taken = co_await manager_.async_acquire("documents/" + name, options, token);
        auto& [error, lock] = taken;
        if (error == redlock::condition::not_acquired) {
            out.result(http::status::locked);
            out.body() = "another instance is writing it";
            co_return;
        }
        if (error) {
            throw boost::system::system_error(error);
        }
        stream.expires_after(client_time);
        if (request.get()[http::field::expect] == "100-continue") {
            http::response<http::empty_body> go_on{http::status::continue_, 11};
            co_await http::async_write(stream, go_on, asio::use_awaitable);
        }
        co_await http::async_read(stream, buffer, request, asio::use_awaitable);
        // Not asked whether the lock is still held: whatever the answer is, it may be over before
        // the statement gets there. The token decides.
        try {
            co_await store_.save(name, request.get().body(), lock.fencing_token());
            out.result(http::status::ok);
            out.body() = "written with token " + std::to_string(lock.fencing_token());
        } catch (const redlock::stale_token_error& late) {
            out.result(http::status::conflict);
            out.body() = late.what();
        }
        co_await lock.async_release(token);
    }

    redlock::lock_manager& manager_;
    document_store& store_;
    tcp::acceptor acceptor_;
    asio::steady_timer all_answered_;
    int under_way_ = 0;
};

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 4) {
            throw std::invalid_argument("usage: document_service PORT CONNECTION MASTER...");
        }
        redlock::config config;
        config.masters.assign(argv + 3, argv + argc);
        config.max_ttl = lease; // and for about as long a master that restarted does not vote

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        document_store store(argv[2]);
        const auto port = static_cast<unsigned short>(std::stoul(argv[1]));
        const tcp::endpoint where(asio::ip::address_v4::loopback(), port);
        tcp::acceptor acceptor(io, where);
        std::cout << "listens on " << acceptor.local_endpoint() << std::endl;

        service documents_of(manager, store, std::move(acceptor));
        manager.async_run(asio::detached);
        asio::signal_set stop(io, SIGINT, SIGTERM);
        stop.async_wait([&](const boost::system::error_code& error, int) {
            if (!error) {
                std::cout << "stops" << std::endl;
                documents_of.stop();
            }
        });
        asio::co_spawn(io, documents_of.run(), [&](const std::exception_ptr&) {
            stop.cancel();
            manager.async_close(asio::detached); // ends the loop
        });
        io.run();
        std::cout << "has stopped" << std::endl;
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "document_service: " << error.what() << '\n';
        return 2;
    }
}
