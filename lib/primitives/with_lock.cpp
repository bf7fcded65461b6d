#include "procedure.hpp"

#include <redlock/with_lock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

namespace asio = boost::asio;

namespace {

class scope;

// Runs the work of one scope after the other, in a coroutine and on a strand that cost more to make
// than all the rest of a scope. Belongs to the scope whose work is next, or to `idle_drivers`.
struct driver {
    explicit driver(const asio::any_io_executor& io) : strand(strand_executor::make(io)) {}

    const strand_executor strand;
    asio::cancellation_signal stop; // cancels the work
    // The coroutine while it waits for a scope, once it was spawned. (Boost 1.81 cannot assign
    // handlers.)
    std::optional<asio::any_completion_handler<void(std::shared_ptr<scope>)>> waiting;
};

// The drivers without a scope. They belong to their manager, so the coroutines are destroyed with
// it, and to its scopes.
class idle_drivers {
public:
    explicit idle_drivers(const asio::any_io_executor& executor) : io(executor), fallback(io) {}

    std::unique_ptr<driver> take() {
        {
            const std::lock_guard lock(mutex_);
            if (!idle_.empty()) {
                std::unique_ptr<driver> last = std::move(idle_.back());
                idle_.pop_back();
                return last;
            }
        }
        return std::make_unique<driver>(io);
    }

    void keep(std::unique_ptr<driver> one) {
        const std::lock_guard lock(mutex_);
        if (idle_.size() < limit) {
            idle_.push_back(std::move(one));
        }
    }

    const asio::any_io_executor io;
    const asio::any_completion_executor fallback; // of handlers without an executor

private:
    static constexpr std::size_t limit = 64;

    std::mutex mutex_;
    std::vector<std::unique_ptr<driver>> idle_;
};

// One scope: acquire, then the work while a loss is listened for, then release. The work runs on
// the strand of a driver, and so does all that may happen at the same time: its end and a loss. The
// steps before and after it need no strand unless the caller can cancel them.
class scope final : public procedure<scope>, public loss_listener {
    friend procedure;

public:
    scope(
        std::shared_ptr<idle_drivers> drivers,
        locked_work work,
        diagnostics* out,
        asio::any_completion_handler<void(std::exception_ptr)> done)
        : drivers_(std::move(drivers)),
          work_(std::move(work)),
          done_(std::move(done), drivers_->fallback),
          votes_{out != nullptr ? out : &why_, out == nullptr} {}

    void start(lock_manager& manager, target&& wanted, const acquire_options& options) {
        if (done_.slot().is_connected()) {
            cancel_with(done_, take_driver());
        }
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
            cancel_step();
        });
    }

private:
    const strand_executor& take_driver() {
        driver_ = drivers_->take();
        return strand_ = driver_->strand;
    }

    void acquired(error_code error, lock held) {
        if (error) {
            if (driver_) {
                drivers_->keep(std::move(driver_));
            }
            finish(explained(error, *votes_.out));
            return;
        }
        lock_ = std::move(held);
        if (!driver_) {
            take_driver();
        }
        if (driver_->waiting) {
            auto resume = std::move(*driver_->waiting);
            driver_->waiting.reset();
            strand_.enter([resume = std::move(resume), self = shared_from_this()]() mutable {
                std::move(resume)(std::move(self));
            });
            return;
        }
        asio::co_spawn(
            strand_,
            drive(shared_from_this()),
            asio::bind_cancellation_slot(driver_->stop.slot(), [](std::exception_ptr thrown) {
                if (thrown) { // out of memory
                    std::rethrow_exception(std::move(thrown));
                }
            }));
    }

    // The coroutine of a driver. While it waits nothing in it owns the driver, which owns it.
    static asio::awaitable<void> drive(std::shared_ptr<scope> current) {
        for (;;) {
            std::exception_ptr thrown;
            try {
                listen(current->lock_, current); // on the strand, where a loss is heard
                if (current->cancelled_) {       // too late for the acquire to notice
                    throw boost::system::system_error(asio::error::operation_aborted);
                }
                co_await current->work_(current->lock_);
            } catch (...) {
                thrown = std::current_exception();
            }
            current->worked(std::move(thrown)); // the lock is released where the work ends
            std::unique_ptr<driver> mine = std::move(current->driver_);
            std::shared_ptr<idle_drivers> drivers = std::move(current->drivers_);
            current.reset();
            co_await asio::this_coro::throw_if_cancelled(false);
            const auto wait = [&mine, &drivers](auto handler) {
                const std::shared_ptr<idle_drivers> all = std::move(drivers);
                mine->waiting.emplace(std::move(handler));
                all->keep(std::move(mine));
            };
            current =
                co_await asio::async_initiate<const asio::deferred_t, void(std::shared_ptr<scope>)>(
                    wait, asio::deferred);
            // What the last work did to it, or a loss.
            co_await asio::this_coro::reset_cancellation_state();
            co_await asio::this_coro::throw_if_cancelled(true);
        }
    }

    void worked(std::exception_ptr thrown) {
        result_ = std::move(thrown);
        work_ = {};
        if ((lost_ || !lock_.held())
            && (!result_ || code_of(result_) == asio::error::operation_aborted)) {
            if (!lost_) {
                why_.message = "lost: when the work returned, it had released its lock or moved it "
                               "away, or the lease was over";
            }
            result_ = explained(errc::lost, std::move(why_));
        }
        if (!lock_.valid()) { // the work has moved it away
            std::move(done_)(drivers_->io, std::move(result_));
            return;
        }
        const auto released = [](scope& me, error_code, release_result) {
            me.finish(std::move(me.result_));
        };
        lock_.async_release(next<decltype(released)>{shared_from_this(), released});
    }

    // Always in a handler, so the caller's may be called inside.
    void finish(std::exception_ptr result) { std::move(done_).dispatch(std::move(result)); }

    // On the strand.
    void cancel_step() {
        step_.emit(asio::cancellation_type::terminal);
        if (driver_) {
            driver_->stop.emit(asio::cancellation_type::terminal);
        }
    }

    std::shared_ptr<idle_drivers> drivers_;
    std::unique_ptr<driver> driver_; // until the work ends
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
    constexpr auto make = [](const asio::any_io_executor& io) -> std::shared_ptr<void> {
        return std::make_shared<idle_drivers>(io);
    };
    const auto begun = std::make_shared<scope>(
        std::static_pointer_cast<idle_drivers>(manager.common(make)),
        std::move(work),
        sink.on({}),
        std::move(done));
    begun->start(manager, std::move(wanted), options);
}

}}} // namespace redlock::REDLOCK_ABI::detail
