// The shared memory of one worker.
#include "hand_over_log.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

constexpr std::size_t size = hand_over_log::holdings_max * sizeof(holding);

} // namespace

hand_over_log::hand_over_log() : file_(::memfd_create("quorum_bench", 0)) {
    if (!file_ || ::ftruncate(file_.get(), size) != 0) {
        throw std::runtime_error(fmt::format("memfd_create: {}", std::strerror(errno)));
    }
    map();
}

hand_over_log::hand_over_log(int inherited) : file_(inherited) {
    map();
}

hand_over_log::hand_over_log(hand_over_log&& other) noexcept
    : file_(std::move(other.file_)),
      mapped_(std::exchange(other.mapped_, nullptr)) {}

hand_over_log::~hand_over_log() {
    if (mapped_ != nullptr) {
        ::munmap(mapped_, size);
    }
}

void hand_over_log::map() {
    void* const found = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (found == MAP_FAILED) {
        throw std::runtime_error(fmt::format("mmap: {}", std::strerror(errno)));
    }
    mapped_ = static_cast<holding*>(found);
}

} // namespace bench
