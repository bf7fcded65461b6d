// The shared memory of one worker.
#include "handoff_log.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

constexpr std::size_t size = handoff_log::holdings_max * sizeof(holding);

} // namespace

handoff_log::handoff_log() : file_(::memfd_create("quorum_bench", 0)) {
    if (!file_ || ::ftruncate(file_.get(), size) != 0) {
        throw std::runtime_error(fmt::format("memfd_create: {}", std::strerror(errno)));
    }
    map();
}

handoff_log::handoff_log(int inherited) : file_(inherited) {
    map();
}

handoff_log::handoff_log(handoff_log&& other) noexcept
    : file_(std::move(other.file_)),
      mapped_(std::exchange(other.mapped_, nullptr)) {}

handoff_log::~handoff_log() {
    if (mapped_ != nullptr) {
        ::munmap(mapped_, size);
    }
}

void handoff_log::map() {
    void* const found = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (found == MAP_FAILED) {
        throw std::runtime_error(fmt::format("mmap: {}", std::strerror(errno)));
    }
    mapped_ = static_cast<holding*>(found);
}

} // namespace bench
