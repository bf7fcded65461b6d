// Operations of several asynchronous steps. The steps run on a strand, so that they are cancelled
// where they run.

#pragma once

#include <redlock/lock_manager.hpp>

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/recycling_allocator.hpp>
#include <boost/asio/require.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// The error code of what was thrown, if it has one.
inline error_code code_of(const std::exception_ptr& thrown) {
    try {
        if (thrown) {
            std::rethrow_exception(thrown);
        }
    } catch (const boost::system::system_error& error) {
        return error.code();
    } catch (...) { // NOLINT(bugprone-empty-catch): another exception
    }
    return {};
}

/// A caller's handler. While it waits, its executor does not run out of work.
template <typename... Results>
class caller {
public:
    /// `own`: of the manager, which keeps it busy.
    caller(
        boost::asio::any_completion_handler<void(Results...)>&& done,
        const boost::asio::any_completion_executor& own)
        : done_(std::move(done)) {
        auto executor = boost::asio::get_associated_executor(done_, own);
        if (executor != own) {
            executor_ = boost::asio::prefer(
                std::move(executor), boost::asio::execution::outstanding_work_t::tracked);
        }
    }

    /// By which the caller cancels.
    auto slot() const noexcept { return boost::asio::get_associated_cancellation_slot(done_); }

    /// Posts the handler via `io`: a dispatch could run it inline. A cancellation slot is not
    /// thread-safe, so it is cleared where the handler runs.
    void operator()(const boost::asio::any_io_executor& io, Results... results) && {
        if (executor_) {
            boost::asio::post(
                io, boost::asio::bind_executor(std::move(executor_), call(std::move(results)...)));
        } else {
            boost::asio::post(io, call(std::move(results)...));
        }
    }

    /// The same without the detour: only inside a handler on the manager's executor.
    void dispatch(Results... results) && {
        if (executor_) {
            boost::asio::dispatch(executor_, call(std::move(results)...));
        } else {
            call(std::move(results)...)();
        }
    }

private:
    auto call(Results... results) {
        return [done = std::move(done_), ... results = std::move(results)]() mutable {
            boost::asio::get_associated_cancellation_slot(done).clear();
            std::move(done)(std::move(results)...);
        };
    }

    boost::asio::any_completion_handler<void(Results...)> done_;
    boost::asio::any_completion_executor executor_; // empty: the manager's
};

/// The functions of a strand, one at a time.
class strand_queue : public std::enable_shared_from_this<strand_queue> {
public:
    explicit strand_queue(boost::asio::any_io_executor io) : io_(std::move(io)) {}

    const boost::asio::any_io_executor& io() const noexcept { return io_; }
    bool runs_here() const noexcept {
        return runner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    }

    /// Has `by` call `f` when the strand is free.
    void
    add(boost::asio::any_completion_handler<void()> f, const boost::asio::any_io_executor& by) {
        {
            const std::lock_guard lock(mutex_);
            if (over_) {
                return;
            }
            waiting_.push_back(std::move(f));
        }
        if (count_++ == 0) {
            by.execute(turn{shared_from_this()});
        }
    }

    /// Calls `f`, in a handler of `io`; later if the strand is not free.
    template <typename F>
    void enter(F f) {
        std::size_t none = 0;
        if (runs_here()) {
            std::move(f)();
        } else if (count_.compare_exchange_strong(none, 1)) {
            call(f);
        } else {
            add(std::move(f), io_);
        }
    }

private:
    using functions = std::list<boost::asio::any_completion_handler<void()>>;

    // Calls the next function. If its context is destroyed, none is called any more: they may own
    // the strand.
    struct turn {
        explicit turn(std::shared_ptr<strand_queue> queue) noexcept : of(std::move(queue)) {}
        turn(turn&&) noexcept = default;
        ~turn() {
            functions dropped;
            if (of) {
                const std::lock_guard lock(of->mutex_);
                of->over_ = true;
                dropped.swap(of->waiting_);
            }
        }
        void operator()() {
            functions next;
            const auto queue = std::move(of);
            {
                const std::lock_guard lock(queue->mutex_);
                next.splice(next.begin(), queue->waiting_, queue->waiting_.begin());
            }
            queue->call(next.front());
        }
        std::shared_ptr<strand_queue> of;
    };

    template <typename F>
    void call(F& f) {
        const auto kept = shared_from_this();
        runner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
        try {
            std::move(f)();
        } catch (...) {
            leave();
            throw;
        }
        leave();
    }

    void leave() {
        runner_.store(std::thread::id(), std::memory_order_relaxed);
        if (--count_ > 0) {
            boost::asio::require(io_, boost::asio::execution::blocking_t::never)
                .execute(turn(shared_from_this()));
        }
    }

