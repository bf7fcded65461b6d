#include "board.hpp"

#include <fmt/format.h>

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>

namespace demo {

// An overlap: two workers that both may rely on their lock at one moment. A worker that is still
// inside after the end of its lease is not one: it was suspended, will find held() false when it
// wakes up, and will not write. All processes read one clock, so the deadlines can be compared.
void guarded_counter::enter(std::size_t worker, redlock::time_point deadline) noexcept {
    const auto before = owner_.exchange(static_cast<std::uint32_t>(worker + 1));
    if (before != 0 && redlock::clock::now().time_since_epoch().count() < deadline_.load()) {
        ++overlaps_;
    }
    deadline_.store(deadline.time_since_epoch().count());
}

void worker_slot::add_sample(redlock::clock::duration latency) noexcept {
    using std::chrono::microseconds;
    const auto index = samples.load();
    if (index < samples_max) {
        const auto count = std::chrono::duration_cast<microseconds>(latency).count();
        constexpr std::int64_t limit = std::numeric_limits<std::uint32_t>::max();
        latency_us[index].store(
            static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 0, limit)));
        samples.store(index + 1);
    }
}

shared_board::shared_board() {
    void* const memory =
        ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::runtime_error(fmt::format("mmap: {}", std::strerror(errno)));
    }
    board_ = new (memory) board{};
}

shared_board::~shared_board() {
    ::munmap(board_, sizeof(board));
}

} // namespace demo
