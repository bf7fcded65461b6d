// What threads of a blocking manager have its own thread do.

#pragma once

#include "waker.hpp"

#include <redlock/error.hpp>
#include <redlock/with_diagnostics.hpp>

#include <boost/asio/cancellation_signal.hpp>

#include <exception>
#include <memory>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// What a thread has the manager's thread do while it waits. In its own frame.
struct errand {
    virtual void run() noexcept = 0;

    errand* next = nullptr;

protected:
    ~errand() = default;
};

/// An operation that a thread has the manager's thread begin.
template <typename Value, typename Begin>
class operation_errand final : public errand {
public:
    operation_errand(
        waker& threads,
        const Begin& begin,
        diagnostics_sink why,
        std::shared_ptr<boost::asio::cancellation_signal> cancel)
        : begin_(begin),
          why_(why),
          cancel_(std::move(cancel)),
          over_(threads) {}

    void run() noexcept override {
        try {
            begin_(handler(*this));
            begun_ = true;
        } catch (...) {
            thrown_ = std::current_exception();
            over_.raise();
        }
    }

    bool is_over() noexcept { return over_.is_raised(); }

    error_code wait(Value& out) {
        over_.wait();
        if (thrown_) {
            std::rethrow_exception(std::move(thrown_));
        }
        out = std::move(value_);
        return error_;
    }

private:
    class handler {
    public:
        using cancellation_slot_type = boost::asio::cancellation_slot;

        explicit handler(operation_errand& of) noexcept : of_(&of) {}
        handler(handler&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
        ~handler() {
            if (of_ != nullptr && of_->begun_) {
                of_->over_.raise();
            }
        }

        cancellation_slot_type get_cancellation_slot() const noexcept {
            return of_->cancel_ ? of_->cancel_->slot() : cancellation_slot_type();
        }
        diagnostics_sink get_diagnostics_sink() const noexcept { return of_->why_; }

        void operator()(const error_code& error, Value value) {
            of_->error_ = error;
            of_->value_ = std::move(value);
            std::exchange(of_, nullptr)->over_.raise();
        }

    private:
        operation_errand* of_;
    };

    const Begin& begin_;
    const diagnostics_sink why_;
    const std::shared_ptr<boost::asio::cancellation_signal> cancel_; // null: it is not cancelled
    error_code error_ = errc::closed;                                // if the handler is destroyed
    Value value_ = {};
    bool begun_ = false;
    std::exception_ptr thrown_; // instead
    event over_;
};

}}} // namespace redlock::REDLOCK_ABI::detail
