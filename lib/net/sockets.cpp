#include "sockets.hpp"

#include "token.hpp"

namespace redlock::net {

sockets::sockets(
    const boost::asio::any_io_executor& io, const config& configuration, link_callbacks& owner)
    :
#if REDLOCK_LINUX
      ready_sockets_(io, owner, [this](std::size_t master) { links_[master]->ready_to_move(); }),
#endif
      timer_(io, owner, [&owner] { owner.time_came(); }) {
    const std::size_t masters = configuration.masters.size();
    for (std::size_t i = 0; i < 2 * masters; ++i) { // for commands, then for notifications
        const endpoint& where = configuration.masters[i % masters];
        if (where.transport == transport::tls && !tls_) {
            tls_ = make_tls_context(configuration.tls);
        }
        const std::string& name =
            configuration.tls.server_name.empty() ? where.host : configuration.tls.server_name;
        links_.push_back(std::make_unique<link>(io, i, where, tls_.get(), name, owner));
#if REDLOCK_LINUX
        links_.back()->be_watched(ready_sockets_);
#endif
    }
}

void sockets::random(std::span<unsigned char> out) {
    fill_random(out);
}

} // namespace redlock::net
