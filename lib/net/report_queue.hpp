// Calls to the observer and to the logger. They are queued while the guard is held and made without
// it, so that the code of the caller may call the manager.

#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace redlock::net {

/// A queue of calls, which are made one at a time and in order, by threads that call `deliver`.
/// Every function but `calls_here` is called with the guard held.
class report_queue {
public:
    void add(std::function<void()> call) { calls_.push_back({{}, std::move(call)}); }
    /// A call for this thread only, which must call `deliver` next.
    void add_here(std::function<void()> call) {
        calls_.push_back({std::this_thread::get_id(), std::move(call)});
    }
    bool empty() const noexcept { return calls_.empty(); }
    /// Whether this thread is inside of a call.
    bool calls_here() const noexcept { return deliverer_.load() == std::this_thread::get_id(); }

    /// Makes the queued calls with `guard` unlocked. Stops at a call for another thread, which then
    /// continues. Waits until the calls for this thread have been made, but leaves others to a
    /// thread that is making calls already. Inside a call it does nothing: the calls that were
    /// added are made when that call returns.
    void deliver(std::unique_lock<std::mutex>& guard) noexcept {
        const auto me = std::this_thread::get_id();
        while (deliverer_.load() != me && !calls_.empty()) {
            if (deliverer_.load() == std::thread::id() && may_make_first(me)) {
                deliverer_ = me;
                while (!calls_.empty() && may_make_first(me)) {
                    make_first(guard);
                }
                deliverer_ = std::thread::id();
                progress_.notify_all();
            } else if (std::ranges::find(calls_, me, &queued::thread) != calls_.end()) {
                progress_.wait(guard);
            } else {
                return;
            }
        }
    }

private:
    struct queued {
        std::thread::id thread; // none: any
        std::function<void()> call;
    };

    bool may_make_first(std::thread::id me) const noexcept {
        const auto of = calls_.front().thread;
        return of == std::thread::id() || of == me;
    }
    void make_first(std::unique_lock<std::mutex>& guard) noexcept {
        {
            const std::function<void()> call = std::move(calls_.front().call);
            calls_.pop_front();
            guard.unlock();
            try {
                call();
            } catch (...) { // NOLINT(bugprone-empty-catch): exceptions of a logger are ignored
            }
        }
        guard.lock();
    }

    std::deque<queued> calls_;
    std::atomic<std::thread::id> deliverer_;
    std::condition_variable progress_;
};

} // namespace redlock::net
