// Opens sockets that child processes do not inherit.

#pragma once

#include "platform.hpp"

#include <boost/system/error_code.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace redlock::net {

/// Does what `to.open` does. In addition, a child process that any thread starts, even at this
/// moment, does not inherit the socket: it could use a connection that is logged in, and would keep
/// it open.
template <typename Socket>
void open_socket(
    Socket& to, const typename Socket::protocol_type& protocol, boost::system::error_code& error) {
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

} // namespace redlock::net
