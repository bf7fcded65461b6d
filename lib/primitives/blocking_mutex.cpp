#include "blocking_wait.hpp"
#include "waker.hpp"

#include <redlock/blocking.hpp>
#include <redlock/blocking_shared.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <utility>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace blocking {

namespace asio = boost::asio;

namespace {

acquire_options for_readers(acquire_options options) noexcept {
    options.mode = lock_mode::shared;
    options.fencing = false;
    return options;
}

} // namespace

/// The threads of this process that use the mutex. All but `guard` with the guard held.
struct mutex::state final : detail::loss_listener {
    explicit state(asio::any_io_executor manager) : executor(std::move(manager)) {}

    void lost(std::shared_ptr<detail::loss_listener> self, const diagnostics&) override {
        asio::post(executor, [this, self = std::move(self)] {
            const std::lock_guard lock(guard);
            signal_if_lost();
        });
    }

    struct threads {
        std::size_t inside = 0;  // from the request to the end of the release
        std::size_t waiting = 0; // for others to leave
    };
    threads& of(entry how) noexcept { return how == entry::alone ? alone : shared; }

    /// A lost lease ends before all others.
    static bool ends_before(const redlock::lock& a, const redlock::lock& b) noexcept {
        return std::pair(a.held(), a.deadline()) < std::pair(b.held(), b.deadline());
    }

    /// The lease that lasts longest; an empty one if there is none.
    const redlock::lock& last() const noexcept {
        return leases.empty() ? none : *std::max_element(leases.begin(), leases.end(), ends_before);
    }

    /// Whether the current owners have lost their lease. Then no reader joins them.
    bool overdue() const noexcept { return !leases.empty() && !last().held(); }

    bool open_for(entry wanted) const noexcept {
        return alone.inside == 0
               && (wanted == entry::alone ? shared.inside == 0 : alone.waiting == 0 && !overdue());
    }

    /// Whether the calling thread has locked the mutex, so that it could only wait for itself.
    bool locked_here() const noexcept {
        return std::find(owners.begin(), owners.end(), detail::this_thread()) != owners.end();
    }

    /// Any thread may unlock. If it has not locked, it is unknown for which owner it does.
    void forget_owner() noexcept {
        const auto mine = std::find(owners.begin(), owners.end(), detail::this_thread());
        mine != owners.end() ? owners.erase(mine, mine + 1) : owners.erase(owners.begin(), mine);
    }

    void leave(entry how) noexcept {
        --of(how).inside;
        wake_others();
    }

    void wake_others() noexcept {
        shared.waiting == 0 ? changed.notify_one() : changed.notify_all();
    }

    /// Posted to the manager's thread, because stop callbacks may lock again.
    void signal_if_lost() noexcept {
        was_lost = was_lost || overdue();
        if (stopped && was_lost) {
            try {
                asio::post(executor, [told = *stopped]() mutable { told.request_stop(); });
            } catch (...) { // NOLINT(bugprone-empty-catch): no memory; `held` is false nevertheless
            }
        }
    }

    redlock::lock take_first() {
        const auto first = std::min_element(leases.begin(), leases.end(), ends_before);
        redlock::lock result = std::move(*first);
        leases.erase(first);
        return result;
    }

    const asio::any_io_executor executor;
    mutable std::mutex guard;
    std::condition_variable_any changed;
    threads alone;
    threads shared;
    const redlock::lock none;
    std::vector<redlock::lock> leases;       // one of each thread inside
    std::vector<std::uint64_t> owners;       // threads that have locked, as far as it is known
    std::optional<std::stop_source> stopped; // on a loss, once somebody has asked for it
    bool was_lost = false;
    std::optional<release_result> last_release;
};

mutex::mutex(manager& owner, std::string resource, acquire_options options, bool readers)
    : manager_(owner),
      resource_(std::move(resource)),
      options_([&] {
          options.mode = readers ? lock_mode::exclusive : options.mode;
          return options;
      }()),
      state_(std::make_shared<state>(owner.async().get_executor())) {
    if (options_.mode == lock_mode::shared) {
        throw std::invalid_argument("redlock: mode is 'shared'; allowed: 'exclusive', with a mutex "
                                    "(readers have blocking::shared_mutex)");
    }
    const detail::shared_manager locks(owner.async());
    locks.require(resource_, options_);
    if (readers) {
        locks.require(resource_, for_readers(options_));
    }
}

void mutex::enter(entry how, const std::stop_token& stop) {
    diagnostics why;
    if (const error_code error = take(how, wait_for::contention(options_.wait), stop, why)) {
        std::rethrow_exception(detail::explained(error, std::move(why)));
    }
}

bool mutex::try_enter(entry how, wait_for limit, const std::stop_token& stop) {
    diagnostics why;
    const error_code error = take(how, limit, stop, why);
    if (error == errc::would_deadlock && !manager_.in_callback()) {
        return false; // this thread has the mutex
    }
    if (error && error != condition::not_acquired) {
        std::rethrow_exception(detail::explained(error, std::move(why)));
    }
    return !error;
}

