// The Lua that examines the slots of a pool. It only reads, to find slots that are worth an
// attempt. The votes of a majority decide on the owner, as for any lock.

#pragma once

#include <string_view>

namespace redlock::core {

/// KEYS: the pool. ARGV: the first slot, their number. Reply {one character for each: '1' free |
/// '0' held, the shortest remaining lease in ms; -1: no slot is held, or none expires}. A thousand
/// slots are a thousand bytes; their owners would be fifty times as many.
inline constexpr std::string_view scan_slots =
    R"(local first, free, rest = tonumber(ARGV[1]), {}, -1
for i = 1, tonumber(ARGV[2]) do
  local p = redis.call('PTTL', KEYS[1] .. ':' .. string.format('%.0f', first + i - 1))
  free[i] = p == -2 and '1' or '0'
  if p >= 0 and (rest < 0 or p < rest) then rest = p end
end
return {table.concat(free), rest})";

} // namespace redlock::core
