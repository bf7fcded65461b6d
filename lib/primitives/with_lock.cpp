#include "manager/manager_impl.hpp"
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
        const home& io,
        locked_work work,
        diagnostics* out,
        asio::any_completion_handler<void(std::exception_ptr)> done)
        : procedure(io),
          work_(std::move(work)),
          done_(std::move(done), io_),
          out_(out) {}

    void start(manager_impl& manager, resource_names resources, acquire_options options) {
        manager.acquire(
            {.names = std::move(resources), .options = options},
            {out_ != nullptr ? out_ : &why_, out_ == nullptr},
            step([](scope& me, error_code error, lock held) {
                me.acquired(error, std::move(held));
            }));
    }

private:
    void acquired(error_code error, lock held) {
        if (error) {
            finish(explained(error, out_ != nullptr ? *out_ : std::move(why_)));
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
    completion<std::exception_ptr> done_;
    diagnostics* const out_; // of the caller, for the acquire; may be null
    diagnostics why_;        // of the acquire, if it fails
    diagnostics loss_;
    lock lock_;
    bool lost_ = false;
    std::exception_ptr result_;
};

} // namespace

void start_with_lock(
    manager_ptr manager,
    resource_names resources,
    acquire_options options,
    locked_work work,
    diagnostics_sink sink,
    asio::any_completion_handler<void(std::exception_ptr)> done) {
    const auto slot = asio::get_associated_cancellation_slot(done);
    const auto begun =
        std::make_shared<scope>(manager->io(), std::move(work), sink.on({}), std::move(done));
    begun->cancel_by(slot, with_effects);
    begun->start(*manager, std::move(resources), options);
}

}}} // namespace redlock::REDLOCK_ABI::detail
