// One of the two sockets to a master: resolves, connects over TCP, TLS or a Unix socket, reads and
// writes. It executes requests and reports events; all decisions are made in lib/core.

#pragma once

#include "address_order.hpp"
#include "platform.hpp"
#include "ready_set.hpp"
#include "socket_callbacks.hpp"
#include "tls.hpp"

#include <redlock/config.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::net {

class socket {
public:
    /// `tls_name` is the name to verify in the master's certificate; used with `tls` only.
    socket(
        const boost::asio::any_io_executor& io,
        std::size_t link,
        const endpoint& where,
        tls_files& tls,
        std::string tls_name,
        socket_callbacks& owner);

#if REDLOCK_LINUX
    /// Registers sockets without TLS with `ready`, which calls `ready_to_move`.
    void be_watched(ready_set& ready) noexcept {
        ready_ = &ready;
    }
    /// Reads what is available, and writes what waits for room.
    void ready_to_move();
#endif

    /// Connects. The result is `socket_opened` or `socket_closed`.
    void open();
    /// Closes the connection or the attempt, and drops unsent bytes. Reports nothing afterwards.
    void close() noexcept;
    /// The same, but delivers what was written.
    void finish() noexcept;
    /// Writes what the socket takes of `bytes` at once, keeps the rest to be written later, and
    /// leaves `bytes` empty. Does nothing while the rest of an earlier call is being written.
    /// Returns how much was written at once; `socket_written` reports the rest.
    std::size_t write(std::string& bytes);
    /// Whether `write` would take anything.
    bool writable() const noexcept {
        return channel_ && channel_->open && !channel_->writing;
    }
    /// Time until the master's certificate expires; empty without TLS.
    std::optional<std::chrono::hours> certificate_left() const;

private:
    using stream = boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol>;
    using resolver = boost::asio::ip::tcp::resolver;
    using address = boost::asio::generic::stream_protocol::endpoint;

    // State of one connection that an operation may still use after the connection was closed.
    struct channel {
        explicit channel(const boost::asio::any_io_executor& io) : plain(io) {}
        ~channel();

        stream plain;
        int watched = -1; // the descriptor if `ready_set` watches it instead of Asio
#if REDLOCK_HAS_TLS
        std::optional<boost::asio::ssl::stream<stream&>> secure;
#endif
        std::vector<address> candidates;
        std::size_t used = 0; // index of the candidate in use
        std::string rest;
        std::size_t rest_written = 0; // only with `ready_set`: bytes of `rest` already written
        bool open = false;
        bool heard = false; // the master has sent anything
        bool writing = false;
        boost::system::error_code write_error; // of a write; the next failed read reports it
        std::array<char, 4 * 1024> read_buffer{};
    };

    void resolve();
    void connect(std::size_t candidate);
    void connected();
    void heard();
    void opened();
    void read();
    void write_rest();
    std::size_t write_now(std::string_view bytes, boost::system::error_code& error);
#if REDLOCK_LINUX
    void write_rest_now();
#endif
    void failed(
        std::string_view what,
        const boost::system::error_code& error,
        const std::string& more = {});
    void failed(const std::string& why);
    /// A write has failed. What the master has sent until then is read first, since it may say why.
    /// The read that finds no more bytes reports the loss.
    void refused(const boost::system::error_code& error) noexcept;
    int descriptor() noexcept;
    std::string why_failed(std::string_view what, const boost::system::error_code& error) const;
    /// Wraps `f` so that it keeps the owner and the connection alive, runs under the guard, and
    /// does nothing once the connection was closed.
    template <typename F>
    auto guarded(F f) {
        return [this, owner = owner_.shared_from_this(), mine = channel_, f = std::move(f)](
                   const auto&... arguments) mutable {
            const socket_callbacks::section lock(*owner);
            if (mine == channel_) {
                f(arguments...);
            }
        };
    }

    boost::asio::any_io_executor io_;
    std::size_t link_;
    endpoint where_;
    tls_files& tls_;
    std::string tls_name_;
    socket_callbacks& owner_;
    resolver resolver_;
    address_order<address> order_;
#if REDLOCK_LINUX
    ready_set* ready_ = nullptr;
#endif
    std::shared_ptr<channel> channel_; // null while there is no connection and no attempt
};

} // namespace redlock::net
