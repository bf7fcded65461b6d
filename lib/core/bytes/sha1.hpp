// SHA-1, by which a server identifies a script. Evaluated by the compiler, and security does not
// depend on its strength here.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redlock::core {

/// The digest of a text as 40 lowercase hexadecimal digits.
class sha1_digest {
public:
    constexpr explicit sha1_digest(std::string_view text) noexcept {
        // The text, a bit that is set, and the length in the last 8 bytes of a block of 64.
        const std::size_t padded = (text.size() + 8) / 64 * 64 + 64;
        const auto byte = [text, padded](std::size_t at) noexcept -> std::uint32_t {
            if (at < text.size()) {
                return static_cast<unsigned char>(text[at]);
            }
            const std::size_t to_end = padded - at;
            return at == text.size() ? 0x80U
                   : to_end > 8      ? 0U
                                     : std::uint64_t{text.size()} * 8 >> (8 * (to_end - 1)) & 0xffU;
        };
        std::uint32_t state[] = {0x67452301U, 0xefcdab89U, 0x98badcfeU, 0x10325476U, 0xc3d2e1f0U};
        for (std::size_t at = 0; at < padded; at += 64) {
            std::uint32_t w[80] = {};
            for (std::size_t i = 0; i < 64; ++i) {
                w[i / 4] = w[i / 4] << 8U | byte(at + i);
            }
            mix(state, w);
        }
        for (std::size_t i = 0; i < digits_.size(); ++i) {
            digits_[i] = "0123456789abcdef"[state[i / 8] >> (28 - 4 * (i % 8)) & 15U];
        }
    }

    constexpr operator std::string_view() const noexcept { // NOLINT(google-explicit-constructor)
        return {digits_.data(), digits_.size()};
    }
    friend constexpr bool operator==(const sha1_digest& one, std::string_view other) noexcept {
        return std::string_view(one) == other;
    }

private:
    static constexpr void mix(std::uint32_t (&state)[5], std::uint32_t (&w)[80]) noexcept {
        auto [a, b, c, d, e] = state;
        for (std::size_t i = 0; i < 80; ++i) {
            if (i >= 16) {
                w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
            }
            const std::uint32_t f = i < 20   ? (d ^ (b & (c ^ d))) + 0x5a827999U
                                    : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1U
                                    : i < 60 ? ((b & c) | (d & (b | c))) + 0x8f1bbcdcU
                                             : (b ^ c ^ d) + 0xca62c1d6U;
            const std::uint32_t next = std::rotl(a, 5) + f + e + w[i];
            e = d;
            d = c;
            c = std::rotl(b, 30);
            b = a;
            a = next;
        }
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
        state[4] += e;
    }

    std::array<char, 40> digits_{};
};

static_assert(sha1_digest("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d");

} // namespace redlock::core
