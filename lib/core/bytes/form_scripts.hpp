// The Lua of the forms of a lock other than the exclusive one. They check a master's memory and
// late commands like the scripts of `guarded_scripts.hpp`. Reply: {status, value, the server's
// clock in us}.

#pragma once

#include "scripts.hpp"

namespace redlock::core {

/// Several locks, all or none. KEYS: lock and fence of each, then record. ARGV: token, ttl ms, run
/// id, quarantine us, not after us, fence ttl ms (0: without fencing), the first counter and its
/// earliest clock. Reply {1 granted, counter} |
/// {0 busy, the largest PTTL, or -1} | {-1 late} | {-2 quarantined, rest in us} | {-4 quarantined,
/// a handshake is needed}. The counter of all members becomes one more than the largest; if one is
/// missing or older than the memory of this master, at least the clock. So the counter of each
/// resource also grows across locks on that resource alone.
inline constexpr script all_acquire{
    R"(local left = -2
for i = 1, #KEYS - 1, 2 do
  local p = redis.call('PTTL', KEYS[i])
  if p == -1 then return {0, -1, 0} end
  if p > left then left = p end
end
if left ~= -2 then return {0, left, 0} end)",
    lua::clock,
    lua::unless_late("ARGV[5]"),
    lua::record("KEYS[#KEYS]"),
    lua::unless_quarantined,
    R"(local f, lost = 0, false
if ARGV[6] ~= '0' then
  for i = 2, #KEYS - 1, 2 do
    local c = tonumber(redis.call('GET', KEYS[i]) or '0') or 0
    if c < floor then lost = true end
    f = math.max(f, c)
  end
  f = f + 1
  if lost and f < now then)",
    lua::first_counter("ARGV[7], ARGV[8]"),
    R"(  end
end
for i = 1, #KEYS - 1, 2 do
  redis.call('SET', KEYS[i], ARGV[1], 'NX', 'PX', ARGV[2])
  if ARGV[6] ~= '0' then redis.call('SET', KEYS[i + 1], string.format('%.0f', f), 'PX', ARGV[6]) end
end
return {1, f, now})"};

/// Of several locks, or of one. KEYS: lock, fence of each. ARGV: token, counter, fence ttl ms.
/// Reply {1: all locks are ours, and all counters have the requested value} | {0, the largest
/// counter} if one is ahead | {0, 0} if one lock is not ours. Raises all counters or none.
inline constexpr script all_raise{
    R"(local t, f, least = tonumber(ARGV[2]), 0, math.huge
for i = 1, #KEYS, 2 do
  if redis.call('GET', KEYS[i]) ~= ARGV[1] then return {0, 0, 0} end
  local c = tonumber(redis.call('GET', KEYS[i + 1]) or '0') or 0
  f, least = math.max(f, c), math.min(least, c)
end
if f > t then return {0, f, 0} end
if least < t then
  for i = 2, #KEYS, 2 do
    redis.call('PEXPIRE', KEYS[i], ARGV[3])
    redis.call('SET', KEYS[i], ARGV[2], 'PX', ARGV[3])
  end
end
return {1, t, 0})"};

/// KEYS: lock and fence of each, then record. ARGV: token, ttl ms, fencing token (0: none), fence
/// ttl ms, run id, quarantine us, not after us. Extends all or none. Reply {1 extended} | {0
/// another owner's, PTTL} | {-1 late} | {-2 missing, and this master may have lost it} | {-3
/// missing} | {-4: the record is another one; a handshake is needed}. One member that is missing or
/// another owner's prevents all.
inline constexpr script all_extend{
    lua::clock,
    lua::unless_late("ARGV[7]"),
    lua::record("KEYS[#KEYS]"),
    R"(if run and run ~= ARGV[5] then return {-4, 0, now} end
local missing = false
for i = 1, #KEYS - 1, 2 do
  local owner = redis.call('GET', KEYS[i])
  if not owner then
    missing = true
  elseif owner ~= ARGV[1] then
    return {0, redis.call('PTTL', KEYS[i]), now}
  end
end
if missing then
  local forgot = not run or tonumber(born) > now or now < born + math.max(q, ARGV[6])
  return {forgot and -2 or -3, 0, now}
end)",
    lua::raise_counters("pcall"),
    R"(for i = 1, #KEYS - 1, 2 do
  if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[i], ARGV[2]) end
end
return {1, 0, now})"};

