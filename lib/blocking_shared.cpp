#include "blocking_wait.hpp"
#include "manager_impl.hpp"

#include <redlock/blocking_shared.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

namespace asio = boost::asio;

namespace blocking {

struct shared_mutex::state {
    /// Whether the current readers have lost their lease. Then no reader joins them.
    bool overdue() const noexcept {
        return !leases.empty() && std::none_of(leases.begin(), leases.end(), [](const auto& one) {
            return one.held();
        });
    }

    bool open_for(lock_mode wanted) const noexcept {
        return wanted == lock_mode::writer ? !writing && reading == 0
                                           : !writing && writers_waiting == 0 && !overdue();
    }

    void enter(lock_mode wanted) noexcept {
        if (wanted == lock_mode::writer) {
            writing = true;
        } else {
            ++reading;
        }
    }

    void leave(lock_mode what) noexcept {
        if (what == lock_mode::writer) {
            writing = false;
        } else {
            --reading;
        }
        changed.notify_all();
    }

    /// Posted to the manager's thread, because stop callbacks may lock again.
    void tell_of_loss() {
        std::unique_lock lock(guard);
        if (overdue()) {
            std::stop_source told = lost;
            lock.unlock();
            told.request_stop();
        }
    }

    /// The lease that ends first; a lost one comes before all others.
    redlock::lock take_first() {
        const auto first =
            std::min_element(leases.begin(), leases.end(), [](const auto& a, const auto& b) {
                return std::pair(a.held(), a.deadline()) < std::pair(b.held(), b.deadline());
            });
        redlock::lock result = std::move(*first);
        leases.erase(first);
        return result;
    }

