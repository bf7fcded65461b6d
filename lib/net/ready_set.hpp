// Which of the masters' sockets are ready. For the reactor one descriptor stands for all of them: a
// turn of the loop brings the replies of all masters that have answered meanwhile, where an
// operation for each socket costs its own way through the reactor and the scheduler, which weighs
// more than the reply. Linux only (an epoll set can be waited for like a socket); elsewhere each
// link reads by itself.

#pragma once

#include "link_owner.hpp"
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
    /// `ready` is called with the owner's guard held. It may be called for a socket that is ready
    /// no more, or of which the connection was replaced: trying to read tells.
    ready_set(
        const boost::asio::any_io_executor& io,
        link_owner& owner,
        std::function<void(std::size_t master)> ready);

    /// Watches a socket until `forget`: for something to read, or an end. An error: it does not.
    boost::system::error_code watch(std::size_t master, int socket);
    /// Whether it is also watched for room to write.
    void want_room(std::size_t master, int socket, bool wanted) noexcept;
    /// To be called before the socket is closed.
    void forget(int socket) noexcept;

private:
    void wait();
    void call_ready();

    link_owner& owner_;
    std::function<void(std::size_t)> ready_;
    boost::asio::posix::stream_descriptor set_;
    std::size_t watched_ = 0;
    bool waiting_ = false;
};

} // namespace redlock::net

#endif
