"""Wrong ways that an attack from outside has found in the library itself, each put back."""

from edits import Variant, either, script

KNOWN_RUN = 'if run ~= ARGV[1] or (ARGV[2]'

VARIANTS = [
    Variant(
        64,
        'removed-at-stop',
        'the keys are removed when a loss is told, and not when the holder must have stopped',
        profile='stops',
        first=1,
        seeds=200,
        edits=(
            either(
                'lease.cpp',
                'now >= lease.believed_until',
                'true',
                before='if (',
                after=') {\n        end_lost(',
            ),
        ),
    ),
    Variant(
        65,
        'released-after-loss',
        'the removal of a key that was left after a loss is told as a release',
        profile='guarded-stops',
        first=1,
        seeds=200,
        edits=(
            either('removal.cpp', 'ended.late', 'false', before='decide(rules_.quorum(), '),
        ),
    ),
    Variant(
        66,
        'sleeps-beside-free-lock',
        'a waiter sleeps until the lease that the votes told of must have ended',
        profile='guarded-free-locks',
        first=1,
        seeds=500,
        edits=(
            either('waiting.cpp', 'poll_by(wanted, now)', 'forever', before='last_chance, '),
        ),
    ),
    Variant(
        67,
        'promoted-trusted',
        'a replica that was promoted is trusted, as it is said to lose nothing',
        profile='guarded-promotions',
        first=1,
        seeds=1000,
        scripts=(
            script(
                'guarded_handshake',
                (KNOWN_RUN, "if not run or (run ~= ARGV[1] and ARGV[2] == '-') or (false and ARGV[2]"),
            ),
        ),
    ),
    Variant(
        68,
        'uptime-trusted',
        'a server without a record is trusted since its process began',
        profile='guarded-take-overs',
        first=1,
        seeds=500,
        scripts=(
            script(
                'guarded_handshake',
                (
                    KNOWN_RUN,
                    "if not run then\n"
                    "  local up = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')\n"
                    '  born = now - 1000000 * tonumber(up)\n'
                    'elseif run ~= ARGV[1] or (ARGV[2]',
                ),
            ),
        ),
    ),
    Variant(
        69,
        'step-ends-quarantine',
        "a quarantine ends with a step of the master's clock",
        profile='guarded-boot-steps',
        first=1,
        seeds=2000,
        edits=(
            either(
                'connection.cpp',
                'std::max(later(now, left), quarantine_counted_)',
                'later(now, left)',
            ),
            either(
                'engine.cpp',
                'masters_[master].stepped',
                'true',
                before='void engine::clock_stepped(std::size_t master, std::chrono::microseconds by,'
                ' time_point now) {\n    if (',
            ),
        ),
    ),
]
