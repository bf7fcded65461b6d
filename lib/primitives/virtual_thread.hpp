// In place of the thread of a blocking manager: the virtual time of the testing kit.

#pragma once

#include <redlock/version.hpp>

#include <boost/core/noncopyable.hpp>

#include <chrono>
#include <functional>
#include <optional>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

class virtual_thread : boost::noncopyable {
public:
    virtual ~virtual_thread() = default;

    /// Whether a handler is running.
    virtual bool in_handler() const noexcept = 0;
    /// Runs handlers until `over` is true, at most for `limit`; without one, for an hour. Returns
    /// the last result of `over`.
    virtual bool run_until(
        const std::function<bool()>& over, std::optional<std::chrono::milliseconds> limit) = 0;
};

}}} // namespace redlock::REDLOCK_ABI::detail
