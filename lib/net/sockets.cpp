#include "sockets.hpp"

#include <unistd.h>
#if __has_include(<sys/random.h>)
#include <sys/random.h> // macOS declares it there
#endif

#include <cerrno>
#include <system_error>

namespace redlock::net {

sockets::sockets(
    const boost::asio::any_io_executor& io, const config& configuration, socket_callbacks& owner)
    : tls_(configuration.tls),
#if REDLOCK_LINUX
      ready_sockets_(io, owner, [this](std::size_t link) { sockets_[link]->ready_to_move(); }),
#endif
      timer_(io, owner) {
    const std::size_t masters = configuration.masters.size();
    for (std::size_t i = 0; i < 2 * masters; ++i) { // for commands, then for notifications
        const endpoint& where = configuration.masters[i % masters];
        if (where.tls) {
            tls_.read(); // a mistake is found at once
        }
        const std::string& name = tls_name_of(where, configuration.tls);
        sockets_.push_back(std::make_unique<socket>(io, i, where, tls_, name, owner));
#if REDLOCK_LINUX
        sockets_.back()->be_watched(ready_sockets_);
#endif
    }
}

void sockets::random(std::span<unsigned char> out) {
    // Each token is drawn by itself. A block drawn in advance would be repeated after a fork or in
    // a copy of the virtual machine. Linux 6.11 with glibc 2.41 serves getrandom without a system
    // call, and prevents both. At most 256 bytes per call, which are never interrupted.
#if REDLOCK_LINUX
    const bool drawn = ::getrandom(out.data(), out.size(), 0) == static_cast<ssize_t>(out.size());
#else
    const bool drawn = ::getentropy(out.data(), out.size()) == 0;
#endif
    if (!drawn) {
        throw std::system_error(errno, std::generic_category(), "getrandom");
    }
}

} // namespace redlock::net
