// Access to the implementation of a manager, for the testing kit and the command line.

#pragma once

#include <redlock/lock_manager.hpp>

#include <memory>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

struct manager_access {
    static lock_manager make(std::shared_ptr<manager_impl> impl) {
        return lock_manager(std::move(impl));
    }
    static manager_impl& impl_of(const lock_manager& manager) noexcept { return *manager.impl_; }
};

}}} // namespace redlock::REDLOCK_ABI::detail
