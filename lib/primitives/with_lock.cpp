#include "procedure.hpp"

#include <redlock/with_lock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

namespace asio = boost::asio;

namespace {

// One scope: acquire, then the work while a loss is listened for, then release. The work runs on
// the strand, and so does all that may happen at the same time: its end and a loss. The steps
// before and after it need no strand unless the caller can cancel them.
class scope final : public procedure<scope>, public loss_listener {
    friend procedure;

public:
    scope(
        const asio::any_io_executor& io,
        locked_work work,
        diagnostics* out,
        asio::any_completion_handler<void(std::exception_ptr)> done)
        : procedure(io),
          work_(std::move(work)),
          done_(std::move(done), io_),
          votes_{out != nullptr ? out : &why_, out == nullptr} {}

    void start(lock_manager& manager, target wanted, acquire_options options) {
        cancel_with(done_);
        step(
            [&](auto handler) {
                manager.async_acquire(std::move(wanted), options, std::move(handler));
            },
            &scope::acquired,
            votes_);
    }

    void lost(std::shared_ptr<loss_listener> self, const diagnostics& why) override {
        asio::post(strand_, [this, self = std::move(self), why] {
            lost_ = true;
            why_ = why;
            step_.emit(asio::cancellation_type::terminal);
        });
    }

private:
    void acquired(error_code error, lock held) {
        if (error) {
            finish(explained(error, *votes_.out));
            return;
        }
        lock_ = std::move(held);
        if (cancelled_) { // too late for the acquire to notice
            worked(std::make_exception_ptr(
                boost::system::system_error(asio::error::operation_aborted)));
            return;
        }
        asio::co_spawn(
            strand_,
            [this, self = shared_from_this()] {
                listen(lock_, self); // on the strand, where a loss is heard
                return run();
            },
            asio::bind_cancellation_slot(
                step_.slot(), [self = shared_from_this()](std::exception_ptr thrown) {
                    if (thrown && self->work_) { // cancelled before it began
                        self->worked(std::move(thrown));
                    } else if (thrown) { // by the caller's handler
                        std::rethrow_exception(std::move(thrown));
                    }
                }));
    }

    // The lock is released where the work ends, not a turn later in the handler of the coroutine.
    asio::awaitable<void> run() {
        std::exception_ptr thrown;
        try {
            co_await work_(lock_);
        } catch (...) {
            thrown = std::current_exception();
        }
        worked(std::move(thrown));
        // `co_spawn` posts the end of a coroutine that has never been suspended.
        co_await asio::this_coro::throw_if_cancelled(false);
        const auto at_once = [](auto handler) { std::move(handler)(); };
        co_await asio::async_initiate<const asio::deferred_t, void()>(at_once, asio::deferred);
    }

    void worked(std::exception_ptr thrown) {
        result_ = std::move(thrown);
        work_ = {};
        if ((lost_ || !lock_.held())
            && (!result_ || code_of(result_) == asio::error::operation_aborted)) {
            result_ = explained(errc::lost, lost_ ? why_ : diagnostics());
        }
        if (!lock_.valid()) { // the work has moved it away
            finish(std::move(result_));
            return;
        }
        const auto released = [](scope& me, error_code, release_result) {
            me.finish(std::move(me.result_));
        };
        lock_.async_release(next<decltype(released)>{shared_from_this(), released});
    }

    // Always in a handler, so the caller's may be called inside.
    void finish(std::exception_ptr result) { std::move(done_).dispatch(std::move(result)); }

    locked_work work_;
    caller<std::exception_ptr> done_;
    diagnostics why_;              // of a failure, of the acquire or of a loss
    const diagnostics_sink votes_; // of the acquire
    lock lock_;
    bool lost_ = false;
    std::exception_ptr result_;
};

} // namespace

void start_with_lock(
    shared_manager manager,
    target wanted,
    acquire_options options,
    locked_work work,
    diagnostics_sink sink,
    asio::any_completion_handler<void(std::exception_ptr)> done) {
    const auto begun = std::make_shared<scope>(
        manager.get_executor(), std::move(work), sink.on({}), std::move(done));
    begun->start(manager, std::move(wanted), options);
}

}}} // namespace redlock::REDLOCK_ABI::detail
