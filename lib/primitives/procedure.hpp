// An operation of several asynchronous steps. They run on one strand, so that they are cancelled
// where they run.

#pragma once

#include "manager/completion.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <memory>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// The base of an operation `Derived`, which its steps keep alive.
template <typename Derived>
class procedure : public std::enable_shared_from_this<Derived> {
public:
    /// Has `slot`, that of the caller's handler, cancel the current step.
    void cancel_by(boost::asio::cancellation_slot slot, boost::asio::cancellation_type accepted) {
        if (!slot.is_connected()) {
            return;
        }
        slot.assign([weak = this->weak_from_this(), accepted](boost::asio::cancellation_type type) {
            const auto self = weak.lock();
            if (self && (type & accepted) != boost::asio::cancellation_type::none) {
                boost::asio::post(self->strand_, [self] {
                    self->cancelled_ = true;
                    self->step_.emit(boost::asio::cancellation_type::terminal);
                });
            }
        });
    }

protected:
    explicit procedure(const home& io) : io_(io), strand_(boost::asio::make_strand(io.executor)) {}

    /// Returns a handler that calls `f(derived, results...)` on the strand.
    template <typename F>
    auto on_strand(F f) {
        return boost::asio::bind_executor(
            strand_, [self = this->shared_from_this(), f](auto... results) {
                f(*self, std::move(results)...);
            });
    }
    /// The same for a step that is cancelled together with the whole.
    template <typename F>
    auto step(F f) {
        return boost::asio::bind_cancellation_slot(step_.slot(), on_strand(f));
    }

    const home io_;
    const boost::asio::strand<boost::asio::any_io_executor> strand_;
    boost::asio::cancellation_signal step_; // cancels the current step
    bool cancelled_ = false;
};

}}} // namespace redlock::REDLOCK_ABI::detail
