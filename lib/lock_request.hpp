// What a caller wants to acquire: a lock on one resource, on several, for reading or writing, or
// slots of a pool; and the check of the arguments.

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
        take,   // acquire a lock with this token
        attach, // take over a lock that was acquired elsewhere
    };

    std::string resource = {}; // name of the lock for people; of slots: the pool
    acquire_options options = {};
    token_use uses = token_use::none;
    std::string token = {};
    core::lock_form form = core::lock_form::exclusive;
    std::vector<std::string> resources = {}; // of another form: any order, duplicates allowed
    std::uint32_t slots = 0;                 // the size of the pool; 0 for a lock
    std::size_t wants = 1;                   // number of slots

    /// Checks the arguments. Returns the reason for a refusal; empty if there is none. Replaces
    /// the default ttl by its value, sorts the resources of a multi-lock, and names the lock after
    /// them.
    std::string check(const config& rules);
};

/// Returns the name of a lock on slots for people: "pool:slot:1,2".
std::string name_of_slots(const std::string& pool, const std::vector<std::uint32_t>& numbers);

}}} // namespace redlock::REDLOCK_ABI::detail
