"""Wrong ways to make a fencing token."""

from edits import Variant, either, script, when

CHOSEN = (
    '    attempt.count = {masters_.size(), rules_.quorum()};\n    std::size_t behind = 0;\n'
)

VARIANTS = [
    Variant(
        11,
        'fencing-without-raise',
        'the token is the largest counter of a majority, which is not written back',
        profile='raises',
        first=1,
        seeds=500,
        edits=(
            when('raise.cpp', 'win(wanted, attempt, now); return;', after=CHOSEN),
        ),
    ),
    Variant(
        12,
        'raise-not-awaited',
        'the raise is sent, and its answers are not awaited',
        profile='raises',
        first=1,
        seeds=2000,
        edits=(
            when(
                'raise.cpp',
                'if (attempt.count.decide() == verdict::open) { win(wanted, attempt, now); return; }',
                after='    decide(attempt, now);\n}\n\nvoid engine::send_raise(',
            ),
        ),
    ),
    Variant(
        13,
        'raise-without-lock-check',
        'a raise counts although the lock is not ours any more',
        profile='leaps',
        first=1,
        seeds=500,
        scripts=(
            script(
                'guarded_raise',
                ("if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {0, 0, 0} end\n", ''),
            ),
        ),
    ),
    Variant(
        14,
        'raise-accepts-larger',
        'a raise counts where the counter is ahead, and the acquire is said twice',
        profile='leaps',
        first=1,
        seeds=500,
        edits=(
            when(
                'raise.cpp',
                '''
                    scratch_.clear();
                    append_guarded_acquire(
                        scratch_,
                        rung::eval,
                        names_of(attempt),
                        {masters_[i].link->info().run_id, masters_[i].link->guard_until(now).quarantine, 0},
                        attempt.ttl,
                        fence_of(attempt, 0));
                    send(i, scratch_, {.kind = command_kind::ping, .subject = {}}, now);
                ''',
                before='            const ballot& one = attempt.votes.of[i];\n'
                '            if (one.said == vote::granted && one.counter < attempt.raise_to) {\n',
            ),
        ),
        scripts=(
            script(
                'guarded_raise',
                ('if f == t then return {1, f, 0} end', 'if f >= t then return {1, f, 0} end'),
            ),
        ),
    ),
    Variant(
        15,
        'token-minimum',
        'the token is the smallest counter of a majority',
        profile='guarded-network',
        first=1,
        seeds=500,
        edits=(
            when(
                'raise.cpp',
                '''
        for (const ballot& one : attempt.votes.of) {
            if (one.said == vote::granted) {
                attempt.raise_to = std::min(attempt.raise_to, one.counter);
            }
        }
        win(wanted, attempt, now);
        return;
    ''',
                after=CHOSEN,
            ),
        ),
    ),
    Variant(
        16,
        'counter-restarts',
        'a counter that is missing starts again at 1',
        profile='guarded-flushes',
        first=1,
        seeds=500,
        scripts=(
            script(
                'guarded_acquire',
                ('if f < floor then f = now else f = f + 1 end', 'f = f + 1'),
            ),
        ),
    ),
    Variant(
        17,
        'counter-deleted',
        'the counter is deleted with the lock',
        profile='guarded-clocks',
        first=1,
        seeds=1000,
        scripts=(
            # Else the release levels the counter again, which hides the loss.
            script(
                'guarded_release',
                ("redis.call('DEL', KEYS[1])", "redis.call('DEL', KEYS[1], KEYS[2])"),
                ("if ARGV[2] ~= '0' then", 'if false then'),
            ),
        ),
    ),
    Variant(
        20,
        'stale-counter-trusted',
        'a counter is trusted although a restart may have brought an old one back',
        profile='guarded-restarts',
        first=1,
        seeds=2000,
        scripts=(
            script(
                'guarded_acquire',
                (
                    'if f < floor then f = now else f = f + 1 end',
                    'if f == 0 then f = now else f = f + 1 end',
                ),
            ),
        ),
    ),
]
