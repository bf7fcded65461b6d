// Gives the primitives of the library and the testing kit access to the implementation of a
// manager.

#pragma once

#include "manager_impl.hpp"

#include <redlock/lock_manager.hpp>

#include <memory>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

struct manager_access {
    static const std::shared_ptr<manager_impl>& impl(const lock_manager& manager) noexcept {
        return manager.impl_;
    }
    static lock_manager make(std::shared_ptr<manager_impl> impl) {
        return lock_manager(std::move(impl));
    }
};

}}} // namespace redlock::REDLOCK_ABI::detail
