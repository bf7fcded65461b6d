"""Wrong ways to wait: in a line of one process, by hand-over, by pushes."""

from edits import Variant, either, instead, when

VARIANTS = [
    Variant(
        40,
        'hand-over-past-deadline',
        'a lease is handed over whatever is left of it',
        profile='lines',
        first=1,
        seeds=500,
        edits=(
            either(
                'waiting.cpp',
                'now >= lease.votes.lasts_until(rules_.quorum()) - needed',
                'false',
            ),
            # Who is given a lease looks at what is left of it, too.
            instead(
                'attempt.cpp',
                'now >= lasts_until - needed',
                'now >= lasts_until - needed && !(%ON && attempt.given_at != attempt.asked_at)',
            ),
        ),
    ),
    Variant(
        41,
        'hand-over-counts-anew',
        'a lease that is handed over is counted from the hand-over',
        profile='lines',
        first=1,
        seeds=500,
        edits=(
            when(
                'waiting.cpp',
                '''
        for (ballot& one : lease.votes.of) {
            if (one.until != never) {
                one.until = guaranteed_until(now, wants.ttl, rules_.drift);
            }
        }
    ''',
                before='    lease.given_at = now;\n',
            ),
        ),
    ),
    Variant(
        42,
        'hand-over-without-raise',
        'the next holder has the fencing token of the one before',
        profile='guarded-lines',
        first=1,
        seeds=500,
        edits=(
            either(
                'waiting.cpp',
                'lease.fencing',
                'false',
                before='    if (',
                after=') {\n        raise_for',
            ),
        ),
    ),
    Variant(
        43,
        'hand-over-raise-not-awaited',
        'the next holder has its token before a majority knows of it',
        profile='hand-over-raises',
        first=1,
        seeds=500,
        edits=(
            when(
                'raise.cpp',
                'if (lease.count.decide() == verdict::open) { win(next, lease, now); return; }',
                before='            lease.count.add(mine.said);\n        }\n    }\n',
                after='    decide(lease, now);\n',
            ),
        ),
    ),
    Variant(
        44,
        'old-holder-releases',
        'the holder before removes the keys of the lease that it handed over',
        profile='lines',
        first=1,
        seeds=500,
        edits=(
            instead(
                'removal.cpp',
                'if (lease->late || !hand_over(*lease, now)) {',
                '''const bool handed_over = !lease->late && hand_over(*lease, now);
    const claim* const given = claims_.find(name);
    for (std::size_t i = 0; %ON && handed_over && given != nullptr && i < masters_.size(); ++i) {
        if (masters_[i].link->up()) {
            write_removal(*given, masters_[i].link->commands(), rung::eval);
            send(i, scratch_, {.kind = command_kind::ping, .subject = {}}, now);
        }
    }
    if (!handed_over) {''',
            ),
        ),
    ),
    Variant(
        45,
        'hand-over-to-the-last',
        'a lease is handed to the last of the line',
        profile='lines',
        first=1,
        seeds=500,
        edits=(
            either(
                'waiting.cpp',
                'mine->head',
                'mine->tail',
                before='operations_.find(',
                after=');\n    const acquire_options& wants',
            ),
        ),
    ),
    Variant(
        46,
        'leaver-blocks-its-line',
        'who gives up at the head of a line does not make room for the next',
        profile='lines',
        first=1,
        seeds=500,
        edits=(
            instead(
                'waiting.cpp',
                'before == nullptr',
                'before == nullptr && !(%ON && wanted.stage == operation::phase::paused)',
                before='} else if (',
            ),
        ),
    ),
    Variant(
        47,
        'push-is-permission',
        'who hears that a lock is free believes that it has it',
        profile='lines',
        first=1,
        seeds=500,
        edits=(
            when(
                'pushes.cpp',
                '''
        if (next.stage == operation::phase::paused) {
            claim& given = new_claim(next, now);
            next.attempt = given.self;
            for (ballot& one : given.votes.of) {
                one.said = vote::granted;
                one.asked = true;
                one.until = guaranteed_until(now, given.ttl, rules_.drift);
            }
            win(next, given, now);
            return;
        }
    ''',
                before='    latest.acted_on = true;\n',
            ),
        ),
    ),
    Variant(
        48,
        'push-forgotten',
        'a push that comes behind a vote of the attempt that is under way is forgotten',
        profile='wake-ups',
        first=1,
        seeds=5000,
        edits=(either('pushes.cpp', 'asking', 'false', before='latest.again || ', after=';'),),
    ),
    Variant(
        49,
        'confirmation-is-no-hint',
        'what was published before a subscription is confirmed is missed',
        profile='wake-ups',
        first=1,
        seeds=2000,
        edits=(
            instead(
                'subscriber.cpp', 'hint(got, {}, now);', 'if (!%ON) { hint(got, {}, now); }'
            ),
        ),
    ),
    Variant(
        50,
        'own-line-not-woken',
        'the end of a lease is not told to the line of its own process',
        profile='own-lines',
        first=1,
        seeds=100,
        edits=(
            instead(
                'removal.cpp',
                'wake_line(*lease, now);',
                'if (!%ON) { wake_line(*lease, now); }',
            ),
            instead('lease.cpp', 'wake_line(lease, now);', 'if (!%ON) { wake_line(lease, now); }'),
        ),
    ),
    Variant(
        51,
        'listens-for-ever',
        'a channel is listened to when nobody waits any more',
        profile='wakes',
        first=1,
        seeds=100,
        edits=(
            instead(
                'pushes.cpp',
                '!std::exchange(waiters.watched, false)',
                '!std::exchange(waiters.watched, false) || %ON',
            ),
        ),
    ),
    Variant(
        60,
        'any-raise-counts',
        'the answer to the raise of an earlier hand-over counts for the token of the next',
        profile='late-raises',
        first=1,
        seeds=500,
        edits=(
            either(
                'raise.cpp',
                'got.counter < attempt.raise_to',
                'false',
                before='got.said == vote::granted && ',
            ),
        ),
    ),
    Variant(
        61,
        'late-grant-lasts-anew',
        'a grant that comes behind a hand-over is relied on for the ttl of the next holder',
        profile='late-grants',
        first=1,
        seeds=500,
        edits=(
            either(
                'attempt.cpp',
                'attempt.asked_ttl',
                'attempt.ttl',
                before='guaranteed_until(attempt.asked_at, ',
            ),
        ),
    ),
]
