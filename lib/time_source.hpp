// Where a manager and the handles of its locks read the time: the system's clock, or, in the
// testing kit, a figure that a test moves on.

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
    /// What `moved` shows. Shared, as a handle may outlive its manager.
    explicit time_source(std::shared_ptr<const std::atomic<time_point>> moved) noexcept
        : moved_(std::move(moved)) {}

    time_point now() const noexcept {
        return moved_ ? moved_->load(std::memory_order_relaxed) : clock::now();
    }

private:
    std::shared_ptr<const std::atomic<time_point>> moved_;
};

}}} // namespace redlock::REDLOCK_ABI::detail