    mutable std::mutex guard;
    std::condition_variable_any changed;
    // From the request to the end of the release:
    bool writing = false;
    std::size_t reading = 0;
    std::size_t writers_waiting = 0;   // for readers of this object
    std::vector<redlock::lock> leases; // the writer's, or one of each reader
    std::stop_source lost;
    std::optional<release_result> last_release;
    diagnostics last_attempt;
};

shared_mutex::shared_mutex(manager& owner, std::string resource, acquire_options options)
    : manager_(owner),
      resource_(std::move(resource)),
      options_(options),
      state_(std::make_shared<state>()) {
    options.mode = lock_mode::writer;
    detail::share(owner.async())->require(resource_, options);
}

shared_mutex::~shared_mutex() = default;

void shared_mutex::lock(std::stop_token stop) {
    take_or_throw(lock_mode::writer, stop);
}

bool shared_mutex::try_lock() {
    return try_within(lock_mode::writer, wait_for::none(), {});
}

void shared_mutex::unlock() noexcept {
    give_back(lock_mode::writer);
}

void shared_mutex::lock_shared(std::stop_token stop) {
    take_or_throw(lock_mode::shared, stop);
}

bool shared_mutex::try_lock_shared() {
    return try_within(lock_mode::shared, wait_for::none(), {});
}

void shared_mutex::unlock_shared() noexcept {
    give_back(lock_mode::shared);
}

void shared_mutex::take_or_throw(lock_mode wanted, const std::stop_token& stop) {
    if (const error_code error = take(wanted, options_.wait, stop)) {
        std::rethrow_exception(detail::explained(error, last_attempt()));
    }
}

bool shared_mutex::try_within(lock_mode wanted, wait_for limit, std::stop_token stop) {
    const error_code error = take(wanted, limit, stop);
    return !error || detail::is_acquired(error, last_attempt());
}

error_code shared_mutex::take(lock_mode wanted, wait_for limit, const std::stop_token& stop) {
    if (manager_.on_own_thread()) {
        return errc::would_deadlock;
    }
    const detail::blocking_wait wait(limit);
    state& mine = *state_;
    for (;;) {
        {
            std::unique_lock lock(mine.guard);
            const auto open = [&] { return mine.open_for(wanted); };
            const std::size_t waits = wanted == lock_mode::writer ? 1 : 0;
            mine.writers_waiting += waits;
            const bool entered = wait.for_threads(mine.changed, lock, stop, open);
            mine.writers_waiting -= waits;
            if (!entered) {
                mine.changed.notify_all(); // readers waited for this writer
                if (stop.stop_requested()) {
                    return asio::error::operation_aborted;
                }
                mine.last_attempt = detail::another_thread_has(resource_);
                return errc::contended;
            }
            mine.enter(wanted);
        }
        acquire_options options = options_;
        options.mode = wanted == lock_mode::writer ? lock_mode::writer : lock_mode::shared;
        options.fencing = options.fencing && wanted == lock_mode::writer;
        options.wait = wait.for_masters();
        try {
            diagnostics why;
            auto [error, taken] = detail::acquire_blocking(manager_, resource_, options, why, stop);
            if (!error) {
                taken.async_wait_lost([watched = std::weak_ptr(state_)](error_code, loss_reason) {
                    if (const auto still = watched.lock()) {
                        still->tell_of_loss();
                    }
                });
            }
            const std::lock_guard lock(mine.guard);
            mine.last_attempt = std::move(why);
            if (error) {
                mine.leave(wanted);
                return error;
            }
            // Next to readers that have lost their lease, the lock would seem to be held for them
            // as well.
            if (mine.overdue()) {
                mine.leave(wanted);
                continue; // `taken` is released in the background
            }
            if (mine.leases.empty()) {
                mine.lost = std::stop_source();
            }
            mine.leases.push_back(std::move(taken));
            if (mine.overdue()) {
                tell_of_loss(); // its handler may have run too early
            }
            return {};
        } catch (...) {
            const std::lock_guard lock(mine.guard);
            mine.leave(wanted);
            throw;
        }
    }
}

void shared_mutex::give_back(lock_mode what) noexcept {
    state& mine = *state_;
    redlock::lock ended;
    bool others_lost = false;
    {
        const std::lock_guard lock(mine.guard);
        if (mine.leases.empty() || mine.writing != (what == lock_mode::writer)) {
            return;
        }
        ended = mine.take_first();
        others_lost = mine.overdue(); // before, when this lease covered it
    }
    if (others_lost) {
        tell_of_loss();
    }
    const std::optional<release_result> result = detail::release_blocking(manager_, ended);
    const std::lock_guard lock(mine.guard);
    mine.last_release = result;
    mine.leave(what);
}

void shared_mutex::tell_of_loss() noexcept {
    try {
        asio::post(manager_.async().get_executor(), [told = state_] { told->tell_of_loss(); });
    } catch (...) { // NOLINT(bugprone-empty-catch): no memory; `held` is false nevertheless
    }
}

bool shared_mutex::held() const noexcept {
    const std::lock_guard lock(state_->guard);
    return !state_->leases.empty() && !state_->overdue();
}

time_point shared_mutex::deadline() const noexcept {
    const std::lock_guard lock(state_->guard);
    std::pair last(false, time_point::min());
    for (const redlock::lock& one : state_->leases) {
        last = std::max(last, std::pair(one.held(), one.deadline())); // a lost one does not count
    }
    return last.second;
}

std::chrono::nanoseconds shared_mutex::remaining() const noexcept {
    const std::lock_guard lock(state_->guard);
    std::chrono::nanoseconds longest = std::chrono::nanoseconds::zero();
    for (const redlock::lock& one : state_->leases) {
        longest = std::max(longest, one.remaining());
    }
    return longest;
}

std::optional<std::uint64_t> shared_mutex::fencing_token() const {
    const std::lock_guard lock(state_->guard);
    return state_->writing && !state_->leases.empty() ? state_->leases.front().fencing_token()
                                                      : std::nullopt;
}

std::stop_token shared_mutex::lost() const {
    const std::lock_guard lock(state_->guard);
    return state_->lost.get_token();
}

std::optional<release_result> shared_mutex::last_release() const {
    const std::lock_guard lock(state_->guard);
    return state_->last_release;
}

diagnostics shared_mutex::last_attempt() const {
    const std::lock_guard lock(state_->guard);
    return state_->last_attempt;
}

} // namespace blocking

}} // namespace redlock::REDLOCK_ABI
