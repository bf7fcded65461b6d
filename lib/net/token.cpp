#include "token.hpp"

#include <unistd.h>
#if __has_include(<sys/random.h>)
#include <sys/random.h> // where macOS has it
#endif

#include <cerrno>
#include <system_error>

namespace redlock::net {

void fill_random(std::span<unsigned char> out) {
    // At most 256 bytes at once, by its contract; a token has 20. Linux, the BSDs and macOS have
    // it.
    if (::getentropy(out.data(), out.size()) != 0) {
        throw std::system_error(errno, std::generic_category(), "getentropy");
    }
}

} // namespace redlock::net
