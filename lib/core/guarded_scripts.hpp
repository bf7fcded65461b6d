// The Lua of the guarded protocol, as it was model-checked: change nothing without checking again
// (test/model, test/simulation). Each replies {status, value, the server's clock in us}; the clock
// is 0 if it was not read.
//
// The memory record (`epoch`) is a string of words, with times in us of the server's clock:
//
// - the format, 2;
// - the run id of the server;
// - the replication id under which it was promoted ("-": none);
// - `born`, the moment since which it has kept its data;
// - `q`, the longest quarantine that any client asked for.
//
// Version 0.1 kept a hash there, so each version gets an error from the other's record and never
// trusts it. Only the handshake writes the record. A unit test checks the digests, and so does the
// server at each EVALSHA.

#pragma once

#include "scripts.hpp"

namespace redlock::core {

/// KEYS: epoch. ARGV: run id, replication id of a promoted server ("-": none), quarantine us,
/// whether a step of its clock was seen (0 | 1). The memory of a server begins now, unless the
/// record names this very run and promotion: neither uptime nor durability counts, because another
/// server may answer under a known address. Reply {1 if its memory begins now | 0, end of the
/// quarantine by its clock in us, clock} | {-1, 0, clock}: the record has another format, and is
/// not changed.
inline constexpr script guarded_handshake{
    R"(local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local e = redis.call('GET', KEYS[1])
local run, promoted, born, q = string.match(e or '', '^2 (%S+) (%S+) (%d+) (%d+)$')
if e and not run then return {-1, 0, now} end
born, q = tonumber(born or '0'), math.max(ARGV[3], q or '0')
local fresh = 0
if run ~= ARGV[1] or (ARGV[2] ~= '-' and ARGV[2] ~= promoted) or born > now or ARGV[4] == '1' then
  born, fresh = now, 1
end
if run ~= ARGV[1] or ARGV[2] ~= '-' then promoted = ARGV[2] end
local said = string.format('2 %s %s %.0f %.0f', ARGV[1], promoted, born, q)
if said ~= e then redis.call('SET', KEYS[1], said) end
return {fresh, born + q, now})",
    "c8be16ea9f0eb51ba1ab23d287a1ae6dbb8d0965"};

/// KEYS: lock, fence, epoch. ARGV: token, ttl ms, run id, quarantine us, not after us, fence ttl ms
/// (0: without fencing). Reply {1 granted, counter} | {0 busy, PTTL of the holder, or -1} | {-1
/// late: not executed} | {-2 quarantined, rest in us} | {-4: quarantined, because the record
/// belongs to another server or its clock was set back; a handshake must record that}.
inline constexpr script guarded_acquire{
    R"(local p = redis.call('PTTL', KEYS[1])
if p ~= -2 then return {0, p, 0} end
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
if ARGV[5] ~= '0' and now > tonumber(ARGV[5]) then return {-1, 0, now} end
local e = redis.pcall('GET', KEYS[3])
local run, born, q = string.match(type(e) == 'string' and e or '', '^2 (%S+) %S+ (%d+) (%d+)$')
if run ~= ARGV[3] or tonumber(born) > now then return {-4, tonumber(ARGV[4]), now} end
local floor = born + math.max(q, ARGV[4])
if now < floor then return {-2, floor - now, now} end
local f = 0
if ARGV[6] ~= '0' then
  f = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
  if f < floor then f = now else f = f + 1 end
end
redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if ARGV[6] ~= '0' then redis.call('SET', KEYS[2], string.format('%.0f', f), 'PX', ARGV[6]) end
return {1, f, now})",
    "bc3ef478086a47e1338a7b4236491fab969c7bf5"};

/// KEYS: lock, fence. ARGV: token, counter, fence ttl ms. Reply {1: the lock is ours and its
/// counter has the requested value} | {0, the counter, if it is ahead; 0 if the lock is not ours}.
inline constexpr script guarded_raise{
    R"(if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {0, 0, 0} end
local f = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
local t = tonumber(ARGV[2])
if f < t then redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3]) f = t end
if f == t then return {1, f, 0} end
return {0, f, 0})",
    "5b4aa3d61f05c264e1f6a6dc62a45b7ed1dc9285"};

/// KEYS: lock, fence, epoch. ARGV: token, ttl ms, fencing token (0: none), fence ttl ms, run id,
/// quarantine us, not after us. Reply {1 extended} | {0 another owner's, PTTL} | {-1 late: not
/// executed} | {-2 missing, and this master may have lost it} | {-3 missing}. Never creates a lock,
/// never shortens one, never lowers a counter.
inline constexpr script guarded_extend{
    R"(local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
if ARGV[7] ~= '0' and now > tonumber(ARGV[7]) then return {-1, 0, now} end
local owner = redis.call('GET', KEYS[1])
if not owner then
  local e = redis.pcall('GET', KEYS[3])
  local run, born, q = string.match(type(e) == 'string' and e or '', '^2 (%S+) %S+ (%d+) (%d+)$')
  if run ~= ARGV[5] or tonumber(born) > now or now < born + math.max(q, ARGV[6]) then
    return {-2, 0, now}
  end
  return {-3, 0, now}
end
if owner ~= ARGV[1] then return {0, redis.call('PTTL', KEYS[1]), now} end
if ARGV[3] ~= '0' then
  local f = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
  if f < tonumber(ARGV[3]) then redis.pcall('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
  else redis.call('PEXPIRE', KEYS[2], ARGV[4]) end
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {1, 0, now})",
    "74bd7391409cbbedb4d3c843986f1914b6ae395b"};

/// Release and rollback. KEYS: lock, fence. ARGV: token, fencing token (0: none), fence ttl ms, the
/// channel for the release notification, which contains a part of the token ('': none). Reply {1
/// removed} | {0 another owner's} | {-1 missing}. Also raises the counter; a counter of another
/// type is not changed. Nothing after the DEL can raise an error: the removal is reported and
/// published. The value is 1 if PUBLISH was refused, so that no waiter is notified.
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
local refused = 0
if ARGV[4] ~= '' then
  local r = redis.pcall('PUBLISH', ARGV[4], string.sub(owner, 1, 16))
  if type(r) == 'table' and r.err then refused = 1 end
end
return {1, refused, now})",
    "59cb3e3f80322e25b365dd81d3ff64b063fdd97b"};

} // namespace redlock::core
