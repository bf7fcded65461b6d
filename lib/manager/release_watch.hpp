// Release notifications for callers that do not acquire the lock, such as the observation of an
// election. It knows nothing of masters: notifications and time are passed in.

#pragma once

#include "completion.hpp"

#include <redlock/clock.hpp>

#include <algorithm>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// A lock that a caller watches.
struct watched_lock {
    std::string key;
    bool notified = false; // since the caller has set it to false
    time_point due = time_point::max();
    waiters<error_code> waiting; // one at a time
};

class release_watch {
public:
    explicit release_watch(const home& io) : io_(io) {}

    watched_lock& add(std::string key) {
        locks_.emplace_back().key = std::move(key);
        return locks_.back();
    }
    void remove(const watched_lock& lock) {
        locks_.remove_if([&](const watched_lock& one) { return &one == &lock; });
    }

    /// Completes `done` at `moment`, or as soon as the lock was notified.
    void
    wait(watched_lock& lock, time_point moment, std::uint64_t id, completion<error_code>&& done) {
        if (lock.notified) {
            std::move(done)(io_, error_code());
            return;
        }
        lock.due = moment;
        lock.waiting.add({id, nullptr, std::move(done)});
        next_due_ = std::min(next_due_, moment);
    }
    /// Completes the call with this number with `error`, if it still waits.
    void cancel(std::uint64_t id, const error_code& error) {
        for (watched_lock& one : locks_) {
            one.waiting.complete(io_, id, error);
        }
    }

    /// The lock with that key may have been released.
    void release_notified(std::string_view key) {
        for (watched_lock& one : locks_) {
            one.notified = one.notified || one.key == key;
        }
        complete_if([](const watched_lock& one) { return one.notified; }, error_code());
    }
    void time_passed(time_point now) {
        complete_if([now](const watched_lock& one) { return one.due <= now; }, error_code());
    }
    /// Completes all waiting calls with `error`.
    void end(const error_code& error) {
        complete_if([](const watched_lock&) { return true; }, error);
    }

    /// The time at which `time_passed` must be called next; `time_point::max()` if nothing waits.
    time_point next_due() const noexcept { return next_due_; }

private:
    /// Completes the waiting calls that `f` selects.
    template <typename F>
    void complete_if(F f, const error_code& error) {
        next_due_ = time_point::max();
        for (watched_lock& one : locks_) {
            if (f(one)) {
                one.waiting.complete_all(io_, error);
            }
            if (!one.waiting.empty()) {
                next_due_ = std::min(next_due_, one.due);
            }
        }
    }

    const home& io_;
    std::list<watched_lock> locks_;
    time_point next_due_ = time_point::max();
};

}}} // namespace redlock::REDLOCK_ABI::detail
