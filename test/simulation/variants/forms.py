"""Wrong ways to take several resources, and to let readers in."""

from edits import Variant, script

VARIANTS = [
    Variant(
        52,
        'some-of-all',
        'a master that has one of several resources for somebody else grants the rest',
        profile='forms-network',
        first=1,
        seeds=500,
        scripts=(
            script(
                'all_acquire',
                (
                    "  if p == -1 then return {0, -1, 0} end\n  if p > left then left = p end\n",
                    '  if i == 1 then left = p end\n',
                ),
            ),
        ),
    ),
    Variant(
        53,
        'extends-some-of-all',
        'an extension counts although one of the resources is gone or somebody else\'s',
        profile='forms-heals',
        first=1,
        seeds=1000,
        scripts=(
            script(
                'all_extend',
                (
                    "    return {0, redis.call('PTTL', KEYS[i]), now}\n",
                    '    missing = missing\n',
                ),
                ('if missing then\n', 'if false then\n'),
                (
                    "if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[2]) then",
                    "if redis.call('GET', KEYS[i]) == ARGV[1] and"
                    " redis.call('PTTL', KEYS[i]) < tonumber(ARGV[2]) then",
                ),
            ),
        ),
    ),
    Variant(
        54,
        'frees-all-for-one',
        'a release frees all resources if one of them is its own',
        profile='forms-network',
        first=1,
        seeds=500,
        scripts=(
            script(
                'all_release',
                ('  if owner == ARGV[1] then\n', "  if owner == ARGV[1] or (owner and i > 1) then\n"),
            ),
        ),
    ),
    Variant(
        55,
        'own-counter-of-each',
        'each of several resources counts on by itself, and the token is the largest',
        profile='forms-fences',
        first=1000,
        seeds=6500,
        scripts=(
            script(
                'all_acquire',
                (
                    "redis.call('SET', KEYS[i + 1], string.format('%.0f', f), 'PX', ARGV[6])",
                    "redis.call('SET', KEYS[i + 1], string.format('%.0f',"
                    " i == 1 and f or (tonumber(redis.call('GET', KEYS[i + 1]) or '0') or 0) + 1),"
                    " 'PX', ARGV[6])",
                ),
            ),
        ),
    ),
    Variant(
        56,
        'reader-beside-writer',
        'a reader does not look whether somebody writes',
        profile='forms-network',
        first=1,
        seeds=500,
        scripts=(
            script(
                'shared_acquire',
                (
                    "local p = redis.call('PTTL', KEYS[1])\nif p == -2 then p = redis.call('PTTL', KEYS[3]) end\n",
                    "local p = redis.call('PTTL', KEYS[3])\n",
                ),
            ),
        ),
    ),
    Variant(
        57,
        'writer-beside-readers',
        'a writer does not look whether somebody reads',
        profile='forms-network',
        first=1,
        seeds=500,
        scripts=(script('writer_acquire', ('if last >= ms then\n', 'if false then\n')),),
    ),
    Variant(
        58,
        'one-lease-of-all-readers',
        'all readers go when the first lease ends',
        profile='forms-network',
        first=1,
        seeds=2000,
        scripts=(
            script(
                'shared_acquire',
                (
                    "if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[2]) then"
                    " redis.call('PEXPIRE', KEYS[2], ARGV[2]) end",
                    "if redis.call('PTTL', KEYS[2]) < 0 then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end",
                ),
            ),
        ),
    ),
    Variant(
        59,
        'writer-until-extended',
        'a writer that goes on as a reader frees its key before it reads',
        profile='forms-network',
        first=1,
        seeds=500,
        scripts=(
            script(
                'shared_extend',
                ("if ends < ms + wanted then redis.call('ZADD',", "if not wrote and ends < ms + wanted then redis.call('ZADD',"),
            ),
        ),
    ),
]
