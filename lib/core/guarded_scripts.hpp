// The Lua of the guarded protocol, as it was model-checked: change nothing without checking again
// (test/model, test/simulation). Each answers {status, value, the server's clock in us}; the clock
// is 0 where it was not read.
//
// A master's record (`epoch`) is a hash: `run`, the server's run id; `born`, the moment its memory
// may have begun; `q`, the longest quarantine that any client asked for; `dur`, whether it fsyncs
// every write. The digests are checked by a unit test, and by the server at each EVALSHA.

#pragma once

#include "scripts.hpp"

namespace redlock::core {

/// KEYS: epoch. ARGV: run id, quarantine us, start us, fsyncs every write (0 | 1). `start` is when
/// the process began, on the server's clock; 0 where that cannot be told. A server without a record
/// remembers since then, unless somebody has emptied or replaced its data: its counters of commands
/// tell, read here so that nothing can happen in between. (Before Redis 7 `config` has one counter,
/// and may have reset the others.)
/// Answers {1 if its memory begins now | 0, rest of the quarantine in us, clock}.
inline constexpr script guarded_handshake{
    R"(local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local e = redis.call('HMGET', KEYS[1], 'run', 'born', 'q', 'dur')
local q = math.max(tonumber(ARGV[2]), tonumber(e[3] or '0'))
local born, fresh = tonumber(e[2] or '0'), 0
if e[1] ~= ARGV[1] then
  if not (e[1] and e[4] == '1' and ARGV[4] == '1') then
    born, fresh = tonumber(ARGV[3]), 1
    if born == 0 or born > now then born = now end
    local stats = redis.call('INFO', 'commandstats')
    local function called(name) return string.find(stats, 'cmdstat_' .. name .. ':', 1, true) end
    if not called('info') or called('flushall') or called('flushdb') or called('swapdb') or called('restore')
        or called('debug') or called('config') or called('config|resetstat') then born = now end
  end
elseif born > now then born = now end
redis.call('HSET', KEYS[1], 'run', ARGV[1], 'born', string.format('%.0f', born),
           'q', string.format('%.0f', q), 'dur', ARGV[4])
return {fresh, math.max(0, born + q - now), now})",
    "0eed3d44330ccb3a4b081fd25aaac64abe25ad48"};

/// KEYS: lock, fence, epoch. ARGV: token, ttl ms, run id, quarantine us, not after us, fence ttl ms
/// (0: without fencing).
/// Answers {1 granted, counter} | {0 busy, PTTL of the holder, or -1} | {-1 late: not executed} |
/// {-2 quarantined, rest in us}. Whoever finds that the server restarted, was flushed, had its data
/// replaced or its clock set back writes that down, for all clients.
inline constexpr script guarded_acquire{
    R"(local p = redis.call('PTTL', KEYS[1])
if p ~= -2 then return {0, p, 0} end
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
if ARGV[5] ~= '0' and now > tonumber(ARGV[5]) then return {-1, 0, now} end
local e = redis.call('HMGET', KEYS[3], 'run', 'born', 'q')
local q = math.max(tonumber(ARGV[4]), tonumber(e[3] or '0'))
local born = tonumber(e[2] or '0')
if e[1] ~= ARGV[3] or born > now then
  born = now
  redis.call('HSET', KEYS[3], 'run', ARGV[3], 'born', string.format('%.0f', now),
             'q', string.format('%.0f', q), 'dur', '0')
end
local floor = born + q
if now < floor then return {-2, floor - now, now} end
local f = 0
if ARGV[6] ~= '0' then
  f = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
  if f < floor then f = now else f = f + 1 end
end
redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if ARGV[6] ~= '0' then redis.call('SET', KEYS[2], string.format('%.0f', f), 'PX', ARGV[6]) end
return {1, f, now})",
    "b93a57e7852f76834ded7352a3cd7f7ba0443ca6"};

/// KEYS: lock, fence. ARGV: token, counter, fence ttl ms.
/// Answers {1: the lock is ours and its counter is what was asked for} | {0, the counter, if that
/// is ahead; 0 if the lock is not ours}.
inline constexpr script guarded_raise{
    R"(if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {0, 0, 0} end
local f = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
local t = tonumber(ARGV[2])
if f < t then redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3]) f = t end
if f == t then return {1, f, 0} end
return {0, f, 0})",
    "5b4aa3d61f05c264e1f6a6dc62a45b7ed1dc9285"};

/// KEYS: lock, fence, epoch. ARGV: token, ttl ms, fencing token (0: none), fence ttl ms, heal
/// (0 | 1), run id, quarantine us, not after us.
/// Answers {1 extended} | {2 healed: it was missing} | {0 somebody else's, PTTL} | {-1 late: not
/// executed} | {-2 missing, and this master may not heal it} | {-3 missing}. Never shortens.
inline constexpr script guarded_extend{
    R"(local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
if ARGV[8] ~= '0' and now > tonumber(ARGV[8]) then return {-1, 0, now} end
local owner, st = redis.call('GET', KEYS[1]), 1
if owner == ARGV[1] then
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
elseif owner then
  return {0, redis.call('PTTL', KEYS[1]), now}
else
  if ARGV[5] ~= '1' then return {-3, 0, now} end
  local e = redis.call('HMGET', KEYS[3], 'run', 'born', 'q')
  local born = tonumber(e[2] or '0')
  if e[1] ~= ARGV[6] or born > now or now < born + math.max(tonumber(ARGV[7]), tonumber(e[3] or '0')) then
    return {-2, 0, now}
  end
  redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
  st = 2
end
if ARGV[3] ~= '0' then
  local f = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
  if f < tonumber(ARGV[3]) then
    local r = redis.pcall('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
    if type(r) == 'table' and r.err and st == 2 then redis.call('DEL', KEYS[1]) return {-3, 0, now} end
  else redis.call('PEXPIRE', KEYS[2], ARGV[4]) end
end
return {st, 0, now})",
    "f646a747b4e7bb14612ca1d419ef45573a8dfcae"};

/// Release and rollback. KEYS: lock, fence. ARGV: token, fencing token (0: none), fence ttl ms,
/// the channel on which a release is told, by a part of its token ('': none).
/// Answers {1 removed} | {0 somebody else's} | {-1 not there}. Levels the counter on the way; a
/// counter of another type is left alone. Nothing after the DEL can raise an error: what was
/// removed is reported and published. Where PUBLISH is forbidden no waiter is notified.
inline constexpr script guarded_release{
    R"(local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local owner = redis.call('GET', KEYS[1])
if owner ~= ARGV[1] then return {owner and 0 or -1, 0, now} end
redis.call('DEL', KEYS[1])
if ARGV[2] ~= '0' then
  local f = redis.pcall('GET', KEYS[2]) or '0'
  if type(f) == 'string' and (tonumber(f) or 0) < tonumber(ARGV[2]) then
    redis.pcall('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
  end
end
if ARGV[4] ~= '' then redis.pcall('PUBLISH', ARGV[4], string.sub(owner, 1, 16)) end
return {1, 0, now})",
    "d676430876893269eced0a75961ed7d1cf14b25b"};

} // namespace redlock::core
