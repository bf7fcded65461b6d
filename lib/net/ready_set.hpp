// Watches the masters' sockets. For the reactor one descriptor stands for all of them: one turn of
// the loop brings the replies of all masters. One operation for each socket would cost a way
// through the reactor and the scheduler each, which is more than the reply costs. Linux only (an
// epoll set can be waited for like a socket); elsewhere each link reads by itself.

#pragma once

#include "link_callbacks.hpp"
#include "platform.hpp"

#if REDLOCK_LINUX

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <functional>

namespace redlock::net {

class ready_set {
public:
    /// `ready` is called with the owner's guard held. It may be called for a socket that is not
    /// ready any more, or whose connection was replaced: a read shows it.
    ready_set(
        const boost::asio::any_io_executor& io,
        link_callbacks& owner,
        std::function<void(std::size_t master)> ready);

    /// Watches a socket for bytes or its end, until `forget`. Fails if the system refuses.
    boost::system::error_code watch(std::size_t master, int socket);
    /// Whether to watch for room to write as well.
    void want_room(std::size_t master, int socket, bool wanted) noexcept;
    /// Must be called before the socket is closed.
    void forget(int socket) noexcept;

private:
    void wait();
    void call_ready();

    link_callbacks& owner_;
    std::function<void(std::size_t)> ready_;
    boost::asio::posix::stream_descriptor set_;
    std::size_t watched_ = 0;
    bool waiting_ = false;
};

} // namespace redlock::net

#endif
