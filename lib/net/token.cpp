#include "token.hpp"

#include <unistd.h>
#if __has_include(<sys/random.h>)
#include <sys/random.h> // macOS declares it there
#endif

#include <cerrno>
#include <system_error>

namespace redlock::net {

void fill_random(std::span<unsigned char> out) {
    // At most 256 bytes per call, by its contract; a token has 20. Available on Linux, the BSDs and
    // macOS.
    if (::getentropy(out.data(), out.size()) != 0) {
        throw std::system_error(errno, std::generic_category(), "getentropy");
    }
}

} // namespace redlock::net
