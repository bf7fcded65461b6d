// What a caller wants to acquire: a lock of one resource, of several, one to read or to write, or
// slots of a pool. And whether it may.

#pragma once

#include "core/form.hpp"

#include <redlock/config.hpp>
#include <redlock/options.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

struct lock_request {
    enum class token_use : std::uint8_t {
        none,
        take,   // the lock is taken with this token
        attach, // the lock was taken elsewhere with this token
    };

    std::string resource = {}; // names the lock to people; of slots, the pool
    acquire_options options = {};
    token_use uses = token_use::none;
    std::string token = {};
    core::lock_form form = core::lock_form::exclusive;
    std::vector<std::string> resources = {}; // of another form, in any order, and twice is once
    std::uint32_t slots = 0;                 // the size of the pool; 0 for a lock
    std::size_t wants = 1;                   // of the slots

    /// Checks the arguments. Returns the reason for a refusal, which is empty where there is none.
    /// Puts the resources of another form into order, and names the lock after them.
    std::string check(const config& rules);
};

/// The resource of a lock that is slots of a pool, for people: "pool:slot:1,2".
std::string name_of_slots(const std::string& pool, const std::vector<std::uint32_t>& numbers);

}}} // namespace redlock::REDLOCK_ABI::detail
