// What the handles of the testing kit refer to: a master that a test disrupts.

#pragma once

#include <redlock/testing.hpp>

#include <string>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing {

struct master::server {
    virtual ~server() = default;

    virtual void kill() = 0;
    virtual void restart(bool keeps_data) = 0;
    virtual void hang() = 0;
    virtual void resume() = 0;
    virtual void cut() = 0;
    virtual std::string command(const std::vector<std::string>& words) = 0;
};

}}} // namespace redlock::REDLOCK_ABI::testing
