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
#include <boost/asio/strand.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <functional>
#include <memory>
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

/// A strand as an executor that is cheap to copy: a shared pointer, which fits in an
/// `any_io_executor`, where a strand would be allocated for each conversion. It tracks no work.
class strand_executor {
public:
    using strand = boost::asio::strand<boost::asio::any_io_executor>;

    strand_executor() noexcept = default;
    explicit strand_executor(std::shared_ptr<const strand> shared, bool never = false) noexcept
        : strand_(std::move(shared)),
          never_(never) {}
    static strand_executor make(const boost::asio::any_io_executor& io) {
        return strand_executor(std::make_shared<const strand>(io));
    }

    boost::asio::execution_context& query(boost::asio::execution::context_t) const {
        return boost::asio::query(*strand_, boost::asio::execution::context);
    }
    boost::asio::execution::blocking_t query(boost::asio::execution::blocking_t) const noexcept {
        return never_
                   ? boost::asio::execution::blocking_t(boost::asio::execution::blocking_t::never)
                   : boost::asio::execution::blocking_t(
                       boost::asio::execution::blocking_t::possibly);
    }
    strand_executor require(boost::asio::execution::blocking_t::never_t) const {
        return strand_executor(strand_, true);
    }
    strand_executor require(boost::asio::execution::blocking_t::possibly_t) const {
        return strand_executor(strand_);
    }
    template <typename F>
    void execute(F&& f) const {
        if (never_) {
            boost::asio::require(*strand_, boost::asio::execution::blocking_t::never)
                .execute(std::forward<F>(f));
        } else {
            strand_->execute(std::forward<F>(f));
        }
    }

    bool operator==(const strand_executor&) const noexcept = default;

private:
    std::shared_ptr<const strand> strand_;
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
