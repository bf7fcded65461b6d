// Random bytes as text, so that a token can be passed to a script or a person.

#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

namespace redlock::core {

// The two digits of each byte.
inline constexpr auto hex_digits = [] {
    constexpr std::string_view digits = "0123456789abcdef";
    std::array<std::array<char, 2>, 256> pairs{};
    for (std::size_t byte = 0; byte < pairs.size(); ++byte) {
        pairs[byte] = {digits[byte >> 4U], digits[byte & 15U]};
    }
    return pairs;
}();

/// Writes two digits for each byte.
inline void write_hex(std::span<const unsigned char> bytes, std::span<char> out) noexcept {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::memcpy(&out[2 * i], hex_digits[bytes[i]].data(), 2);
    }
}

} // namespace redlock::core
