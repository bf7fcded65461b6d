// A hash that is the same in every process, for decisions on which processes agree without
// communication. Not for secrets. And random bytes as text, so that a token can be passed to a
// script or a person.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace redlock::core {

/// FNV-1a, 64 bits (Fowler, Noll, Vo). `state`: the hash of the text before `text`.
constexpr std::uint64_t
hash_of(std::string_view text, std::uint64_t state = 0xcbf29ce484222325U) noexcept {
    for (const char c : text) {
        state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    }
    return state;
}

/// A quicker one, of the key of a lock: eight bytes at a time.
inline std::uint64_t hash_of_key(std::string_view key) noexcept {
    std::uint64_t state = key.size();
    while (!key.empty()) {
        const std::size_t size = std::min(key.size(), sizeof(std::uint64_t));
        std::uint64_t word = 0;
        if constexpr (std::endian::native == std::endian::little) {
            std::memcpy(&word, key.data(), size);
        } else {
            for (std::size_t i = 0; i < size; ++i) {
                word |= std::uint64_t{static_cast<unsigned char>(key[i])} << (8 * i);
            }
        }
        state = (state ^ word) * 0x9e3779b97f4a7c15U;
        state ^= state >> 32U;
        key.remove_prefix(size);
    }
    return state;
}

/// Spreads differences of a few bits over all bits (the finalizer of splitmix64). FNV alone does
/// not mix high bits into low ones: of two master names that differ only in the last byte, the same
/// one would nearly always win.
constexpr std::uint64_t mixed(std::uint64_t z) noexcept {
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
}

/// Distinguishes tokens without revealing them: the digest has 8 of the 20 bytes of information.
inline std::string digest_of(std::string_view token) {
    std::array<char, 16> digits{};
    char* const end =
        std::to_chars(digits.data(), digits.data() + digits.size(), hash_of(token), 16).ptr;
    const auto length = static_cast<std::size_t>(end - digits.data());
    return std::string(digits.size() - length, '0').append(digits.data(), length);
}

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
