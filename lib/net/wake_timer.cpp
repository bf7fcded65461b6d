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

#if REDLOCK_LINUX

wake_timer::wake_timer(
    const boost::asio::any_io_executor& io, link_callbacks& owner, std::function<void()> due)
    : owner_(owner),
      due_(std::move(due)),
      descriptor_(io) {
    const int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0) {
        throw boost::system::system_error(errno, boost::system::system_category(), "timerfd");
    }
    descriptor_.assign(fd);
}

void wake_timer::wake_by(time_point moment) {
    if (moment >= armed_) {
        return;
    }
    armed_ = moment;
    // Zero would disarm it.
    const auto since = std::max(moment.time_since_epoch(), std::chrono::nanoseconds(1));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    itimerspec when{};
    when.it_value.tv_sec = seconds.count();
    when.it_value.tv_nsec = static_cast<long>((since - seconds).count());
    ::timerfd_settime(descriptor_.native_handle(), TFD_TIMER_ABSTIME, &when, nullptr);
    if (!waiting_) {
        wait();
    }
}

void wake_timer::wait() {
    waiting_ = true;
    descriptor_.async_read_some(
        boost::asio::buffer(&expirations_, sizeof expirations_),
        [this, owner = owner_.shared_from_this()](const error_code& error, std::size_t) {
            const link_callbacks::section lock(*owner);
            waiting_ = false;
            if (error == boost::asio::error::operation_aborted) {
                return;
            }
            armed_ = time_point::max();
            due_();
        });
}

void wake_timer::cancel() noexcept {
    armed_ = time_point::min(); // no moment is earlier, so wake_by does nothing from now on
    error_code ignored;         // the descriptor is ours and open
    descriptor_.cancel(ignored);
}

#else

wake_timer::wake_timer(
    const boost::asio::any_io_executor& io, link_callbacks& owner, std::function<void()> due)
    : owner_(owner),
      due_(std::move(due)),
      timer_(io) {}

void wake_timer::wake_by(time_point moment) {
    if (moment >= armed_) {
        return;
    }
    armed_ = moment;
    timer_.expires_after(std::max(moment - clock::now(), clock::duration::zero()));
    wait();
}

void wake_timer::wait() {
    timer_.async_wait([this, owner = owner_.shared_from_this()](const error_code& error) {
        const link_callbacks::section lock(*owner);
        if (error == boost::asio::error::operation_aborted) {
            return;
        }
        armed_ = time_point::max();
        due_();
    });
}

void wake_timer::cancel() noexcept {
    armed_ = time_point::min();
    timer_.cancel();
}

#endif

} // namespace redlock::net
