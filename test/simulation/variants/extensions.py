"""Wrong ways to extend a lease."""

from edits import Variant, at, either, instead, script, when

# How long a variant clings to a lease that has ended.
GRACE = '(%ON ? lease.ttl : std::chrono::milliseconds(0))'

VARIANTS = [
    Variant(
        22,
        'extended-without-quorum',
        'one master is enough to extend',
        profile='around-extensions',
        first=1,
        seeds=500,
        edits=(
            either(
                'lease.cpp',
                'lease.votes.lasts_until(rules_.quorum())',
                'lease.votes.lasts_until(1)',
            ),
        ),
    ),
    Variant(
        23,
        'extend-without-compare',
        "an extension prolongs whoever's key is there, and counts that",
        profile='around-extensions',
        first=1,
        seeds=500,
        scripts=(
            script('compare_and_extend', ('if v == ARGV[1] then if', 'if v then if')),
            script('guarded_extend', ('if owner ~= ARGV[1] then', 'if false then')),
        ),
    ),
    Variant(
        24,
        'extend-shortens',
        'an extension may shorten',
        profile='extensions',
        first=1,
        seeds=2000,
        scripts=(
            script(
                'compare_and_extend',
                (
                    'if redis.call("PTTL", KEYS[1]) < tonumber(ARGV[2]) then'
                    ' redis.call("PEXPIRE", KEYS[1], ARGV[2]) end',
                    'redis.call("PEXPIRE", KEYS[1], ARGV[2])',
                ),
            ),
            script(
                'guarded_extend',
                (
                    "if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then"
                    " redis.call('PEXPIRE', KEYS[1], ARGV[2]) end",
                    "redis.call('PEXPIRE', KEYS[1], ARGV[2])",
                ),
            ),
        ),
    ),
    Variant(
        25,
        'extension-from-reply',
        'an extension is counted from its reply',
        profile='around-extensions',
        first=1,
        seeds=2000,
        edits=(
            either(
                'lease.cpp',
                'guaranteed_until(mine.sent, mine.ttl, rules_.drift)',
                'guaranteed_until(now, mine.ttl, rules_.drift)',
            ),
        ),
    ),
    Variant(
        26,
        'heal-after-deadline',
        'extensions go on after the deadline, and put the votes back',
        profile='guarded-extensions',
        first=1,
        seeds=500,
        edits=(
            # The loss that comes in the end is told as if it were in time: the bug is another one.
            when(
                'lease.cpp',
                '''
        if (lease.deadline != never) {
            lease.deadline = std::max(lease.deadline, now + lease.stop_margin);
            host_.lease_changed(lease);
        }
    ''',
                before='void engine::lose(claim& lease, loss_reason reason, time_point now) {\n',
            ),
            either(
                'lease.cpp', 'now >= lease.deadline', 'false', after='\n        || round != lease.'
            ),
            either(
                'lease.cpp', 'now >= lease.deadline', 'false', after=' || round != mine.round'
            ),
            either(
                'lease.cpp',
                'masters_[master].link->guard_until(lease.deadline)',
                'masters_[master].link->guard_until(lease.deadline + lease.ttl)',
                after=',\n            lease.extending.ttl',
            ),
            either(
                'lease.cpp',
                'masters_[master].link->guard_until(lease.deadline)',
                'masters_[master].link->guard_until(lease.deadline + lease.ttl)',
                after=',\n        mine.ttl',
            ),
            instead(
                'lease.cpp',
                'lease.held_until()',
                f'lease.held_until() + {GRACE}',
                before='if (lease.stage == claim::phase::held && now >= ',
            ),
            instead(
                'lease.cpp',
                'lease.held_until()',
                f'lease.held_until() + {GRACE}',
                before='lease.deadline == never || now >= ',
            ),
            instead(
                'lease.cpp',
                'lease.held_until()',
                f'lease.held_until() + {GRACE}',
                before='timers_.set(lease.wake, std::min(',
            ),
            instead(
                'lease.cpp',
                'lease.held_until()',
                f'lease.held_until() + {GRACE}',
                before='void engine::lease_due(claim& lease, time_point now) {\n    if (now >= ',
            ),
        ),
    ),
    Variant(
        28,
        'late-rollback-to-non-voters',
        'a master that did not vote for the lease is told to forget it, after it was healed',
        profile='guarded-extensions',
        first=1,
        seeds=4000,
        edits=(
            when(
                'lease.cpp',
                '''
        if (got.healed) {
            scratch_.clear();
            append_guarded_remove(scratch_, rung::eval, names_of(lease), fence_of(lease, 0), {});
            send(master, scratch_, {.kind = command_kind::ping, .subject = {}}, now);
        }
    ''',
                before='    const key_state found = state_of(got, heals);\n',
            ),
        ),
    ),
    Variant(
        39,
        'any-reply-extends',
        'any reply to an extension counts as one',
        profile='around-extensions',
        first=1,
        seeds=500,
        edits=(
            either(
                'lease.cpp',
                'state_of(got, heals)',
                '(got.said == vote::unreachable ? key_state::unknown : key_state::kept)',
                before='const key_state found = ',
            ),
        ),
    ),
    Variant(
        62,
        'heal-without-blocking',
        'a missing key is healed however many masters may have voted for another owner',
        profile='guarded-deletions',
        first=1,
        seeds=200,
        edits=(
            either('extension_round.hpp', 'blocking + quorum > masters.size()', 'true'),
        ),
    ),
    Variant(
        63,
        'extend-re-creates',
        'an extension creates a key that is missing, and counts it',
        profile='guarded-deletions',
        first=1,
        seeds=200,
        scripts=(
            script(
                'guarded_extend',
                (
                    '  return {-3, 0, now}\n',
                    "  redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])\n  owner = ARGV[1]\n",
                ),
            ),
        ),
    ),
]
