// The arguments of an acquire and their check: a lock on one resource, on several, for reading or
// writing, or slots of a pool. The ttl of an extension is checked in the same way.

#pragma once

#include "core/form.hpp"

#include <redlock/config.hpp>
#include <redlock/options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

struct lock_request {
    enum class token_use : std::uint8_t {
        none,
        take,   // acquire a lock with this token
        attach, // take over a lock that was acquired elsewhere
    };

    resource_names names = std::string(); // of slots: the pool
    acquire_options options = {};
    token_use uses = token_use::none;
    std::string token = {};
    std::optional<std::size_t> pool_size = {}; // none for a lock on resources
    std::size_t wants = 1;                     // number of slots

    // Set by `check`:
    std::string resource = {};               // readable name of the lock; of slots: the pool
    std::vector<std::string> resources = {}; // if there are several: sorted, none twice

    /// Checks the arguments and replaces the default ttl by its value.
    validation check(const config& rules);
    /// Only after the check.
    core::lock_form form() const noexcept;
};

/// Returns the lease that `ttl` means under this configuration.
std::chrono::milliseconds effective_ttl(std::chrono::milliseconds ttl, const config& config);

/// Checks the ttl of an extension as `validate` checks that of an acquire.
validation validate_extension(std::chrono::milliseconds ttl, const config& config);

/// Refuses readers and writers where they make no sense: "mode is 'shared'; allowed: 'exclusive',
/// with `with`".
validation exclusive_only(const acquire_options& options, const char* with);

/// Checks the name and the size of a pool.
validation validate_pool(std::string_view pool, std::size_t size);

/// Returns the readable name of a lock on slots: "pool:slot:1,2".
std::string name_of_slots(const std::string& pool, const std::vector<std::uint32_t>& numbers);

}}} // namespace redlock::REDLOCK_ABI::detail
