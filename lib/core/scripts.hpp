// The Lua of the plain protocol, and that of slots. `printf %s 'TEXT' | sha1sum` prints the digest
// of a script.

#pragma once

#include "sha1.hpp"

#include <string_view>

namespace redlock::core {

struct script {
    constexpr explicit script(std::string_view lua) noexcept : text(lua), sha1(lua) {}

    std::string_view text;
    sha1_digest sha1;
};

/// KEYS[1] the lock, ARGV[1] the token, ARGV[2] the channel for the release notification, optional.
/// (The message is the first 16 characters of the token.) Reply 1 removed, 2 removed but PUBLISH
/// was refused, so that no waiter is notified, n + 2 removed and n subscribers were notified, 0
/// another owner's, -1 missing.
inline constexpr script compare_and_delete{
    R"(local v = redis.call("GET", KEYS[1]) if v == ARGV[1] then local n = redis.call("DEL", KEYS[1]) if ARGV[2] then local r = redis.pcall("PUBLISH", ARGV[2], string.sub(v, 1, 16)) if type(r) == "table" then return 2 end if r > 0 then return r + 2 end end return n end if v then return 0 end return -1)"};

/// KEYS[1] the lock, ARGV[1] the token, ARGV[2] the ttl in ms. Reply 1 extended, 0 another owner's,
/// -1 missing. Never shortens: a late extension with a smaller ttl must not undo a newer one.
inline constexpr script compare_and_extend{
    R"(local v = redis.call("GET", KEYS[1]) if v == ARGV[1] then if redis.call("PTTL", KEYS[1]) < tonumber(ARGV[2]) then redis.call("PEXPIRE", KEYS[1], ARGV[2]) end return 1 end if v then return 0 end return -1)"};

/// The same for several locks in one call. KEYS: the locks. ARGV: the ttl in ms, the token of each.
/// The reply is that of guarded_extend.
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
  else r = type(owner) == 'table' and owner or redis.call('PTTL', lock) end
  if r then
    out[#out + 1] = i
    out[#out + 1] = type(r) == 'table' and r.err or r
  end
end
return out)"};

/// Examines the slots of a pool. It only reads, to find slots that are worth an attempt. The votes
/// of a majority decide on the owner, as for any lock. KEYS: the pool. ARGV: the first slot, their
/// number. Reply {one character for each: '1' free | '0' held, the shortest remaining lease in ms;
/// -1: no slot is held, or none expires}. A thousand slots are a thousand bytes; their owners would
/// be fifty times as many.
inline constexpr std::string_view scan_slots =
    R"(local first, free, rest = tonumber(ARGV[1]), {}, -1
for i = 1, tonumber(ARGV[2]) do
  local p = redis.call('PTTL', KEYS[1] .. ':' .. string.format('%.0f', first + i - 1))
  free[i] = p == -2 and '1' or '0'
  if p >= 0 and (rest < 0 or p < rest) then rest = p end
end
return {table.concat(free), rest})";

} // namespace redlock::core
