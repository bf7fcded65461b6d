// What became of an operation that a test has begun: how often its handler ran and with what. The
// handler only takes notes; the test's thread looks at them and asserts.
#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/error.hpp>
#include <redlock/lock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

namespace redlock::test {

// Must outlive the io_context on which the handler may run: `quorum` keeps it so.
template <typename... Results>
class outcome {
public:
    outcome() = default;
    outcome(const outcome&) = delete;
    outcome& operator=(const outcome&) = delete;

    // A handler that can be cancelled.
    auto handler() {
        const auto note = [this](error_code error, Results... results) {
            ++calls_;
            error_ = error;
            values_.emplace(std::move(results)...);
        };
        return boost::asio::bind_cancellation_slot(signal_.slot(), note);
    }

    void cancel(boost::asio::cancellation_type type = boost::asio::cancellation_type::terminal) {
        signal_.emit(type);
    }

    bool done() const noexcept { return calls_ > 0; }
    std::size_t calls() const noexcept { return calls_; }
    error_code error() const noexcept { return error_; }
    auto& value() { return std::get<0>(*values_); } // of an operation that gives one
    diagnostics& why() noexcept { return why_; }
    const master_vote& vote_of(std::size_t master) const { return why_.votes.at(master); }

private:
    boost::asio::cancellation_signal signal_;
    std::size_t calls_ = 0;
    error_code error_;
    std::optional<std::tuple<Results...>> values_;
    diagnostics why_;
};

using nothing = outcome<>;
using extend_outcome = outcome<extend_result>;
using acquisition = outcome<lock>;
using release_outcome = outcome<release_result>;
using loss_outcome = outcome<loss_reason>;
using query_outcome = outcome<lock_status>;

} // namespace redlock::test
