// Watches the masters' sockets. The reactor waits for one descriptor that represents all of them,
// so one turn of the loop handles the replies of all masters. A read operation per socket would
// cost more than the reply itself. Linux only (an epoll descriptor is itself pollable); elsewhere
// each socket reads by itself.

#pragma once

#include "platform.hpp"
#include "socket_callbacks.hpp"

#if REDLOCK_LINUX

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <functional>

namespace redlock::net {

class ready_set {
public:
    /// `ready` is called with the owner's guard held. It may be called for a socket that is no
    /// longer ready or was replaced: `ready` must try to read.
    ready_set(
        const boost::asio::any_io_executor& io,
        socket_callbacks& owner,
        std::function<void(std::size_t link)> ready);

    /// Watches a socket for bytes or its end, until `forget`. Fails if the system refuses.
    boost::system::error_code watch(std::size_t link, int socket);
    /// Sets whether to wait for writability as well.
    void want_room(std::size_t link, int socket, bool wanted) noexcept;
    /// Must be called before the socket is closed.
    void forget(int socket) noexcept;

    /// Calls `ready` for the sockets that are ready now, unless the reactor waits for them.
    void read();
    /// Lets the reactor wait. After it has called `ready`, it does not wait until the next call:
    /// its owner may read what has arrived by the time that it has written, which is cheaper.
    void wait();

private:
    void call_ready();

    socket_callbacks& owner_;
    std::function<void(std::size_t)> ready_;
    boost::asio::posix::stream_descriptor set_;
    std::size_t watched_ = 0;
    bool waiting_ = false;
};

} // namespace redlock::net

#endif
