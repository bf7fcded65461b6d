#include "token.hpp"

#include <pthread.h>
#include <unistd.h>
#if __has_include(<sys/random.h>)
#include <sys/random.h> // macOS declares it there
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <system_error>

namespace redlock::net {

namespace {

std::atomic<unsigned> forks{0}; // of which this process is a child

// Bytes that were drawn, and given to nobody yet.
struct reserve {
    std::array<unsigned char, 240> bytes{}; // 12 tokens
    std::size_t left = 0;
    unsigned forks_before = 0;
};

void draw(std::span<unsigned char> out) {
    // At most 256 bytes per call, by its contract. Available on Linux, the BSDs and macOS.
    if (::getentropy(out.data(), out.size()) != 0) {
        throw std::system_error(errno, std::generic_category(), "getentropy");
    }
}

} // namespace

void fill_random(std::span<unsigned char> out) {
    static const bool notices_forks = ::pthread_atfork(nullptr, nullptr, [] { ++forks; }) == 0;
    thread_local reserve mine;
    if (!notices_forks || out.size() > mine.bytes.size()) {
        draw(out);
        return;
    }
    if (mine.left < out.size() || mine.forks_before != forks) {
        draw(mine.bytes);
        mine.left = mine.bytes.size();
        mine.forks_before = forks;
    }
    mine.left -= out.size();
    const auto taken = std::span(mine.bytes).subspan(mine.left, out.size());
    std::ranges::copy(taken, out.begin());
    std::ranges::fill(taken, static_cast<unsigned char>(0)); // nothing can be given out twice
}

} // namespace redlock::net
