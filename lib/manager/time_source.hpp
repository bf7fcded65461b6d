// The clock of a manager and of its locks: the system's, or in the testing kit a value that a test
// sets.

#pragma once

#include <redlock/clock.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

class time_source {
public:
    /// The system's clock.
    time_source() noexcept = default;
    /// The time in `moved`. Shared, because a handle may outlive its manager.
    explicit time_source(std::shared_ptr<const std::atomic<time_point>> moved) noexcept
        : moved_(std::move(moved)) {}

    time_point now() const noexcept {
        return moved_ ? moved_->load(std::memory_order_relaxed) : clock::now();
    }

private:
    std::shared_ptr<const std::atomic<time_point>> moved_;
};

}}} // namespace redlock::REDLOCK_ABI::detail
