// The checks of the arguments of an acquire (`lock_request`). The ttl of an extension is checked in
// the same way.

#pragma once

#include "core/bytes/form.hpp"
#include "invalid_value.hpp"

#include <redlock/lock_manager.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// Maximum number of resources, or of slots, of one acquire.
inline constexpr std::size_t resources_max = 128;

/// Maximum size of a pool of slots.
inline constexpr std::size_t slot_pool_size_max = 65'536;

/// Reads what a target was made from.
struct target_access {
    static auto& what(auto& from) noexcept { return from.what_; }
};

/// The arguments of an acquire, and what their check makes of the names.
struct checked_request : lock_request {
    explicit checked_request(lock_request&& wanted) : lock_request(std::move(wanted)) {}

    /// Checks the arguments, replaces the default ttl by its value, and sets what is below.
    /// `longest`: the largest ttl.
    validation check(const config& rules, std::chrono::milliseconds longest);

    std::string resource;               ///< readable name of the lock; of slots: the pool
    std::optional<free_slots> pool;     ///< if it wants slots
    std::vector<std::string> resources; ///< if there are several: sorted, none twice
    bool default_ttl = false;           ///< a quorum with a smaller `max_ttl` may shorten it
};

/// Returns the form of the lock. Only after the check.
core::lock_form form_of(const checked_request& wanted) noexcept;

/// Returns the lease that `ttl` means if `longest` is the largest.
std::chrono::milliseconds
effective_ttl(std::chrono::milliseconds ttl, std::chrono::milliseconds longest);

/// Checks the ttl of an extension as `check` does that of an acquire.
validation check_extension(
    std::chrono::milliseconds ttl, const config& config, std::chrono::milliseconds longest);

/// Refuses readers and writers where they make no sense: "mode is 'shared'; allowed: 'exclusive',
/// with `with`".
validation exclusive_only(const acquire_options& options, const char* with);

/// Checks what a query asks for: not several resources.
validation check_query(const target& asked, const config& rules);

/// Returns the readable name of a lock on slots: "pool:slot:1,2".
std::string name_of_slots(std::string_view pool, const std::vector<std::uint32_t>& numbers);

}}} // namespace redlock::REDLOCK_ABI::detail