/// Release and rollback: removes its own keys, one by one. KEYS: lock, fence of each. ARGV: token,
/// fencing token (0: none), fence ttl ms, the prefix that makes a lock's channel of its key ('':
/// publishes nothing). Reply {1 all removed} | {0 one is another owner's} | {-1 one is missing}.
/// The value is 1 if a PUBLISH was refused, else 0.
inline constexpr script all_release{
    lua::clock,
    R"(local st, refused = 1, 0
for i = 1, #KEYS, 2 do
  local owner = redis.pcall('GET', KEYS[i])
  if owner == ARGV[1] then
    redis.call('DEL', KEYS[i])
    if ARGV[2] ~= '0' then
      local f = redis.pcall('GET', KEYS[i + 1]) or '0'
      if type(f) == 'string' and (tonumber(f) or 0) < tonumber(ARGV[2]) then
        redis.pcall('SET', KEYS[i + 1], ARGV[2], 'PX', ARGV[3])
      end
    end
    if ARGV[4] ~= '' then
      local r = redis.pcall('PUBLISH', KEYS[i] .. ARGV[4], string.sub(owner, 1, 16))
      if type(r) == 'table' and r.err then refused = 1 end
    end
  elseif owner then
    st = 0
  elseif st == 1 then
    st = -1
  end
end
return {st, refused, now})"};

/// An exclusive lock, for a waiter that has met readers. KEYS: lock, fence, record, intent. ARGV:
/// as all_acquire, then the lease of the intent in ms and its name, which is the same for all
/// attempts of one acquire. Reply as all_acquire. Where readers hold the lock, the intent keeps new
/// ones out.
inline constexpr script announced_acquire{
    lua::clock,
    lua::unless_late("ARGV[5]"),
    R"(local p = redis.call('PTTL', KEYS[1])
if p ~= -2 then
  if redis.pcall('GET', KEYS[1]) == 'readers' then redis.call('SET', KEYS[4], ARGV[10], 'PX', ARGV[9]) end
  return {0, p, now}
end)",
    lua::record("KEYS[3]"),
    lua::unless_quarantined,
    R"(local f = 0
if ARGV[6] ~= '0' then
  f = (tonumber(redis.call('GET', KEYS[2]) or '0') or 0) + 1
  if f <= floor then)",
    lua::first_counter("ARGV[7], ARGV[8]"),
    R"(  end
end
redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if ARGV[6] ~= '0' then redis.call('SET', KEYS[2], string.format('%.0f', f), 'PX', ARGV[6]) end
redis.call('DEL', KEYS[4])
return {1, f, now})"};

/// The rollback of such an attempt. KEYS: lock, intent. ARGV: token, channel ('': publishes
/// nothing), name of the intent to remove (0: none). Publishes even if only the intent was removed,
/// because readers wait for that. Reply as all_release.
inline constexpr script announced_release{
    lua::clock,
    R"(local st, told, refused = -1, false, 0
if ARGV[3] ~= '0' and redis.pcall('GET', KEYS[2]) == ARGV[3] then
  redis.call('DEL', KEYS[2])
  told = true
end
local owner = redis.pcall('GET', KEYS[1])
if owner == ARGV[1] then
  redis.call('DEL', KEYS[1])
  st, told = 1, true
elseif owner then
  st = 0
end
if told and ARGV[2] ~= '' then
  local r = redis.pcall('PUBLISH', ARGV[2], string.sub(ARGV[1], 1, 16))
  if type(r) == 'table' and r.err then refused = 1 end
end
return {st, refused, now})"};

/// A reader. While there are readers, the lock's own key has the value 'readers', which is not
/// a token, so that it is taken for everybody else. It expires one millisecond after the last of
/// their leases. `readers` is a sorted set: tokens by the end of their leases, in ms of the
/// master's clock; the last millisecond still belongs to the lease. An entry counts only while the
/// key has that value. KEYS: lock, readers, record, intent. ARGV: token, ttl ms, run id, quarantine
/// us, not after us. Reply {1 granted, 0} | {0 busy: somebody else holds it or waits for its
/// readers, and the remaining time} | {-1 late} | {-2 quarantined, rest in us} | {-4 quarantined, a
/// handshake is needed}.
inline constexpr script shared_acquire{
    R"(local owner = redis.call('GET', KEYS[1])
if owner and owner ~= 'readers' then return {0, redis.call('PTTL', KEYS[1]), 0} end
local p = redis.call('PTTL', KEYS[4])
if p ~= -2 then return {0, p, 0} end)",
    lua::clock,
    lua::unless_late("ARGV[5]"),
    lua::record("KEYS[3]"),
    lua::unless_quarantined,
    R"(local ms, wanted = math.floor(now / 1000), tonumber(ARGV[2]))",
    lua::add_reader,
    R"(return {1, 0, now})"};

