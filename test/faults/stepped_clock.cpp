// Loaded into a server by LD_PRELOAD. Shifts its wall clock, and no other clock. The file that
// REDLOCK_CLOCK_FILE names has the microseconds, and takes effect at once. libfaketime does more,
// and hangs a server that uses jemalloc before it starts.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

constexpr std::int64_t second = 1'000'000;

// Asked for before any constructor has run, by the allocator: so neither that nor the dynamic
// linker is asked for anything. Two threads may both open it at the first time, to no harm.
std::int64_t offset_us() noexcept {
    static const volatile std::int64_t* offset = nullptr;
    if (offset == nullptr) {
        const char* const name = std::getenv("REDLOCK_CLOCK_FILE");
        const int file = name == nullptr ? -1 : ::open(name, O_RDONLY | O_CLOEXEC);
        if (file < 0) {
            return 0;
        }
        void* const page = ::mmap(nullptr, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
        ::close(file);
        if (page == MAP_FAILED) {
            return 0;
        }
        offset = static_cast<const volatile std::int64_t*>(page);
    }
    return *offset;
}

std::int64_t wall_clock_us() noexcept {
    timespec now{};
    ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    return now.tv_sec * second + now.tv_nsec / 1'000 + offset_us();
}

} // namespace

extern "C" {

__attribute__((visibility("default"))) int clock_gettime(clockid_t which, timespec* out) noexcept {
    if (which != CLOCK_REALTIME && which != CLOCK_REALTIME_COARSE) {
        return static_cast<int>(::syscall(SYS_clock_gettime, which, out));
    }
    const std::int64_t us = wall_clock_us();
    out->tv_sec = us / second;
    out->tv_nsec = us % second * 1'000;
    return 0;
}

__attribute__((visibility("default"))) int gettimeofday(timeval* out, void* /*zone*/) noexcept {
    const std::int64_t us = wall_clock_us();
    out->tv_sec = us / second;
    out->tv_usec = us % second;
    return 0;
}

__attribute__((visibility("default"))) time_t time(time_t* out) noexcept {
    const time_t seconds = wall_clock_us() / second;
    if (out != nullptr) {
        *out = seconds;
    }
    return seconds;
}

} // extern "C"
