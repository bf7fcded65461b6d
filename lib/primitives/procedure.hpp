// Operations of several asynchronous steps. The steps run on a strand, so that they are cancelled
// where they run.

#pragma once

#include <redlock/lock_manager.hpp>

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/strand.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// A caller's handler. While it waits, its executor does not run out of work.
template <typename... Results>
class caller {
public:
    caller(
        boost::asio::any_completion_handler<void(Results...)>&& done,
        const boost::asio::any_io_executor& io)
        : done_(std::move(done)),
          executor_(boost::asio::prefer(
              boost::asio::get_associated_executor(done_, io),
              boost::asio::execution::outstanding_work_t::tracked)) {}

    /// Has the caller's cancellation call `f(owner)` on `strand`, if there still is an owner.
    template <typename Strand, typename Owner, typename F>
    void on_cancel(
        const Strand& strand,
        const std::weak_ptr<Owner>& owner,
        F f,
        boost::asio::cancellation_type accepted = boost::asio::cancellation_type::terminal
                                                  | boost::asio::cancellation_type::partial) {
        auto slot = boost::asio::get_associated_cancellation_slot(done_);
        if (slot.is_connected()) {
            slot.assign([=](boost::asio::cancellation_type type) {
                const auto self = owner.lock();
                if (self && (type & accepted) != boost::asio::cancellation_type::none) {
                    boost::asio::post(strand, [self, f] { f(*self); });
                }
            });
        }
    }

    /// Posts the handler via `io`: a dispatch could run it inline. A cancellation slot is not
    /// thread-safe, so it is cleared where the handler runs.
    void operator()(const boost::asio::any_io_executor& io, Results... results) && {
        auto call = [done = std::move(done_), ... results = std::move(results)]() mutable {
            boost::asio::get_associated_cancellation_slot(done).clear();
            std::move(done)(std::move(results)...);
        };
        boost::asio::post(io, boost::asio::bind_executor(std::move(executor_), std::move(call)));
    }

private:
    boost::asio::any_completion_handler<void(Results...)> done_;
    boost::asio::any_completion_executor executor_;
};

/// The base of an operation `Derived`, which its steps keep alive.
template <typename Derived>
class procedure : public std::enable_shared_from_this<Derived> {
protected:
    explicit procedure(const boost::asio::any_io_executor& io)
        : io_(io),
          strand_(boost::asio::make_strand(io)) {}

    /// What a cancellation of the whole does: cancels the current step.
    static void cancel(procedure& me) {
        me.cancelled_ = true;
        me.step_.emit(boost::asio::cancellation_type::terminal);
    }

    /// Returns a handler that calls `f(derived, results...)` on the strand.
    template <typename F>
    auto on_strand(F f) {
        return boost::asio::bind_executor(
            strand_, [self = this->shared_from_this(), f](auto... results) {
                std::invoke(f, *self, std::move(results)...);
            });
    }
    /// The same for a step that is cancelled together with the whole.
    template <typename F>
    auto step(F f) {
        return boost::asio::bind_cancellation_slot(step_.slot(), on_strand(f));
    }

    const boost::asio::any_io_executor io_;
    const boost::asio::strand<boost::asio::any_io_executor> strand_;
    boost::asio::cancellation_signal step_; // cancels the current step
    bool cancelled_ = false;
};

}}} // namespace redlock::REDLOCK_ABI::detail
