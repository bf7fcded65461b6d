// Whom the sockets of the masters report to.

#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

namespace redlock::net {

/// Whom a link reports to, with `guard` held, never from inside a call to it. Pending operations
/// share the ownership of the owner: it lives as long as something can still happen to it.
class link_owner : public std::enable_shared_from_this<link_owner> {
public:
    /// Held while anything of the owner or of its links is touched. A mutex and not a strand: the
    /// sections are short, and a strand costs each completion a detour that weighs more than they
    /// do.
    mutable std::mutex guard;

    virtual void link_opened(std::size_t master) = 0;
    virtual void link_closed(std::size_t master, std::string_view why) = 0;
    virtual void link_received(std::size_t master, std::span<const char> bytes) = 0;
    virtual void link_written(std::size_t master, std::size_t bytes) = 0;
    /// The moment has come that was asked for, or it will.
    virtual void time_came() = 0;

protected:
    ~link_owner() = default;
};

} // namespace redlock::net
