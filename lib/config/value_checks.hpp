// Checks of single values, of which those of the configuration and of an acquire are made.

#pragma once

#include "invalid_value.hpp"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

template <typename Value>
validation outside(
    std::string_view field,
    Value value,
    std::type_identity_t<Value> low,
    std::type_identity_t<Value> high) {
    if (value >= low && value <= high) {
        return {};
    }
    return invalid_value{std::string(field), value, {}, low, high, {}};
}

/// The same for an integer or, with a unit, a size.
template <std::integral Number>
validation outside(
    std::string_view field,
    Number value,
    const char* unit,
    std::type_identity_t<Number> low,
    std::type_identity_t<Number> high,
    const char* rule = "") {
    if (value >= low && value <= high) {
        return {};
    }
    const auto number = [](Number it) { return static_cast<std::int64_t>(it); };
    return invalid_value{std::string(field), number(value), unit, number(low), number(high), rule};
}

/// A cast can make a value that the enumeration does not have.
template <typename Enum>
validation beyond(std::string_view field, Enum value, Enum last) {
    return outside(
        field,
        static_cast<int>(value),
        "",
        0,
        static_cast<int>(last),
        "the values of the enumeration");
}

inline validation against(std::string field, std::string value, std::string rule) {
    return invalid_value{std::move(field), std::move(value), {}, {}, {}, std::move(rule)};
}

inline validation
require(bool valid, std::string_view field, const std::string& value, const char* rule) {
    return valid ? validation() : against(std::string(field), value, rule);
}

/// For texts that become C strings: only the part before a NUL character would be used.
inline validation without_nul(std::string_view field, const std::string& value) {
    const bool valid = value.find('\0') == std::string::npos;
    return require(valid, field, value, "write it without NUL characters");
}

inline validation first_error(std::initializer_list<validation> of) {
    const auto* const found = std::ranges::find_if(of, &validation::has_error);
    return found == of.end() ? validation() : *found;
}

/// Allowed characters of the name of a master.
inline constexpr std::string_view name_letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

}}} // namespace redlock::REDLOCK_ABI::detail
