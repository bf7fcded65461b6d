#include <redlock/clock.hpp>

#include <ctime>

namespace redlock { inline namespace REDLOCK_ABI {

time_point clock::now() noexcept {
#if defined(CLOCK_BOOTTIME) && !defined(REDLOCK_PORTABLE)
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now); // cannot fail: the clock exists since Linux 2.6.39
    return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
#else
    return time_point(std::chrono::steady_clock::now().time_since_epoch());
#endif
}

const char* version() noexcept {
    return REDLOCK_VERSION_STRING;
}

}} // namespace redlock::REDLOCK_ABI