error_code mutex::take(entry how, wait_for limit, const std::stop_token& stop, diagnostics& why) {
    const detail::blocking_wait wait(limit);
    state& mine = *state_;
    const auto refused = [&](errc error, const char* message) {
        why.message = message;
        why.resource = resource_;
        return make_error_code(error);
    };
    for (;;) {
        {
            // Ends after the lock, which it takes.
            std::optional<std::stop_callback<std::function<void()>>> on_close;
            // Only where it waits: all threads count its copies in one word.
            std::stop_token closing;
            std::unique_lock lock(mine.guard);
            if (manager_.in_callback()) {
                return refused(
                    errc::would_deadlock,
                    "would deadlock: this is the manager's own thread, or a call of its observer");
            }
            if (!mine.open_for(how) && mine.locked_here()) {
                return refused(
                    errc::would_deadlock, "would deadlock: this thread has this mutex already");
            }
            ++mine.of(how).waiting;
            bool entered = mine.open_for(how);
            if (!entered) {
                lock.unlock();
                closing = manager_.closing();
                on_close.emplace(closing, [&mine] {
                    const std::lock_guard until_they_wait(mine.guard);
                    mine.changed.notify_all();
                });
                lock.lock();
                wait.for_threads(mine.changed, lock, stop, [&] {
                    entered = mine.open_for(how);
                    return entered || closing.stop_requested();
                });
            }
            --mine.of(how).waiting;
            if (!entered) {
                mine.wake_others(); // they may have waited for this one
                if (stop.stop_requested()) {
                    return asio::error::operation_aborted;
                }
                if (closing.stop_requested()) {
                    return refused(errc::closed, "closed: the manager is gone");
                }
                return refused(errc::contended, "contended: another thread has this mutex");
            }
            ++mine.of(how).inside;
        }
        acquire_options options = how == entry::shared ? for_readers(options_) : options_;
        options.wait = wait.for_masters();
        try {
            redlock::lock taken;
            const error_code error = manager_.take(resource_, options, stop, taken, {&why, true});
            const std::lock_guard lock(mine.guard);
            if (error) {
                mine.leave(how);
                return error;
            }
            // Next to readers that have lost their lease, the lock would seem to be held for them
            // as well.
            if (mine.overdue()) {
                mine.leave(how);
                continue; // `taken` is released in the background
            }
            if (mine.leases.empty()) {
                mine.stopped.reset();
                mine.was_lost = false;
            }
            mine.owners.reserve(mine.owners.size() + 1); // nothing may throw below the next line
            mine.leases.push_back(std::move(taken));
            mine.owners.push_back(detail::this_thread());
            if (mine.stopped) {
                detail::loss_listener::listen(mine.leases.back(), state_);
            }
            return {};
        } catch (...) {
            const std::lock_guard lock(mine.guard);
            mine.leave(how);
            throw;
        }
    }
}

void mutex::leave(entry how) noexcept {
    state& mine = *state_;
    redlock::lock ended;
    {
        const std::lock_guard lock(mine.guard);
        if (mine.leases.empty() || (mine.alone.inside > 0) != (how == entry::alone)) {
            return;
        }
        mine.signal_if_lost(); // its handler may not have run yet
        ended = mine.take_first();
        mine.forget_owner();
        mine.signal_if_lost(); // this lease has covered the others
    }
    // Empty if it could not wait: then the handle releases in the background, or the lease expires.
    std::optional<release_result> result;
    try {
        if (!manager_.in_callback()) {
            result = manager_.release(ended);
        }
    } catch (...) { // NOLINT(bugprone-empty-catch)
    }
    const std::lock_guard lock(mine.guard);
    mine.last_release = result;
    mine.leave(how);
}

bool mutex::held() const noexcept {
    const std::lock_guard lock(state_->guard);
    return state_->last().held();
}

std::uint64_t mutex::fencing_token() const {
    const std::lock_guard lock(state_->guard);
    if (state_->alone.inside == 0 || state_->leases.empty()) {
        throw std::logic_error("redlock: fencing_token() of a mutex that is not locked, or by a "
                               "reader");
    }
    return state_->leases.front().fencing_token();
}

std::stop_token mutex::lost() const {
    const std::lock_guard lock(state_->guard);
    state& mine = *state_;
    mine.signal_if_lost();
    if (!mine.stopped) {
        mine.stopped.emplace();
        for (const redlock::lock& one : mine.leases) {
            detail::loss_listener::listen(one, state_);
        }
        if (mine.was_lost) {
            mine.stopped->request_stop();
        }
    }
    return mine.stopped->get_token();
}

std::optional<release_result> mutex::last_release() const {
    const std::lock_guard lock(state_->guard);
    return state_->last_release;
}

}}} // namespace redlock::REDLOCK_ABI::blocking
