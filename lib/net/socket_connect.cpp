// How a socket connects: the look-up of the name, its addresses in turn, the TLS handshake.

#include "settings_file.hpp"
#include "socket.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>
#if REDLOCK_HAS_TLS
#include <boost/asio/ssl/host_name_verification.hpp>
#endif

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace redlock::net {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// Does what `to.open` does. In addition, a child process that any thread starts, even at this
// moment, does not inherit the socket: it could use a connection that is logged in, and would keep
// it open.
void open_socket(
    asio::basic_stream_socket<asio::generic::stream_protocol>& to,
    const asio::generic::stream_protocol& protocol,
    error_code& error) {
    const int made =
        ::socket(protocol.family(), protocol.type() | REDLOCK_SOCKET_FLAGS, protocol.protocol());
    if (made < 0) {
        error.assign(errno, boost::system::system_category());
        return;
    }
    if constexpr (REDLOCK_SOCKET_FLAGS == 0) {
        ::fcntl(made, F_SETFD, FD_CLOEXEC);
    }
#ifdef SO_NOSIGPIPE // where writing has no flag for it
    const int on = 1;
    ::setsockopt(made, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    to.assign(protocol, made, error);
    if (error) {
        ::close(made);
    }
}

} // namespace

void socket::open() {
    close();
    channel_ = std::make_shared<channel>(io_);
    error_code not_numeric;
    const auto numeric = asio::ip::make_address(where_.host, not_numeric);
    if (!where_.path.empty()) {
        channel_->candidates.emplace_back(asio::local::stream_protocol::endpoint(where_.path));
    } else if (!not_numeric) {
        channel_->candidates.emplace_back(asio::ip::tcp::endpoint(numeric, where_.port));
    } else {
        resolve();
        return;
    }
    connect(0);
}

// A look-up blocks a thread of Asio, never the loop. A look-up that hangs cannot be stopped. Its
// late result is ignored, because `channel_` is another one by then.
void socket::resolve() {
    resolver_.async_resolve(
        where_.host,
        std::to_string(where_.port),
        asio::ip::tcp::resolver::numeric_service,
        guarded([this](const error_code& error, const resolver::results_type& found) {
            if (error) {
                failed("look-up of the name", error);
                return;
            }
            for (const auto& entry : found) {
                channel_->candidates.emplace_back(entry.endpoint());
            }
            order_.sort(channel_->candidates);
            connect(0);
        }));
}

void socket::connect(std::size_t candidate) {
    order_.trying(channel_->candidates, candidate);
    channel_->used = candidate;
    auto tried = guarded([this, candidate](const error_code& error) {
        if (!error) {
            connected();
        } else if (candidate + 1 < channel_->candidates.size()) {
            connect(candidate + 1);
        } else {
            failed("connect", error);
        }
    });
    error_code error; // at the first candidate there is no socket to close
    channel_->plain.close(error);
    open_socket(channel_->plain, channel_->candidates[candidate].protocol(), error);
    if (error) { // `async_connect` would open the socket itself
        asio::post(io_, [tried = std::move(tried), error]() mutable { tried(error); });
        return;
    }
    channel_->plain.async_connect(channel_->candidates[candidate], std::move(tried));
}

void socket::connected() {
    error_code error;
    if (where_.path.empty()) {
        channel_->plain.set_option(asio::ip::tcp::no_delay(true), error);
        channel_->plain.set_option(asio::socket_base::keep_alive(true), error);
    }
    channel_->plain.non_blocking(true, error);
    if (error) {
        asio::post(io_, guarded([this, error] { failed("connect", error); }));
        return;
    }
#if REDLOCK_HAS_TLS
    if (where_.tls) {
        auto& secure = channel_->secure;
        try {
            secure.emplace(channel_->plain, *tls_.read());
        } catch (const unusable_file& bad) { // it may be replaced just now: tried again
            failed(bad.reason());
            return;
        }
        error_code no_address;
        asio::ip::make_address(tls_name_, no_address);
        if (no_address) { // SNI is for names only
            SSL_set_tlsext_host_name(secure->native_handle(), tls_name_.c_str());
        }
        // Of use only if the server is verified at all. It cannot fail.
        secure->set_verify_callback(asio::ssl::host_name_verification(tls_name_), error);
        secure->async_handshake(
            asio::ssl::stream_base::client, guarded([this](const error_code& failure) {
                if (failure) {
                    auto* const session = channel_->secure->native_handle();
                    failed("TLS handshake", failure, why_distrusted(session, tls_name_));
                } else {
                    opened();
                }
            }));
        return;
    }
#endif
    opened();
}

void socket::opened() {
    const auto mine = channel_;
#if REDLOCK_LINUX
    if (ready_ != nullptr && mine->plain.is_open() && !where_.tls) {
        mine->watched = mine->plain.release();
        if (const error_code error = ready_->watch(link_, mine->watched)) {
            ::close(std::exchange(mine->watched, -1));
            failed("connect", error);
            return;
        }
    }
#endif
    mine->open = true;
    owner_.socket_opened(link_);
    if (mine == channel_ && mine->watched < 0) {
        read();
    }
}

} // namespace redlock::net
