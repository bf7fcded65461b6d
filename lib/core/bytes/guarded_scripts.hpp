// The Lua of the guarded protocol, as it was model-checked: change nothing without checking again
// (test/model, test/simulation).
//
// Acquires, extensions and removals of one turn share a call (frame.hpp): the master is checked
// once, then each lock by itself. A call that was executed replies {1, clock, exceptions...}. The
// clock is the server's in us, or 0. An exception is the number of a lock, counted from 1 in
// ascending order, and its status or the text of its error. The other scripts, and a call that was
// not executed, reply {status, value, the server's clock in us, or 0}.
//
// The memory record (key `prefix:epoch`) is a string of words, with times in us of the server's
// clock:
//
// - the format, 4;
// - the run id of the server; once members have changed, followed by a colon and a number that is
//   drawn anew with each list;
// - the replication id under which it was promoted ("-": none);
// - `born`, the moment since which it has kept its data;
// - `q`, the longest quarantine that any client asked for. While all clients so far had theirs off,
//   it is 0, a slash, and what they would have asked for: the first client with one adopts it;
// - an id, which is drawn anew at each change: a record that was lost never comes back. It is 32
//   hexadecimal digits. The list of the quorum's masters may follow (member_list.hpp).
//
// A client version with another format reports an error for this record and never trusts it. Only
// the handshake writes the record.

#pragma once

#include "scripts.hpp"

