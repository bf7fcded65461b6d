// Checks of single values, of which those of the configuration and of an acquire are made.

#pragma once

#include <redlock/config.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// What is wrong with a value; nothing if it is valid.
using wrong = std::optional<invalid_value>;

inline wrong outside(
    std::string field,
    std::chrono::milliseconds value,
    std::chrono::milliseconds low,
    std::chrono::milliseconds high) {
    if (value >= low && value <= high) {
        return std::nullopt;
    }
    return invalid_value{std::move(field), value, {}, low, high, {}};
}

/// The same for a number or, with a unit, a size.
template <std::integral Number>
wrong outside(
    std::string field,
    Number value,
    const char* unit,
    std::type_identity_t<Number> low,
    std::type_identity_t<Number> high,
    const char* rule = "") {
    if (value >= low && value <= high) {
        return std::nullopt;
    }
    const auto number = [](Number it) { return static_cast<std::int64_t>(it); };
    return invalid_value{std::move(field), number(value), unit, number(low), number(high), rule};
}

inline wrong against(std::string field, std::string value, std::string rule) {
    return invalid_value{std::move(field), std::move(value), {}, {}, {}, std::move(rule)};
}

inline validation validation_of(wrong why) {
    return why ? validation(boost::system::in_place_error, *std::move(why)) : validation();
}

}}} // namespace redlock::REDLOCK_ABI::detail
