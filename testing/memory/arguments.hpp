// Parses the arguments of commands as a Redis server does.

#pragma once

#include <redlock/version.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace memory {

inline constexpr std::string_view not_integer = "ERR value is not an integer or out of range";

inline std::optional<std::int64_t> integer_in(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool exact = error == std::errc() && end == text.data() + text.size() && !text.empty();
    const bool canonical = exact && std::to_string(value) == text;
    return canonical ? std::optional(value) : std::nullopt;
}

inline bool same(std::string_view text, std::string_view upper) {
    return std::ranges::equal(text, upper, [](char a, char b) {
        return std::toupper(static_cast<unsigned char>(a)) == b;
    });
}

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
