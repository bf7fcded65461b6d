// How the threads of a blocking manager wait, and are woken.

#pragma once

#include <redlock/version.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#if defined(__linux__) && !defined(REDLOCK_PORTABLE)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// Number of the calling thread. The system may give its own number to a later thread.
inline std::uint64_t this_thread() noexcept {
    static std::atomic<std::uint64_t> last{0};
    thread_local const std::uint64_t mine = ++last;
    return mine;
}

/// Wakes threads. If several wait, those whose events are raised in a row by the loop's handlers
/// are woken by one system call, after the handlers: a thread that is woken earlier takes the
/// processor from them.
class waker {
public:
    explicit waker(boost::asio::io_context& io) noexcept : io_(io) {}

private:
    friend class event;

    static constexpr unsigned bits = 32;
    /// What 32 threads wait for, and others with the same numbers.
    struct word {
        std::atomic<std::uint32_t> turn{0}; // changes whenever one of them is woken
        std::uint32_t late = 0;             // those that the loop will wake
    };

    word& word_of(std::uint64_t thread) noexcept { return words_[thread / bits % words_.size()]; }

    void wake(std::uint64_t thread) noexcept {
        word& theirs = word_of(thread);
        if (waiting_ <= 1 || !io_.get_executor().running_in_this_thread()) {
            wake(theirs, bit_of(thread));
            return;
        }
        theirs.late |= bit_of(thread);
        if (std::exchange(posted_, true)) {
            return;
        }
        try {
            boost::asio::post(io_, [this] { wake_all(); });
        } catch (...) { // no memory
            wake_all();
        }
    }
    void wake_all() noexcept {
        posted_ = false;
        for (word& one : words_) {
            if (one.late != 0) {
                wake(one, std::exchange(one.late, 0));
            }
        }
    }

    static std::uint32_t bit_of(std::uint64_t thread) noexcept { return 1U << thread % bits; }
    // Not by the standard's atomics: their waits yield the processor before they sleep.
#if defined(__linux__) && !defined(REDLOCK_PORTABLE)
    static void wake(word& those, std::uint32_t mask) noexcept {
        ++those.turn;
        ::syscall(
            SYS_futex, &those.turn, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, nullptr, mask);
    }
    void sleep(std::uint64_t thread, std::uint32_t turn) noexcept {
        ::syscall(
            SYS_futex,
            &word_of(thread).turn,
            FUTEX_WAIT_BITSET_PRIVATE,
            turn,
            nullptr,
            nullptr,
            bit_of(thread));
    }
#else
    static void wake(word& those, std::uint32_t) noexcept {
        ++those.turn;
        those.turn.notify_all();
    }
    void sleep(std::uint64_t thread, std::uint32_t turn) noexcept {
        word_of(thread).turn.wait(turn);
    }
#endif

    boost::asio::io_context& io_;
    std::array<word, 8> words_;
    std::atomic<std::size_t> waiting_{0};
    bool posted_ = false;
};

/// What one thread waits for, which makes it. Once it is raised it may be gone.
class event {
public:
    explicit event(waker& by) noexcept : by_(by) {}

    void raise() noexcept {
        waker& by = by_;
        const std::uint64_t thread = thread_;
        raised_ = true;
        by.wake(thread);
    }
    void wait() noexcept {
        const std::atomic<std::uint32_t>& turn = by_.word_of(thread_).turn;
        ++by_.waiting_;
        for (std::uint32_t seen = turn; !raised_; seen = turn) {
            by_.sleep(thread_, seen);
        }
        --by_.waiting_;
    }
    bool is_raised() const noexcept { return raised_; }

private:
    waker& by_;
    const std::uint64_t thread_ = this_thread();
    std::atomic<bool> raised_{false};
};

}}} // namespace redlock::REDLOCK_ABI::detail