    const boost::asio::any_io_executor io_;
    std::atomic<std::thread::id> runner_{std::thread::id()};
    std::atomic<std::size_t> count_{0}; // that wait or run
    std::mutex mutex_;
    bool over_ = false;
    functions waiting_;
};

/// A strand that a handler of its executor enters without a detour: Asio's takes 800 instructions
/// more. It tracks no work.
class strand_executor {
    using blocking_t = boost::asio::execution::blocking_t;

public:
    strand_executor() noexcept = default; // of no strand
    explicit strand_executor(std::shared_ptr<strand_queue> queue, bool never = false) noexcept
        : queue_(std::move(queue)),
          never_(never) {}
    static strand_executor make(const boost::asio::any_io_executor& io) {
        return strand_executor(std::make_shared<strand_queue>(io));
    }

    boost::asio::execution_context& query(boost::asio::execution::context_t) const {
        return boost::asio::query(queue_->io(), boost::asio::execution::context);
    }
    blocking_t query(blocking_t) const noexcept {
        return never_ ? blocking_t(blocking_t::never) : blocking_t(blocking_t::possibly);
    }
    strand_executor require(blocking_t::never_t) const { return strand_executor(queue_, true); }
    strand_executor require(blocking_t::possibly_t) const { return strand_executor(queue_); }
    template <typename F>
    void execute(F&& f) const {
        if (never_) {
            queue_->add(std::forward<F>(f), boost::asio::require(queue_->io(), blocking_t::never));
        } else if (queue_->runs_here()) {
            std::decay_t<F>(std::forward<F>(f))();
        } else {
            queue_->add(std::forward<F>(f), queue_->io());
        }
    }
    /// The same in a handler of the strand's own executor.
    template <typename F>
    void enter(F f) const {
        queue_->enter(std::move(f));
    }

    bool operator==(const strand_executor&) const noexcept = default;

private:
    std::shared_ptr<strand_queue> queue_;
    bool never_ = false; // inside the call
};

/// The base of an operation `Derived`, which its steps keep alive.
template <typename Derived>
class procedure : public std::enable_shared_from_this<Derived> {
protected:
    /// Has the caller's cancellation cancel the current step, and the steps run on `strand`, if
    /// `done` has a slot. Called before the first. The caller's signal may outlive the context.
    template <typename Caller>
    void cancel_with(
        Caller& done,
        const strand_executor& strand,
        boost::asio::cancellation_type accepted = boost::asio::cancellation_type::terminal
                                                  | boost::asio::cancellation_type::partial) {
        auto slot = done.slot();
        cancellable_ = slot.is_connected();
        if (!cancellable_) {
            return;
        }
        strand_ = strand;
        slot.assign(
            [accepted, owner = this->weak_from_this()](boost::asio::cancellation_type type) {
                const std::shared_ptr<Derived> me = owner.lock();
                if (me && (type & accepted) != boost::asio::cancellation_type::none) {
                    boost::asio::post(me->strand_, [me] {
                        me->cancelled_ = true;
                        me->cancel_step();
                    });
                }
            });
    }

    /// A handler that calls `f(derived, results...)`, on the manager's executor.
    template <typename F>
    struct next {
        using allocator_type = boost::asio::recycling_allocator<void>;

        allocator_type get_allocator() const noexcept { return {}; }
        diagnostics_sink get_diagnostics_sink() const noexcept { return sink; }

        template <typename... Results>
        void operator()(Results... results) {
            std::invoke(f, *self, std::move(results)...);
        }

        std::shared_ptr<Derived> self;
        F f;
        diagnostics_sink sink = {};
    };

    /// The same on the strand, with a slot.
    template <typename F>
    struct cancellable : next<F> {
        using executor_type = strand_executor;
        using cancellation_slot_type = boost::asio::cancellation_slot;

        executor_type get_executor() const noexcept { return this->self->strand_; }
        cancellation_slot_type get_cancellation_slot() const noexcept {
            return this->self->step_.slot();
        }
    };

    /// Starts a step: `start(handler)` begins an operation, whose end calls `f(derived,
    /// results...)`. It is cancelled together with the whole.
    template <typename Start, typename F>
    void step(Start start, F f, diagnostics_sink sink = {}) {
        if (cancellable_) {
            start(cancellable<F>{{this->shared_from_this(), f, sink}});
        } else {
            start(next<F>{this->shared_from_this(), f, sink});
        }
    }

    /// `Derived` may have more to cancel. On the strand.
    void cancel_step() { step_.emit(boost::asio::cancellation_type::terminal); }

    strand_executor strand_;                // of steps that can be cancelled
    boost::asio::cancellation_signal step_; // cancels the current step
    bool cancellable_ = false;
    bool cancelled_ = false;
};

}}} // namespace redlock::REDLOCK_ABI::detail