namespace redlock::core {

/// KEYS: record. ARGV: run id, replication id of a promoted server ("-": none), quarantine us, a
/// digit, the id of a record that is written. The digit is 1 if a step of its clock was seen, or 2
/// if no lock can have been on it when a list is written. With 3 the quarantine of a record without
/// a list stays as it is. Otherwise 0. Optional: a list with its state, the id that the record must
/// have for it (empty: it must have no list), and the quarantine that is recorded with it. Only a
/// final list of new members may shorten that. Optional: the quarantine of a quorum that was
/// founded without one. Optional: anything, if the client's quarantine is off. With a list that
/// replaces another one that was not final, the memory begins now. A new memory begins, unless the
/// record has this run id and promotion: neither uptime nor durability counts, because another
/// server may answer under a known address. A new list of members changes the second word, so that
/// a script that was sent before finds another record. A final one also moves `born` to where the
/// quarantine ends now: fencing counters that are older than that start from the clock. Reply {1 if
/// its memory begins now | 2 if its quarantine becomes longer | 0, end of the quarantine by its
/// clock in us, clock, record} | {-1, 0, clock}: the record has another format, and is not changed.
inline constexpr script guarded_handshake{
    lua::clock,
    R"(local e = redis.call('GET', KEYS[1])
local run, tag, promoted, born, q, later, id = string.match(e or '', '^4 ([^%s:]+)(:?%x*) (%S+) (%d+) (%d+)/?(%d*) (%x+)$')
if e and not run then return {-1, 0, now} end
local list, mine, before, usual = string.sub(id or '', 33), ARGV[6] or '', tonumber(q or '0'), tonumber(ARGV[9] or '0')
local counts = ARGV[4] ~= '3' or list ~= ''
local asks = counts and tonumber(ARGV[3]) or 0
later = tonumber(later or '0') or 0
if ARGV[10] and before == 0 then
  asks, later, usual = 0, math.max(later, counts and usual or 0), 0
end
born, q = tonumber(born or '0'), math.max(asks, before)
local fresh = 0
if run ~= ARGV[1] or (ARGV[2] ~= '-' and ARGV[2] ~= promoted) or born > now or ARGV[4] == '1' then
  born, fresh = now, 1
end
if run ~= ARGV[1] or ARGV[2] ~= '-' then promoted = ARGV[2] end
if mine ~= list and (id == ARGV[7] and fresh == 0 or (ARGV[7] or '') == '' and list == '') then
  local state = string.byte(mine)
  if state == 48 and list ~= '' then born = now end
  if ARGV[4] == '2' then born = 0 end
  list = mine
  q = math.max(state == 51 and asks or q, ARGV[8] or 0)
  if state == 50 or state == 51 then tag = ':' .. string.sub(ARGV[5], -8) end
  if state == 51 then born = math.max(born, now - q) end
end
if q == 0 and (string.byte(list) or 0) > 48 then q = usual end
if q > 0 then q, later = math.max(q, later), 0 end
if fresh == 0 and before > 0 and q > before then fresh = 2 end
later = later > 0 and string.format('/%.0f', later) or ''
local said = string.format('4 %s%s %s %.0f %.0f%s ', ARGV[1], tag or '', promoted, born, q, later)
if not e or said ~= string.sub(e, 1, #said) or list ~= string.sub(id, 33) then
  e = said .. ARGV[5] .. list
  redis.call('SET', KEYS[1], e)
end
return {fresh, born + q, now, e})"};

/// KEYS: record. The reply of a handshake that changes nothing; {-1, 0, clock} if there is none.
inline constexpr script guarded_look{
    lua::clock,
    R"(local e = redis.call('GET', KEYS[1])
local born, q = string.match(e or '', '^4 %S+ %S+ (%d+) (%d+)[ /]')
if not born then return {-1, 0, now} end
return {0, born + q, now, e})"};

/// KEYS: record, then per lock its key, or with fencing its key and its counter. ARGV: ttl ms,
/// fence ttl ms (0: without fencing), with fencing the first counter and its earliest clock, the
/// token of each, run id, quarantine us, not after us. Exceptions: the PTTL of the holder, or -1.
/// With fencing there is one value for each lock instead: its counter, or -2 - PTTL of the holder.
/// One grant in 16 renews the expiry of the counter, and without a quarantine each one. A missing
/// counter, or one from before the last possible loss, starts anew (lua::first_counter), from a
/// larger value. Not executed: {-1 late} | {-2 quarantined, rest in us} | {-4: quarantined,
/// because the record belongs to another server or its clock was set back; a handshake must record
/// that}.
inline constexpr script guarded_acquire{
    R"(local n, t = #ARGV, redis.call('TIME')
local now = t[1] * 1000000 + t[2])",
    lua::unless_late("ARGV[n]"),
    lua::record("KEYS[1]"),
    R"(if run ~= ARGV[n - 2] or tonumber(born) > now then return {-4, tonumber(ARGV[n - 1]), now} end
local floor = born + math.max(q, ARGV[n - 1])
if now < floor then return {-2, floor - now, now} end
local out, ttl, fence_ttl = {1, now}, ARGV[1], ARGV[2]
if fence_ttl == '0' then
  for i = 2, #KEYS do
    local r = redis.pcall('SET', KEYS[i], ARGV[i + 1], 'NX', 'PX', ttl)
    if not r then r = redis.pcall('PTTL', KEYS[i]) end
    if type(r) == 'number' or r.err then
      out[#out + 1] = i - 1
      out[#out + 1] = type(r) == 'number' and r or r.err
    end
  end
  return out
end
for i = 1, (#KEYS - 1) / 2 do
  local lock, fence = KEYS[2 * i], KEYS[2 * i + 1]
  local r = redis.pcall('SET', lock, ARGV[i + 4], 'NX', 'PX', ttl)
  if not r then
    r = redis.pcall('PTTL', lock)
    if type(r) == 'number' then r = -2 - r end
  elseif not r.err then
    r = redis.pcall('INCR', fence)
    if type(r) == 'table' or r <= floor then
      local f = r
      if type(r) == 'table' then f = redis.pcall('GET', fence) end
      if type(f) == 'table' then
        redis.call('DEL', lock)
      else
        if type(f) ~= 'number' then f = (tonumber(f or '0') or 0) + 1 end
        if f <= floor then)",
    lua::first_counter("ARGV[3], ARGV[4]"),
    R"(        end
        r = redis.pcall('SET', fence, string.format('%.0f', f), 'PX', fence_ttl)
        if not r.err then r = f end
      end
    elseif floor == 0 or r % 16 == 1 then redis.call('PEXPIRE', fence, fence_ttl) end
  end
  out[i + 2] = type(r) == 'table' and r.err or r
end
return out)"};

/// KEYS: record, then as guarded_acquire. ARGV: ttl ms, fence ttl ms (0: without fencing), the
/// token of each, with fencing the fencing token of each, run id, quarantine us, not after us.
/// Exceptions: the PTTL of another owner's key, or -1 | -2 missing, and this master may have lost
/// it | -3 missing. The reply begins with 2 in place of 1 if this master may have lost locks. Not
/// executed: {-1 late} | {-4: the record is another one, or none; a handshake is needed}. Never
/// creates a lock, never shortens one, never lowers a counter.
inline constexpr script guarded_extend{
    R"(local n, t = #ARGV, redis.call('TIME')
local now = t[1] * 1000000 + t[2])",
    lua::unless_late("ARGV[n]"),
    R"(local out, ttl, fence_ttl, each = {1, now}, tonumber(ARGV[1]), ARGV[2], #KEYS - 1
local fenced, missing = fence_ttl ~= '0', -3
if fenced then each = each / 2 end)",
    lua::record("KEYS[1]"),
    R"(if run and run ~= ARGV[n - 2] then return {-4, 0, now} end
if not run or tonumber(born) > now or now < born + math.max(q, ARGV[n - 1]) then
  out[1], missing = 2, -2
end
for i = 1, each do
  local lock, r = KEYS[i + 1], nil
  if fenced then lock = KEYS[2 * i] end
  local owner = redis.pcall('GET', lock)
  if owner == ARGV[i + 2] then
    if fenced then
      local fence, token = KEYS[2 * i + 1], ARGV[i + 2 + each]
      local f = redis.pcall('GET', fence)
      if type(f) == 'table' then r = f
      else
        redis.pcall('PEXPIRE', fence, fence_ttl)
        if (tonumber(f or '0') or 0) < tonumber(token) then redis.pcall('SET', fence, token, 'PX', fence_ttl) end
      end
    end
    if not r and redis.call('PTTL', lock) < ttl then
      r = redis.pcall('PEXPIRE', lock, ttl)
      if r == 1 then r = nil end
    end
  elseif not owner then r = missing
  else r = type(owner) == 'table' and owner or redis.call('PTTL', lock) end)",
    lua::exception_if("r")};

