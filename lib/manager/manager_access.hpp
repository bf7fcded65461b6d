// Makes a manager of an implementation that the testing kit has made.

#pragma once

#include "manager_impl.hpp"

#include <redlock/lock_manager.hpp>

#include <memory>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

struct manager_access {
    static lock_manager make(std::shared_ptr<manager_impl> impl) {
        return lock_manager(std::move(impl));
    }
};

}}} // namespace redlock::REDLOCK_ABI::detail