/// Extends a reader's lease. If this token owns the lock exclusively, turns the owner into a reader
/// with at least its remaining lease; not in a quarantine, because the key may be that of a late
/// SET. KEYS: lock, readers, record. ARGV: token, ttl ms, run id, quarantine us, not after us, the
/// channel on which a downgrade is published ('': none). Reply as all_extend; the value is 1 if
/// PUBLISH was refused.
inline constexpr script shared_extend{
    lua::clock,
    lua::unless_late("ARGV[5]"),
    lua::record("KEYS[3]"),
    R"(if run and run ~= ARGV[3] then return {-4, 0, now} end
local ms, wanted = math.floor(now / 1000), tonumber(ARGV[2])
local forgot = not run or tonumber(born) > now or now < born + math.max(q, ARGV[4])
local owner, ends = redis.call('GET', KEYS[1]), 0
if owner == ARGV[1] then
  if forgot then return {-2, 0, now} end
  ends = ms + math.max(0, redis.call('PTTL', KEYS[1]))
elseif owner == 'readers' then
  ends = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or '0')
elseif owner then
  return {0, redis.call('PTTL', KEYS[1]), now}
end
if ends < ms then return {forgot and -2 or -3, 0, now} end
wanted = math.max(wanted, ends - ms)
redis.call('PEXPIRE', KEYS[1], math.max(wanted + 1, redis.call('PTTL', KEYS[1]))))",
    lua::add_reader,
    R"(local refused = 0
if owner == ARGV[1] and ARGV[6] ~= '' then
  local r = redis.pcall('PUBLISH', ARGV[6], string.sub(owner, 1, 16))
  if type(r) == 'table' and r.err then refused = 1 end
end
return {1, refused, now})"};

/// Release and rollback of a reader, and of the owner that became one. The last reader removes the
/// key; any other leaves it until the last remaining lease ends. KEYS: lock, readers. ARGV: token,
/// the channel on which it is published that the key was removed ('': none). Reply {1 removed} | {0
/// somebody else holds it} | {-1 missing}, or an error if the readers cannot be read: whether it
/// was the last one is not guessed. Of a key that has another type the entry is still removed.
inline constexpr script shared_release{
    lua::clock,
    R"(local ms, st, free = math.floor(now / 1000), -1, false
local owner, ends = redis.pcall('GET', KEYS[1]), redis.pcall('ZSCORE', KEYS[2], ARGV[1])
if type(ends) == 'string' then redis.call('ZREM', KEYS[2], ARGV[1]) end
if owner == ARGV[1] then
  st, free = 1, true
elseif owner == 'readers' then
  if type(ends) == 'table' then return ends end
  if ends and tonumber(ends) >= ms then st = 1 end
  local left = tonumber(redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or '0') - ms
  free = left < 0
  if not free and redis.call('PTTL', KEYS[1]) > left + 1 then redis.call('PEXPIRE', KEYS[1], left + 1) end
elseif owner then
  st = 0
end
local refused = 0
if free then
  redis.call('DEL', KEYS[1])
  if ARGV[2] ~= '' then
    local r = redis.pcall('PUBLISH', ARGV[2], string.sub(ARGV[1], 1, 16))
    if type(r) == 'table' and r.err then refused = 1 end
  end
end
return {st, refused, now})"};

// --- HEAL creates a key that a lease has lost on a master: the second step of an extension, sent
// only after the result of the first one is known (extension.hpp). KEYS and ARGV are those of the
// form's extension without the channel; for an exclusive lock those of all_extend.
//
// Reply {1 extended: it was not missing} | {2 healed} | {0 another owner's, PTTL} | {-1 late: not
// executed} | {-2 missing, and this master may have lost it}, with the server's clock. A heal
// without a `not after` counts as late. Everything is read before the first write, so that a key of
// another type leaves no partial heal.

/// Of several locks, or of one: all missing ones, or none. One that is another owner's prevents
/// all. Raises the fencing counters to the token. Replies -2 even for keys that are there: a stray
/// SET may have created one after this master had lost another owner's key.
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
end)",
    lua::record("KEYS[#KEYS]"),
    R"(if run ~= ARGV[5] or tonumber(born) > now or now < born + math.max(q, ARGV[6]) then
  return {-2, 0, now}
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