/// Release and rollback. KEYS: the lock of each; with fencing tokens lock and fence of each. ARGV:
/// fence ttl ms (0: without fencing tokens), the token of each, the fencing token of each if there
/// are any, and one character for each. It is 1 if the removal is published, on `lock:free`, with a
/// part of the token. Exceptions: 0 another owner's | -1 missing | -2 removed, but PUBLISH was
/// refused, so that no waiter is notified | n + 1 removed, and n subscribers were notified. Also
/// raises the counters; a counter of another type is not changed. Does not read the clock.
inline constexpr script guarded_release{
    R"(local out, fence_ttl, published, each = {1, 0}, ARGV[1], ARGV[#ARGV], #KEYS
local fenced = fence_ttl ~= '0'
if fenced then each = #KEYS / 2 end
for i = 1, each do
  local lock, r = KEYS[i]
  if fenced then lock = KEYS[2 * i - 1] end
  local owner = redis.pcall('GET', lock)
  if owner == ARGV[i + 1] then
    r = redis.pcall('DEL', lock)
    if r == 1 and fenced then
      local f = redis.pcall('GET', KEYS[2 * i]) or '0'
      if type(f) == 'string' and (tonumber(f) or 0) < tonumber(ARGV[i + 1 + each]) then
        redis.pcall('SET', KEYS[2 * i], ARGV[i + 1 + each], 'PX', fence_ttl)
      end
    end
    if r == 1 and string.byte(published, i) == 49 then
      r = redis.pcall('PUBLISH', lock .. ':free', string.sub(owner, 1, 16))
      r = type(r) == 'number' and r + 1 or -2
    end
  elseif not owner then r = -1
  else r = type(owner) == 'table' and owner or 0 end)",
    lua::exception_if("r ~= 1")};

} // namespace redlock::core
