#include "sha1.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace memory {

namespace {

void mix_block(std::array<std::uint32_t, 5>& state, const unsigned char* block) {
    std::array<std::uint32_t, 80> w{};
    for (std::size_t i = 0; i < 16; ++i) {
        for (std::size_t j = 0; j < 4; ++j) {
            w[i] = w[i] << 8U | block[4 * i + j];
        }
    }
    for (std::size_t i = 16; i < 80; ++i) {
        w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    }
    auto [a, b, c, d, e] = state;
    for (std::size_t i = 0; i < 80; ++i) {
        std::uint32_t f = 0;
        std::uint32_t k = 0;
        if (i < 20) {
            f = (b & c) | (~b & d);
            k = 0x5a827999U;
        } else if (i < 40) {
            f = b ^ c ^ d;
            k = 0x6ed9eba1U;
        } else if (i < 60) {
            f = (b & c) | (b & d) | (c & d);
            k = 0x8f1bbcdcU;
        } else {
            f = b ^ c ^ d;
            k = 0xca62c1d6U;
        }
        const std::uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = std::rotl(b, 30);
        b = a;
        a = next;
    }
    state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d, state[4] + e};
}

} // namespace

std::string sha1_hex(std::string_view text) {
    std::string padded(text);
    padded += '\x80';
    padded.append((120 - padded.size() % 64) % 64, '\0');
    const std::uint64_t bits = std::uint64_t{text.size()} * 8;
    for (unsigned shift = 64; shift > 0; shift -= 8) {
        padded += static_cast<char>(bits >> (shift - 8) & 0xffU);
    }
    std::array<std::uint32_t, 5> state{
        0x67452301U, 0xefcdab89U, 0x98badcfeU, 0x10325476U, 0xc3d2e1f0U};
    for (std::size_t at = 0; at < padded.size(); at += 64) {
        mix_block(state, reinterpret_cast<const unsigned char*>(padded.data()) + at);
    }
    std::string digits;
    for (const std::uint32_t word : state) {
        for (unsigned shift = 32; shift > 0; shift -= 4) {
            digits += "0123456789abcdef"[word >> (shift - 4) & 15U];
        }
    }
    return digits;
}

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
