// The Lua of the plain protocol, and that of slots. `printf %s 'TEXT' | sha1sum` prints the digest
// of a script.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace redlock::core {

/// SHA-1, by which a server identifies a script, as 40 lowercase hexadecimal digits. Evaluated by
/// the compiler, and security does not depend on its strength here.
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

/// Some lines of a script.
struct script_part {
    // NOLINTNEXTLINE(google-explicit-constructor): most parts are their text
    constexpr script_part(const char* lua) noexcept : text(lua) {}
    /// The same lines with `with` in place of each '$'.
    constexpr script_part operator()(const char* with) const noexcept {
        script_part out = *this;
        out.argument = with;
        return out;
    }

    std::string_view text;
    std::string_view argument;
};

/// A script: its parts, one after the other, and their digest. Composed by the compiler.
struct script {
    constexpr script(std::initializer_list<script_part> parts) noexcept
        : lines(composed(parts)),
          text(lines.data()),
          sha1(text) {}
    script(const script&) = delete;
    script& operator=(const script&) = delete;

    using buffer = std::array<char, 2000>;
    static constexpr buffer composed(std::initializer_list<script_part> parts) noexcept {
        buffer out{};
        std::size_t size = 0;
        for (const script_part& part : parts) {
            for (const char& c : part.text) {
                const bool stands = c == '$' && !part.argument.empty();
                for (const char each : stands ? part.argument : std::string_view(&c, 1)) {
                    out[size++] = each;
                }
            }
            out[size++] = '\n';
        }
        out[size - 1] = '\0';
        return out;
    }

    buffer lines;
    std::string_view text;
    sha1_digest sha1;
};

/// Parts that several scripts share.
namespace lua {

inline constexpr script_part clock{
    R"(local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2])"};
/// Ends a script that was executed too late.
inline constexpr script_part unless_late{
    R"(if $ ~= '0' and now > tonumber($) then return {-1, 0, now} end)"};
/// Reads the memory record (guarded_scripts.hpp).
inline constexpr script_part record{
    R"(local e = redis.pcall('GET', $)
local run, born, q = string.match(type(e) == 'string' and e or '', '^4 (%S+) %S+ (%d+) (%d+)[ /]'))"};
/// Ends an acquire in a quarantine, or if the record is that of another server.
inline constexpr script_part unless_quarantined{
    R"(if run ~= ARGV[3] or tonumber(born) > now then return {-4, tonumber(ARGV[4]), now} end
local floor = born + math.max(q, ARGV[4])
if now < floor then return {-2, floor - now, now} end)"};
/// A counter starts from the value that the client proposes to all masters, so that their counters
/// agree, or from the clock. The value must be ahead of the clock, by `clock_offset_bound` at most.
/// So it is past every counter that this master may have lost: the quarantine contains that bound
/// twice.
inline constexpr script_part first_counter{
    R"(local first, earliest = $
f = now
if tonumber(first) > now and now >= tonumber(earliest) then f = tonumber(first) end)"};
/// Raises the fencing counters to the token, and renews their expiry. The expiry comes first, as in
/// every script that keeps a lease: at `maxmemory` a server refuses a command that needs memory
/// only as the first write of a script.
inline constexpr script_part raise_counters{
    R"(if ARGV[3] ~= '0' then
  local f = {}
  for i = 2, #KEYS - 1, 2 do f[i] = tonumber(redis.call('GET', KEYS[i]) or '0') or 0 end
  for i = 2, #KEYS - 1, 2 do
    redis.call('PEXPIRE', KEYS[i], ARGV[4])
    if f[i] < tonumber(ARGV[3]) then redis.$('SET', KEYS[i], ARGV[3], 'PX', ARGV[4]) end
  end
end)"};
/// Adds a reader whose lease lasts for another `wanted` ms, where nobody else holds the lock:
/// `owner` is 'readers'; otherwise the entries from before do not count (form_scripts.hpp).
inline constexpr script_part add_reader{
    R"(if owner == 'readers' then
  redis.call('ZADD', KEYS[2], string.format('%.0f', ms + wanted), ARGV[1])
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('(%.0f', ms))
  if redis.call('PTTL', KEYS[1]) <= wanted then redis.call('PEXPIRE', KEYS[1], wanted + 1) end
else
  redis.call('SET', KEYS[1], 'readers', 'PX', wanted + 1)
  redis.call('DEL', KEYS[2])
  redis.call('ZADD', KEYS[2], string.format('%.0f', ms + wanted), ARGV[1])
end
redis.call('PEXPIRE', KEYS[2], redis.call('PTTL', KEYS[1])))"};
/// Ends the loop over the locks of a shared call: adds the exception of one.
inline constexpr script_part exception_if{
    R"(  if $ then
    out[#out + 1] = i
    out[#out + 1] = type(r) == 'table' and r.err or r
  end
end
return out)"};

} // namespace lua

/// Extends locks of the plain protocol. KEYS: the locks. ARGV: the ttl in ms, the token of each.
/// Never shortens: a late extension with a smaller ttl must not undo a newer one. The reply is that
/// of guarded_extend.
inline constexpr script compare_and_extend_each{
    R"(local out, ttl = {1, 0}, tonumber(ARGV[1])
for i, lock in ipairs(KEYS) do
  local owner, r = redis.pcall('GET', lock), nil
  if owner == ARGV[i + 1] then
    if redis.call('PTTL', lock) < ttl then
      r = redis.pcall('PEXPIRE', lock, ttl)
      if r == 1 then r = nil end
    end
  elseif not owner then r = -3
  else r = type(owner) == 'table' and owner or redis.call('PTTL', lock) end)",
    lua::exception_if("r")};

/// Examines the slots of a pool. It only reads, to find slots that are worth an attempt. The votes
/// of a majority decide on the owner, as for any lock. KEYS: the slots. Reply {one character for
/// each: '1' free | '0' held, the shortest remaining lease in ms; -1: no slot is held, or none
/// expires}. A thousand slots are a thousand bytes; their owners would be fifty times as many.
inline constexpr std::string_view scan_slots =
    R"(local free, rest = {}, -1
for i, slot in ipairs(KEYS) do
  local p = redis.call('PTTL', slot)
  free[i] = p == -2 and '1' or '0'
  if p >= 0 and (rest < 0 or p < rest) then rest = p end
end
return {table.concat(free), rest})";

} // namespace redlock::core
