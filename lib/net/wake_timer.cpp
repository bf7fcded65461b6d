#include "wake_timer.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <utility>

#if REDLOCK_LINUX
#include <boost/system/system_error.hpp>

#include <sys/timerfd.h>

#include <cerrno>
#endif

namespace redlock::net {

using boost::system::error_code;

wake_timer::wake_timer(const boost::asio::any_io_executor& io, socket_callbacks& owner)
    : owner_(owner),
      timer_(io) {
#if REDLOCK_LINUX
    const int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0) {
        throw boost::system::system_error(errno, boost::system::system_category(), "timerfd");
    }
    timer_.assign(fd);
#endif
}

void wake_timer::wake_by(time_point moment) {
    if (moment >= armed_) {
        return;
    }
    armed_ = moment;
#if REDLOCK_LINUX
    // Zero would disarm it.
    const auto since = std::max(moment.time_since_epoch(), std::chrono::nanoseconds(1));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    itimerspec when{};
    when.it_value.tv_sec = seconds.count();
    when.it_value.tv_nsec = static_cast<long>((since - seconds).count());
    ::timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME, &when, nullptr);
    if (waiting_) {
        return;
    }
#else
    timer_.expires_after(std::max(moment - clock::now(), clock::duration::zero())); // ends the wait
#endif
    wait();
}

void wake_timer::wait() {
    waiting_ = true;
    auto handler = [this, owner = owner_.shared_from_this()](const error_code& error, auto...) {
        const socket_callbacks::section lock(*owner);
        waiting_ = false;
        if (error == boost::asio::error::operation_aborted) {
            return;
        }
        armed_ = time_point::max();
        owner->time_came();
    };
#if REDLOCK_LINUX
    timer_.async_read_some(
        boost::asio::buffer(&expirations_, sizeof expirations_), std::move(handler));
#else
    timer_.async_wait(std::move(handler));
#endif
}

void wake_timer::cancel() noexcept {
    armed_ = time_point::min(); // no moment is earlier, so wake_by does nothing from now on
#if REDLOCK_LINUX
    error_code ignored; // the descriptor is ours and open
    timer_.cancel(ignored);
#else
    timer_.cancel();
#endif
}

} // namespace redlock::net
