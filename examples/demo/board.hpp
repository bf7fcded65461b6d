// What the processes of the demo share: the counters that the locks guard, a detector of overlaps
// that is independent of Redis, and what each worker reports about itself.
//
// It is one page-aligned mapping made before the workers are forked. Everything in it is a
// lock-free atomic, and zero means "nothing yet".
#pragma once

#include <redlock/clock.hpp>
#include <redlock/diagnostics.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace demo {

inline constexpr std::size_t masters_max = 15;
inline constexpr std::size_t workers_max = 32;
inline constexpr std::size_t counters_max = 2;
// Enough for an hour at the rate of a worker. Latencies beyond it are not kept.
inline constexpr std::size_t samples_max = std::size_t{1} << 15;

// A number that is incremented by reading it, working for a while, and writing it back. Without a
// lock around that, increments are lost.
class guarded_counter {
public:
    // Two steps on purpose, not fetch_add.
    std::uint64_t read() const noexcept { return value_.load(std::memory_order_relaxed); }
    void write(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }

    // A worker begins to work under a lock that it may rely on until `deadline`.
    void enter(std::size_t worker, redlock::time_point deadline) noexcept;
    // It has ended. `still_held` is asked only if another worker has entered since.
    template <typename StillHeld>
    void leave(std::size_t worker, StillHeld still_held) noexcept {
        auto expected = static_cast<std::uint32_t>(worker + 1);
        if (!owner_.compare_exchange_strong(expected, 0) && still_held()) {
            ++overlaps_;
        }
    }

    // The worker inside, if any, counted from 1.
    std::uint32_t owner() const noexcept { return owner_.load(); }
    std::uint64_t overlaps() const noexcept { return overlaps_.load(); }

private:
    std::atomic<std::uint64_t> value_;
    std::atomic<std::uint32_t> owner_;
    std::atomic<redlock::clock::rep> deadline_;
    std::atomic<std::uint64_t> overlaps_;
};

enum class activity : std::uint32_t {
    starting, // waits for a quorum
    waiting,  // for the lock
    working,  // has the lock, has read the counter
    writing,  // looks at the lock for the last time, and writes
    resting,  // between two turns
    ended,
};

enum class result : std::uint32_t { nothing, granted, contended, no_quorum, other };

// The report of one worker. Only that worker writes it.
struct worker_slot {
    std::atomic<activity> doing;
    std::atomic<std::size_t> counter;       // index of the counter it is after
    std::atomic<redlock::clock::rep> since; // when `doing` began

    std::atomic<std::uint64_t> acquired;
    std::atomic<std::uint64_t> contended;
    std::atomic<std::uint64_t> no_quorum;
    std::atomic<std::uint64_t> other_failures;
    std::atomic<std::uint64_t> written; // increments, so what the counters must show
    std::atomic<std::uint64_t> lost;    // locks that were gone before the write, which was left out
    std::atomic<std::uint64_t> attempts;
    std::atomic<std::uint64_t> renewed;

    std::atomic<result> last_result;
    std::atomic<unsigned> last_attempts;
    std::array<std::atomic<redlock::vote>, masters_max> last_votes;

    struct tally {
        std::atomic<std::uint64_t> granted;
        std::atomic<std::uint64_t> held;
        std::atomic<std::uint64_t> failed;
    };
    std::array<tally, masters_max> votes;

    std::atomic<std::size_t> samples;
    std::array<std::atomic<std::uint32_t>, samples_max> latency_us;

    std::array<char, 160> failure; // what ended it early; read when the process is gone

    void begin(activity what) noexcept {
        since.store(redlock::clock::now().time_since_epoch().count());
        doing.store(what);
    }
    void add_sample(redlock::clock::duration latency) noexcept;
};

struct board {
    std::atomic<bool> stop; // the workers end their turn and then themselves
    std::array<guarded_counter, counters_max> counters;
    std::array<worker_slot, workers_max> workers;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<redlock::clock::rep>::is_always_lock_free);
static_assert(std::atomic<redlock::vote>::is_always_lock_free);

// Owns the mapping. Processes that are forked later share it.
class shared_board {
public:
    shared_board();
    shared_board(const shared_board&) = delete;
    ~shared_board();

    board& operator*() const noexcept { return *board_; }
    board* operator->() const noexcept { return board_; }

private:
    board* board_;
};

} // namespace demo
