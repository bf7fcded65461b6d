// The Lua that creates a key that a lease has lost on a master: the second step of an extension,
// sent only after the result of the first one is known (extension.hpp). KEYS and ARGV are
// those of the form's extension without the channel. For guarded_heal: KEYS lock, fence, record;
// ARGV as all_extend.
//
// Reply {1 extended: it was not missing} | {2 healed} | {0 another owner's, PTTL} | {-1 late: not
// executed} | {-2 missing, and this master may have lost it}, with the server's clock. A heal
// without a `not after` counts as late. Everything is read before the first write, so that a key of
// another type leaves no partial heal.

#pragma once

#include "scripts.hpp"

namespace redlock::core {

/// The key of one resource. Raises the fencing counter to the token. Replies -2 even for a key that
/// is there: a stray SET may have created it after this master had lost another owner's key.
inline constexpr script guarded_heal{
    lua::clock,
    R"(if now > tonumber(ARGV[7]) then return {-1, 0, now} end
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return {0, redis.call('PTTL', KEYS[1]), now} end)",
    lua::record("KEYS[3]"),
    R"(if run ~= ARGV[5] or tonumber(born) > now or now < born + math.max(q, ARGV[6]) then
  return {-2, 0, now}
end)",
    lua::raise_counter("call"),
    R"(if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) and redis.call('PEXPIRE', KEYS[1], ARGV[2]) == 0 then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return {owner and 1 or 2, 0, now})"};

/// Several resources: all missing ones, or none. One that is another owner's prevents all.
inline constexpr script all_heal{
    lua::clock,
    R"(if now > tonumber(ARGV[7]) then return {-1, 0, now} end
local st = 1
for i = 1, #KEYS - 1, 2 do
  local owner = redis.call('GET', KEYS[i])
  if not owner then
    st = 2
  elseif owner ~= ARGV[1] then
    return {0, redis.call('PTTL', KEYS[i]), now}
  end
end
if st == 2 then)",
    lua::record("KEYS[#KEYS]"),
    R"(  if run ~= ARGV[5] or tonumber(born) > now or now < born + math.max(q, ARGV[6]) then
    return {-2, 0, now}
  end
end)",
    lua::raise_counters("call"),
    R"(for i = 1, #KEYS - 1, 2 do
  if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[2]) and redis.call('PEXPIRE', KEYS[i], ARGV[2]) == 0 then
    redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2])
  end
end
return {st, 0, now})"};

/// The entry of a reader, only where nobody else holds the lock: else {0, the remaining time}.
inline constexpr script shared_heal{
    lua::clock,
    R"(if now > tonumber(ARGV[5]) then return {-1, 0, now} end
local ms, wanted, st = math.floor(now / 1000), tonumber(ARGV[2]), 1
local owner, ends = redis.call('GET', KEYS[1]), 0
if owner and owner ~= 'readers' then return {0, redis.call('PTTL', KEYS[1]), now} end
if owner then ends = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or '0') end
if ends < ms then)",
    lua::record("KEYS[3]"),
    R"(  if run ~= ARGV[3] or tonumber(born) > now or now < born + math.max(q, ARGV[4]) then
    return {-2, 0, now}
  end
  st = 2
end
wanted = math.max(wanted, ends - ms)
redis.call('PEXPIRE', KEYS[1], math.max(wanted + 1, redis.call('PTTL', KEYS[1]))))",
    lua::add_reader,
    R"(return {st, 0, now})"};

} // namespace redlock::core
