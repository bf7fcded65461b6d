"""Wrong ways to tell whether a master remembers."""

from edits import Variant, either, script

HEAL_CHECK = (
    "  local e = redis.call('HMGET', KEYS[3], 'run', 'born', 'q')\n"
    "  local born = tonumber(e[2] or '0')\n"
    '  if e[1] ~= ARGV[6] or born > now or now < born'
    " + math.max(tonumber(ARGV[7]), tonumber(e[3] or '0')) then\n"
    '    return {-2, 0, now}\n'
    '  end\n'
)

HANDSHAKE_CHECK = (
    "    if not called('info') or called('flushall') or called('flushdb') or called('swapdb')"
    " or called('restore')\n"
    "        or called('debug') or called('config') or called('config|resetstat')"
    ' then born = now end\n'
)

VARIANTS = [
    Variant(
        18,
        'no-quarantine',
        'a master votes at once after a restart',
        profile='restarts',
        first=1,
        seeds=3000,
        misuse=True,
    ),
    Variant(
        19,
        'quarantine-by-uptime',
        'a quarantine by uptime only: data that were emptied without a restart are trusted',
        profile='guarded-flushes',
        first=1,
        seeds=500,
        scripts=(
            # The handshake that follows a missing vote would notice the FLUSHALL, too.
            script('guarded_handshake', (HANDSHAKE_CHECK, '')),
            script(
                'guarded_acquire',
                (
                    'if e[1] ~= ARGV[3] or born > now then',
                    'if e[1] and (e[1] ~= ARGV[3] or born > now) then',
                ),
            ),
        ),
    ),
    Variant(
        21,
        'half-quarantine',
        'a quarantine half as long',
        profile='amnesia',
        first=1,
        seeds=500,
        edits=(
            either(
                'settings.hpp',
                'max_ttl + rate_error(max_ttl) + drift.margin + offsets',
                '(max_ttl + rate_error(max_ttl) + drift.margin + offsets) / 2',
            ),
        ),
    ),
    Variant(
        27,
        'heal-in-quarantine',
        'an extension puts the vote back on a master that is quarantined',
        profile='heal',
        first=1,
        seeds=500,
        scripts=(script('guarded_extend', (HEAL_CHECK, '')),),
    ),
    Variant(
        37,
        'claims-durability',
        'appendfsync always is claimed where a crash loses a second',
        profile='restarts',
        first=1,
        seeds=3000,
        misuse=True,
    ),
]
