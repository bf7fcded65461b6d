#include "socket.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace redlock::net {

namespace asio = boost::asio;
using boost::system::error_code;

socket::socket(
    const asio::any_io_executor& io,
    std::size_t link,
    const endpoint& where,
    tls_files& tls,
    std::string tls_name,
    socket_callbacks& owner)
    : io_(io),
      link_(link),
      where_(where),
      tls_(tls),
      tls_name_(std::move(tls_name)),
      owner_(owner),
      resolver_(io) {}

socket::channel::~channel() {
    if (watched >= 0) {
        ::close(watched);
    }
}

// Resets the connection and drops unsent bytes. Otherwise the system could send them for minutes,
// and an old command could be executed after those of the next connection.
void socket::close() noexcept {
    if (channel_) {
        const ::linger nothing{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(descriptor(), SOL_SOCKET, SO_LINGER, &nothing, sizeof nothing);
    }
    finish();
}

int socket::descriptor() noexcept {
    if (channel_->watched >= 0) {
        return channel_->watched;
    }
    return channel_->plain.is_open() ? channel_->plain.native_handle() : -1;
}

void socket::finish() noexcept {
    resolver_.cancel();
    if (channel_) {
        // Without a TLS shutdown: the peer may hang. A socket that reports an error on closing is
        // closed nevertheless.
        error_code ignored;
        channel_->plain.close(ignored);
#if REDLOCK_LINUX
        if (channel_->watched >= 0) {
            ready_->forget(channel_->watched);
            ::close(std::exchange(channel_->watched, -1));
        }
#endif
        channel_.reset();
    }
}

void socket::heard() {
    if (!channel_->heard) {
        channel_->heard = true;
        order_.worked(channel_->candidates[channel_->used]);
    }
}

#if REDLOCK_LINUX
void socket::ready_to_move() {
    const auto mine = channel_;
    if (!mine || mine->watched < 0) {
        return;
    }
    auto& buffer = mine->read_buffer;
    const ::ssize_t size = ::recv(mine->watched, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size > 0) {
        heard();
        owner_.socket_received(link_, {buffer.data(), static_cast<std::size_t>(size)});
    } else if (size == 0) {
        failed("read", asio::error::eof);
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        failed("read", error_code(errno, boost::system::system_category()));
    }
    if (mine == channel_ && mine->writing && !mine->write_error) {
        write_rest_now();
    }
}

void socket::write_rest_now() {
    channel& mine = *channel_;
    error_code error;
    mine.rest_written += write_now(std::string_view(mine.rest).substr(mine.rest_written), error);
    if (error) {
        refused(error);
    } else if (mine.rest_written == mine.rest.size()) {
        mine.writing = false;
        mine.rest.clear();
        ready_->want_room(link_, mine.watched, false);
        owner_.socket_written(link_, std::exchange(mine.rest_written, 0));
    }
}
#endif

// Writes what the socket takes at once; a full socket is not an error.
std::size_t socket::write_now(std::string_view bytes, error_code& error) {
#if REDLOCK_LINUX
    if (channel_->watched >= 0) {
        const ::ssize_t size =
            ::send(channel_->watched, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (size < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            error.assign(errno, boost::system::system_category());
        }
        return size < 0 ? 0 : static_cast<std::size_t>(size);
    }
#endif
    const std::size_t size = channel_->plain.write_some(asio::buffer(bytes), error);
    if (error == asio::error::would_block || error == asio::error::try_again) {
        error.clear();
    }
    return size;
}

void socket::read() {
    auto handler = guarded([this](const error_code& error, std::size_t size) {
        if (error) {
            failed("read", error);
            return;
        }
        const auto mine = channel_;
        heard();
        owner_.socket_received(link_, {mine->read_buffer.data(), size});
        owner_.all_received();
        if (mine == channel_) {
            read();
        }
    });
#if REDLOCK_HAS_TLS
    if (channel_->secure) {
        channel_->secure->async_read_some(asio::buffer(channel_->read_buffer), std::move(handler));
        return;
    }
#endif
    channel_->plain.async_read_some(asio::buffer(channel_->read_buffer), std::move(handler));
}

std::size_t socket::write(std::string& bytes) {
    if (!writable() || bytes.empty()) {
        return 0;
    }
    std::size_t written = 0;
    if (!where_.tls) {
        // A socket nearly always takes a few KiB at once: no detour via the reactor.
        error_code error;
        written = write_now(bytes, error);
        if (error) {
            bytes.clear();
            refused(error);
            return 0;
        }
        if (written == bytes.size()) {
            bytes.clear();
            return written;
        }
    }
    channel_->rest.assign(bytes, written);
    bytes.clear();
    write_rest();
    return written;
}

void socket::write_rest() {
    channel_->writing = true;
#if REDLOCK_LINUX
    if (channel_->watched >= 0) {
        ready_->want_room(link_, channel_->watched, true);
        return;
    }
#endif
    auto handler = guarded([this](const error_code& error, std::size_t size) {
        if (error) {
            refused(error);
            return;
        }
        channel_->writing = false;
        channel_->rest.clear();
        owner_.socket_written(link_, size);
    });
#if REDLOCK_HAS_TLS
    if (channel_->secure) {
        asio::async_write(*channel_->secure, asio::buffer(channel_->rest), std::move(handler));
        return;
    }
#endif
    asio::async_write(channel_->plain, asio::buffer(channel_->rest), std::move(handler));
}

std::optional<std::chrono::hours> socket::certificate_left() const {
#if REDLOCK_HAS_TLS
    if (channel_ && channel_->secure) {
        const std::unique_ptr<X509, decltype(&X509_free)> certificate(
            SSL_get1_peer_certificate(channel_->secure->native_handle()), X509_free);
        int days = 0;
        int seconds = 0;
        if (certificate
            && ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate.get()))
                   == 1) {
            return std::chrono::hours(days * 24 + seconds / 3600);
        }
    }
#endif
    return std::nullopt;
}

void socket::failed(std::string_view what, const error_code& error, const std::string& more) {
    const error_code write_error = channel_->write_error;
    failed(write_error ? why_failed("write", write_error) : why_failed(what, error) + more);
}

void socket::failed(const std::string& why) {
    close();
    owner_.socket_closed(link_, why);
}

// Called from inside a call of the owner, which must not be called back. Nothing more is written,
// because replies would no longer match their commands.
void socket::refused(const error_code& error) noexcept {
    channel_->write_error = error;
    channel_->writing = true;
    ::shutdown(descriptor(), SHUT_RD); // the read must end even if the master still has it open
}

std::string socket::why_failed(std::string_view what, const error_code& error) const {
    const bool closed = error == asio::error::eof || error == asio::error::broken_pipe;
    if (!closed && error != asio::error::connection_reset) {
        return (std::string(what) + ": " + error.message()).append(advice_on_tls(error));
    }
    std::string why =
        closed ? "the master closed the connection" : std::string(what) + ": " + error.message();
    if (where_.path.empty() && !where_.tls && channel_->open && !channel_->heard) {
        why += " before it sent anything: a TLS port needs rediss://";
    }
    return why;
}

} // namespace redlock::net
