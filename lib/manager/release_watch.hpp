// Release notifications for callers that do not acquire the lock, such as the observation of an
// election. It counts the notifications per key, and wakes the calls that wait for the next one. It
// knows nothing of masters: notifications and time are passed in.

#pragma once

#include "completion.hpp"

#include <redlock/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

class release_watch {
public:
    explicit release_watch(const home& io) : io_(io) {}

    /// Counts the notifications on `key`, until `unlisten` has been called as often.
    void listen(const std::string& key) { ++heard_[key].listeners; }
    void unlisten(const std::string& key);
    /// Returns the number of notifications on a key that is subscribed to.
    std::uint64_t notifications_of(const std::string& key) const {
        return heard_.find(key)->second.notifications;
    }

    /// Completes `done` at `moment`, or as soon as a subscribed key has a number of notifications
    /// other than `before`. `id` is the argument of `cancel`; 0 if that is not needed.
    void wait(
        const std::string& key,
        std::uint64_t before,
        time_point moment,
        std::uint64_t id,
        completion<error_code>&& done);
    /// Completes the call with this number with `error`, if it still waits.
    void cancel(std::uint64_t id, const error_code& error);

    /// A notification: the lock with that key may have been released.
    void release_notified(std::string_view key);
    void time_passed(time_point now);
    /// Completes all waiting calls with `error`.
    void end(const error_code& error);

    /// The time at which `time_passed` must be called next; `time_point::max()` if nothing waits.
    time_point next_due() const noexcept {
        return waiting_.empty() ? time_point::max() : waiting_.begin()->first;
    }

private:
    struct hearing {
        std::size_t listeners = 0;
        std::uint64_t notifications = 0;
    };
    struct waiter {
        std::uint64_t id;
        std::string key;
        completion<error_code> done;
    };

    /// Completes the waiting calls that `f` selects.
    template <typename F>
    void complete_if(F f, const error_code& error);

    const home& io_;
    std::map<std::string, hearing, std::less<>> heard_; // by key
    std::multimap<time_point, waiter> waiting_;
};

}}} // namespace redlock::REDLOCK_ABI::detail
