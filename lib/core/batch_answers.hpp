// Decodes a master's reply to one call for several locks (guarded_scripts.hpp).

#pragma once

#include "answer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace redlock::core {

/// One answer for each lock of the call, in order.
class batch_answers {
public:
    batch_answers(
        const reply& got,
        command_kind kind,
        command_variant how,
        bool has_counters,
        std::size_t locks) noexcept;

    /// The part of the reply that applies to all locks. If the call was not executed, it is the
    /// reply for each lock.
    const answer& call() const noexcept { return call_; }
    bool executed() const noexcept { return executed_; }
    /// Whether the master reported, in the reply to an extension, that it may have lost locks.
    bool forgot() const noexcept { return forgot_; }
    /// The answer for the next lock, and the text of its error.
    answer next() noexcept;
    std::string_view error() const noexcept { return error_; }

private:
    bool well_formed(std::size_t locks) const noexcept;
    answer decode(const reply& one) noexcept;

    command_kind kind_;
    bool has_counters_;
    bool executed_ = false;
    bool forgot_ = false;
    std::int64_t lock_ = 0;
    std::span<const reply> rest_;
    std::string_view error_;
    answer call_;
};

} // namespace redlock::core
