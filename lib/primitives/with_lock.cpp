#include "procedure.hpp"

#include <redlock/with_lock.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/system/system_error.hpp>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

namespace asio = boost::asio;

namespace {

// One scope: acquire, then the work together with a watch for loss, then release.
class scope : public procedure<scope> {
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
          out_(out) {}

    void start(lock_manager& manager, target wanted, acquire_options options) {
        done_.on_cancel(strand_, weak_from_this(), &cancel);
        if (out_ == nullptr) {
            manager.async_acquire(
                std::move(wanted), options, with_diagnostics(step(&scope::acquired)));
            return;
        }
        manager.async_acquire(
            std::move(wanted),
            options,
            with_diagnostics(*out_, step([](scope& me, error_code error, lock held) {
                me.acquired(
                    error ? explained(error, *me.out_) : std::exception_ptr(), std::move(held));
            })));
    }

private:
    void acquired(std::exception_ptr error, lock held) {
        if (error) {
            finish(std::move(error));
            return;
        }
        lock_ = std::move(held);
        if (cancelled_) { // too late for the acquire to notice
            worked(std::make_exception_ptr(
                boost::system::system_error(asio::error::operation_aborted)));
            return;
        }
        lock_.async_wait_lost(
            with_diagnostics(loss_, on_strand([](scope& me, error_code failure, loss_reason) {
                                 if (!failure) {
                                     me.lost_ = true;
                                     me.step_.emit(asio::cancellation_type::terminal);
                                 }
                             })));
        asio::co_spawn(
            strand_,
            // In a coroutine of its own, so that an exception of the call itself counts as well.
            run_work(),
            step([](scope& me, std::exception_ptr thrown) { me.worked(std::move(thrown)); }));
    }

    asio::awaitable<void> run_work() { co_await work_(lock_); }

    void worked(std::exception_ptr thrown) {
        result_ = std::move(thrown);
        if ((lost_ || !lock_.held()) && (!result_ || is_abort(result_))) {
            // `loss_` is filled before the handler that sets `lost_` runs.
            result_ = explained(errc::lost, lost_ ? loss_ : diagnostics());
        }
        if (!lock_.valid()) { // the work has moved it away
            finish(std::move(result_));
            return;
        }
        lock_.async_release(on_strand(
            [](scope& me, error_code, release_result) { me.finish(std::move(me.result_)); }));
    }

    void finish(std::exception_ptr result) { std::move(done_)(io_, std::move(result)); }

    static bool is_abort(const std::exception_ptr& thrown) {
        try {
            std::rethrow_exception(thrown);
        } catch (const boost::system::system_error& error) {
            return error.code() == asio::error::operation_aborted;
        } catch (...) {
            return false;
        }
    }

    locked_work work_;
    caller<std::exception_ptr> done_;
    diagnostics* const out_; // of the caller, for the acquire; may be null
    diagnostics loss_;
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
