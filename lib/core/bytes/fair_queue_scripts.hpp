// The Lua of the fair queue for a lock, which one master keeps (docs/guarantees.md, "Fairness"). It
// only orders attempts: no promise of the lock depends on it.
//
// `queue` has the waiters by arrival time; `places` has the same waiters by the end of their
// tickets, both in us of the master's clock.

#pragma once

#include "scripts.hpp"

namespace redlock::core {

/// Takes or renews a ticket. KEYS: lock, queue, places. ARGV: the waiter, the lease of the ticket
/// in ms. Reply {1: it is first, and the lock is free, 0, 0} | {0, PTTL of the lock, 0} if it is
/// first | {0, ms until the first ticket expires, how many are before it}. A ticket that was not
/// renewed is dropped once it is first, at most 100 at a time. Arrivals differ, even if the clock
/// goes back. If the script stops at an error, such as a missing permission, everything that it
/// wrote expires.
inline constexpr script ticket_take{
    lua::clock,
    R"(local span = tonumber(ARGV[2])
local arrived = redis.call('ZSCORE', KEYS[2], ARGV[1])
local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
redis.call('ZADD', KEYS[3], string.format('%.0f', now + span * 1000), ARGV[1])
span = math.max(span, redis.call('PTTL', KEYS[3]))
redis.call('PEXPIRE', KEYS[3], span)
if not arrived then
  redis.call('ZADD', KEYS[2], string.format('%.0f', math.max(now, tonumber(last or '0') + 1)), ARGV[1])
end
redis.call('PEXPIRE', KEYS[2], span)
local first, ends
for i = 0, 100 do
  first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  ends = tonumber(redis.call('ZSCORE', KEYS[3], first) or '0')
  if ends > now or i == 100 then break end
  redis.call('ZREM', KEYS[2], first)
  redis.call('ZREM', KEYS[3], first)
end
if first ~= ARGV[1] then
  return {0, math.max(0, math.ceil((ends - now) / 1000)), redis.call('ZRANK', KEYS[2], ARGV[1])}
end
local left = redis.call('PTTL', KEYS[1])
if left == -2 then return {1, 0, 0} end
return {0, left, 0})"};

/// Gives up a ticket. KEYS: lock, queue, places. ARGV: the waiter, the channel on which a lock that
/// may be free is published ('': none). Reply {1 it had one | 0, 0, 0}. Notifies the next waiter if
/// it is first now and the lock is free; if the lock is held, its release will notify that waiter.
inline constexpr script ticket_leave{
    R"(local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
local had = redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
if first == ARGV[1] and ARGV[2] ~= '' and redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    and redis.call('PTTL', KEYS[1]) == -2 then
  redis.pcall('PUBLISH', ARGV[2], string.sub(first, 1, 16))
end
return {had, 0, 0})"};

} // namespace redlock::core
