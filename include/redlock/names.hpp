// Names of enumerators.

#pragma once

#include <redlock/version.hpp>

#include <cstddef>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI {

namespace detail {

/// The names of the enumerators of an enumeration, in their order from 0 on, with spaces between.
template <typename Enum>
inline constexpr std::string_view names{};

} // namespace detail

/// Returns the name of an enumerator: "timed_out" for `vote::timed_out`. For every enumeration of
/// this library whose values it returns or reports. The text has static lifetime.
template <typename Enum>
    requires(!detail::names<Enum>.empty())
constexpr std::string_view to_string(Enum value) noexcept {
    std::string_view rest = detail::names<Enum>;
    for (auto i = static_cast<std::size_t>(value); i > 0; --i) {
        const std::size_t space = rest.find(' ');
        if (space == std::string_view::npos) {
            return "unknown"; // a cast has made it
        }
        rest.remove_prefix(space + 1);
    }
    return rest.substr(0, rest.find(' '));
}

}} // namespace redlock::REDLOCK_ABI
