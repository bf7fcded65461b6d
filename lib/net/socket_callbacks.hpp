// The receiver of the reports of sockets.

#pragma once

#include "report_queue.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

namespace redlock::net {

/// Receives the reports of sockets, with `guard` held, never from inside a call to a socket.
/// Pending operations share its ownership: it lives as long as an event may arrive.
class socket_callbacks : public std::enable_shared_from_this<socket_callbacks> {
public:
    /// Held during every access to the owner or its sockets. A mutex, because sections are short
    /// and a strand costs more per completion.
    mutable std::mutex guard;

    /// Calls to the code of the caller, which must not be made with the guard held.
    report_queue reports;

    /// Holds the guard for a scope, and makes the queued calls after it. The owner must be kept
    /// alive until the end of the scope.
    class section {
    public:
        explicit section(socket_callbacks& owner) : owner_(owner), lock_(owner.guard) {}
        ~section() {
            if (owner_.reports.empty()) {
                return;
            }
            const auto alive = owner_.weak_from_this().lock(); // a call may drop the last handle
            owner_.reports.deliver(lock_);
            lock_.unlock(); // before the owner may be destroyed
        }

    private:
        socket_callbacks& owner_;
        std::unique_lock<std::mutex> lock_;
    };

    virtual void socket_opened(std::size_t link) = 0;
    virtual void socket_closed(std::size_t link, std::string_view why) = 0;
    /// Followed by `all_received`, once for all masters whose bytes came together.
    virtual void socket_received(std::size_t link, std::span<const char> bytes) = 0;
    virtual void all_received() = 0;
    virtual void socket_written(std::size_t link, std::size_t bytes) = 0;
    /// The requested time has come. May be called early.
    virtual void time_came() = 0;

protected:
    ~socket_callbacks() = default;
};

} // namespace redlock::net
