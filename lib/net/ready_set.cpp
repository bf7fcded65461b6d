#include "ready_set.hpp"

#if REDLOCK_LINUX

#include <boost/system/system_error.hpp>

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <utility>

namespace redlock::net {

using boost::system::error_code;

ready_set::ready_set(
    const boost::asio::any_io_executor& io,
    socket_callbacks& owner,
    std::function<void(std::size_t link)> ready)
    : owner_(owner),
      ready_(std::move(ready)),
      set_(io) {
    const int fd = ::epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) {
        throw boost::system::system_error(errno, boost::system::system_category(), "epoll_create1");
    }
    set_.assign(fd);
}

error_code ready_set::watch(std::size_t link, int socket) {
    epoll_event wanted{.events = EPOLLIN, .data = {.u64 = link}};
    if (::epoll_ctl(set_.native_handle(), EPOLL_CTL_ADD, socket, &wanted) != 0) {
        return {errno, boost::system::system_category()};
    }
    ++watched_;
    wait();
    return {};
}

void ready_set::want_room(std::size_t link, int socket, bool wanted) noexcept {
    const std::uint32_t events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN;
    epoll_event change{.events = events, .data = {.u64 = link}};
    ::epoll_ctl(set_.native_handle(), EPOLL_CTL_MOD, socket, &change);
}

void ready_set::forget(int socket) noexcept {
    ::epoll_ctl(set_.native_handle(), EPOLL_CTL_DEL, socket, nullptr);
    if (--watched_ == 0) {
        error_code ignored; // must not keep the loop from ending
        set_.cancel(ignored);
    }
}

void ready_set::read() {
    if (!waiting_ && watched_ > 0) {
        call_ready();
    }
}

void ready_set::wait() {
    if (waiting_ || watched_ == 0) {
        return;
    }
    waiting_ = true;
    set_.async_wait(
        boost::asio::posix::descriptor_base::wait_read,
        [this, owner = owner_.shared_from_this()](const error_code& error) {
            const socket_callbacks::section lock(*owner);
            waiting_ = false;
            if (error) {
                wait(); // for sockets that have been added since
                return;
            }
            call_ready();
            owner_.all_received();
        });
}

void ready_set::call_ready() {
    std::array<epoll_event, 64> found; // the rest is found in the next turn
    const int count =
        ::epoll_wait(set_.native_handle(), found.data(), static_cast<int>(found.size()), 0);
    for (int i = 0; i < count; ++i) {
        ready_(static_cast<std::size_t>(found[static_cast<std::size_t>(i)].data.u64));
    }
}

} // namespace redlock::net

#endif
