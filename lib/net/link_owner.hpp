// The receiver of the reports of sockets.

#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

namespace redlock::net {

/// Receives the reports of links, with `guard` held, never from inside a call to a link. Pending
/// operations share its ownership: it lives as long as an event may arrive.
class link_owner : public std::enable_shared_from_this<link_owner> {
public:
    /// Held during every access to the owner or its links. A mutex and not a strand: the sections
    /// are short, and a strand costs each completion more than they do.
    mutable std::mutex guard;

    virtual void link_opened(std::size_t master) = 0;
    virtual void link_closed(std::size_t master, std::string_view why) = 0;
    virtual void link_received(std::size_t master, std::span<const char> bytes) = 0;
    virtual void link_written(std::size_t master, std::size_t bytes) = 0;
    /// The requested moment has come, or will come soon.
    virtual void time_came() = 0;

protected:
    ~link_owner() = default;
};

} // namespace redlock::net
