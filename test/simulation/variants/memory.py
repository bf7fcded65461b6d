"""Wrong ways to tell whether a master remembers."""

from edits import Variant, either, script

HEAL_CHECK = (
    "  local e = redis.pcall('GET', KEYS[3])\n"
    "  local run, born, q = string.match(type(e) == 'string' and e or '',"
    " '^2 (%S+) %S+ (%d+) (%d+)$')\n"
    '  if run ~= ARGV[5] or tonumber(born) > now or now < born + math.max(q, ARGV[6]) then\n'
    '    return {-2, 0, now}\n'
    '  end\n'
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
        'a master without a record is trusted, as if its uptime said that it remembers',
        profile='guarded-flushes',
        first=1,
        seeds=500,
        scripts=(
            script(
                'guarded_handshake',
                ('if run ~= ARGV[1] or (ARGV[2]', 'if (run and run ~= ARGV[1]) or (ARGV[2]'),
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
        'a key is healed on a master that is quarantined',
        profile='heal',
        first=1,
        seeds=500,
        scripts=(
            # The first is what keeps the client from asking for it.
            script('guarded_extend', (HEAL_CHECK, '')),
            script('guarded_heal', (HEAL_CHECK, '')),
        ),
    ),
    Variant(
        37,
        'claims-durability',
        'a record from before a restart is trusted, as if every write had been on disk',
        profile='guarded-flushes',
        first=1,
        seeds=4000,
        scripts=(
            script(
                'guarded_handshake',
                ('if run ~= ARGV[1] or (ARGV[2]', 'if not run or (ARGV[2]'),
            ),
        ),
    ),
]
