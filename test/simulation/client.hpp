// One client: a process with a lock manager's engine, its own clock, and workers that take locks as
// the plan says. A holder acts on a lock until it lets go, or until the last deadline that it ever
// saw has passed by its own clock. Neither a false `held()` nor a signalled loss stops a holder by
// itself: depending on the plan it stops at once, later or never.

#pragma once

#include "network.hpp"
#include "support/engine_host.hpp"

namespace simulation {

/// Value of a client's clock when the run starts.
inline constexpr nanos clock_base = 1'000'000 * sec;

/// A loss is signalled no later than this after its moment: a timer rings at the first nanosecond
/// that is late enough.
inline constexpr nanos loss_tolerance = us;

/// The resources of an operation, in order and none twice, as the engine wants them.
std::vector<unsigned> resources_of(const op& what);

class client final : private redlock::test::engine_host, private connection_user {
public:
    client(unsigned number, surroundings& here, network& net);

    /// \name Life of the process
    /// \{
    /// Destroys a closed manager, of which holders whose loss it signalled may still act.
    void start();
    void crash();
    void close();
    void pause(nanos until, bool suspends);
    bool paused() const noexcept { return here_.now < paused_until_; }
    void defer(event what) { deferred_.push_back(std::move(what)); }
    bool running() const noexcept { return engine_ != nullptr && !engine_->closing(); }
    /// \}

    /// Checks that no waiter leaves a free lock without an attempt for too long.
    void look_for_idle_waiters();

    /// \name The end
    /// \{
    /// Releases all locks. A worker that waits without a limit continues to wait for its last lock.
    void begin_finals();
    bool waits() const noexcept;
    /// Makes each other worker acquire one last lock, without a time limit.
    void take_last();
    bool finals_done() const noexcept;
    std::string waiting() const;
    /// What is left over in the engine; empty if nothing.
    std::string leftovers() const;
    /// Whether the engine is closed down: each acquire has a result, and nothing goes on.
    bool has_closed() const noexcept;
    /// Adds what the engine counted to the figures of the run.
    void count();
    /// \}

private:
    enum class activity : std::uint8_t { idle, waiting, holding };

    struct hold {
        bool open = false;
        std::vector<std::size_t> ownerships; // one for each resource
        redlock::core::handle<redlock::core::claim> claim;
        std::string token;
        bool dated = false;               // see `abandoned_lock`
        redlock::time_point until;        // `held()` is true
        redlock::time_point until_before; // before the last change
        redlock::time_point deadline;     // the latest deadline that it was shown
        nanos changed = 0;
        bool releasing = false;
    };
    struct worker {
        const std::vector<op>* ops = nullptr;
        std::size_t next = 0;
        op now;
        activity doing = activity::idle;
        bool last = false;  // at its last lock
        bool waits = false; // it may make more than one attempt
        bool queues = false;
        nanos idle_since = 0; // its lock has been free since then, without an attempt
        bool done = false;
        redlock::core::handle<redlock::core::acquire_call> wanted;
        unsigned cookie = 0;
        unsigned holds = 0;
        hold held;
        std::vector<std::size_t> attached; // ownerships of the lock to which it attaches
        bool dated = false;                // of the lock that it asks for
    };

    struct ended_hold {
        std::vector<std::size_t> ownerships;
        redlock::core::handle<redlock::core::claim> claim;
        unsigned incarnation = 0;
    };

    void open(std::size_t link) override;
    void close(std::size_t link) override;
    unsigned char random_byte() override {
        return static_cast<unsigned char>(random_.next() >> 56U);
    }
    void token_drawn(std::string hex) override { net_.note_attempt(std::move(hex), here_.now); }
    bool logs(redlock::log_level) const override { return here_.story != nullptr; }
    void log(redlock::log_level, std::string_view line) override { tell("{}", line); }
    void
    acquired(const redlock::core::acquire_call& done, const redlock::core::claim& lease) override;
    void not_acquired(const redlock::core::acquire_call& done) override;
    void lease_changed(const redlock::core::claim& lease) override;
    void lease_lost(const redlock::core::claim& lease, redlock::loss_reason reason) override;
    void extended(const redlock::core::claim& lease, std::optional<redlock::errc> error) override;
    void removed(const redlock::core::claim& lease, redlock::release_result result) override;
    void queried(std::uint64_t, redlock::lock_status&&) override {}
    void closed() override { tell("is closed"); }

    void connected(unsigned place, bool accepted) override;
    void arrived(unsigned place, std::string bytes) override;
    void hung_up(unsigned place) override;

    redlock::core::settings settings() const;
    std::optional<redlock::core::member_change> change() const;
    /// By the client's clock.
    redlock::time_point now() const noexcept override {
        return to_moment(clock_.at(here_.now - stopped_));
    }
    nanos when(redlock::time_point moment) const noexcept;
    nanos end_of(const hold& mine) const noexcept;
    void after_call();
    void wake();
    void flush();
    void resume();
    void next_op(unsigned worker);
    void end_op(unsigned worker, unsigned hold);
    void stop(std::size_t which);
    void extend(unsigned worker, unsigned hold);
    void downgrade(unsigned worker, unsigned hold);
    void cancel(unsigned worker, unsigned cookie);
    bool may_wait_forever() const noexcept;
    void begin(unsigned number);
    std::string token_for(worker& one);
    void plan_next(unsigned number);
    void let_go(worker& one);
    void acts_until(const hold& mine);
    void lets_go(const std::vector<std::size_t>& ownerships);
    void drop_engine();
    void look_for_untold_losses();
    std::vector<std::string> keys_of(const op&) const;
    bool is_free(const op&, const redlock::health& seen) const;
    std::string name_of(std::size_t place) const;
    worker* holder_of(redlock::core::handle<redlock::core::claim> claim);
    worker* owner_of(std::uint64_t cookie);
    /// Adds a report of the engine to the digest of the run.
    void witness(std::string_view report, std::string_view of, std::int64_t value);
    template <typename... Parts>
    void tell(fmt::format_string<const Parts&...> line, const Parts&... parts) {
        here_.note("c" + std::to_string(number_), line, parts...);
    }
    /// An event of the process; it does not outlive that.
    template <typename F>
    void later(nanos at, F happens) {
        const auto alive = [this, incarnation = incarnation_, happens] {
            if (incarnation == incarnation_ && engine_ != nullptr) {
                happens();
            }
        };
        here_.queue.push(at, alive, number_);
    }

    unsigned number_;
    surroundings& here_;
    network& net_;
    const client_plan& mine_;
    generator random_;
    skewed_clock clock_;
    nanos stopped_ = 0; // total time for which the clock was stopped
    nanos paused_until_ = 0;
    nanos resumed_at_ = -1;
    std::vector<event> deferred_;
    unsigned incarnation_ = 0;
    bool may_take_last_ = false;
    bool flush_planned_ = false;
    nanos wake_planned_ = no_time;
    std::vector<worker> workers_;
    std::vector<ended_hold> lost_;  // whose loss was signalled, and which may still act
    std::vector<ended_hold> ended_; // whose release has no result yet
};

} // namespace simulation
