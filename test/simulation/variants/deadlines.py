"""Wrong ways to tell until when a lease may be believed."""

from edits import Variant, at, either, instead, when

VARIANTS = [
    Variant(
        2,
        'no-drift',
        'nothing is allowed for the drift of clocks',
        profile='far-clocks',
        first=1,
        seeds=200,
        edits=(
            instead(
                'validity.hpp',
                'constexpr time_point\nguaranteed_until(',
                'inline time_point\nguaranteed_until(',
            ),
            either('validity.hpp', 'sent + ttl - drift.of(ttl)', 'sent + ttl'),
        ),
    ),
    Variant(
        3,
        'elapsed-not-subtracted',
        'the lease is counted from the deciding vote',
        profile='tight',
        first=1,
        seeds=1000,
        edits=(
            either(
                'attempt.cpp',
                'attempt.votes.lasts_until(rules_.quorum())',
                'guaranteed_until(now, attempt.ttl, rules_.drift)',
                before='lasts_until = std::min(',
            ),
        ),
    ),
    Variant(
        4,
        't0-after-sends',
        't0 is read after the sends: when the process gets round to it, with the first answer',
        profile='tight',
        first=1,
        seeds=4000,
        edits=(
            at(
                'claim.hpp',
                before='    round count;\n',
                new='    bool t0_read = false;\n',
            ),
            at(
                'attempt.cpp',
                before='    attempt.operation = wanted.self;\n',
                new='    attempt.t0_read = false;\n',
            ),
            when(
                'attempt.cpp',
                '''
        if (attempt.stage == claim::phase::asking && !attempt.t0_read) {
            attempt.t0_read = true;
            attempt.asked_at = now;
        }
    ''',
                after='    const bool straggles = attempt.stage == claim::phase::held;\n',
            ),
        ),
    ),
    Variant(
        5,
        'deadline-restarted-at-raise',
        'the lease is counted from the raise of the fencing counters',
        profile='guarded-tight',
        first=1,
        seeds=5000,
        edits=(
            when(
                'raise.cpp',
                '''
            for (ballot& one : attempt.votes.of) {
                if (one.until != never) {
                    one.until = guaranteed_until(now, attempt.ttl, rules_.drift);
                }
            }
        ''',
                before='        ++counters_.raised;\n',
            ),
        ),
    ),
    Variant(
        34,
        'monotonic-clock',
        "the holder's clock stands still while its machine is suspended",
        profile='clients',
        first=1,
        seeds=500,
        misuse=True,
    ),
    Variant(
        35,
        'believes-until-told',
        'the holder goes on until somebody tells it of a loss',
        profile='clients',
        first=1,
        seeds=500,
        misuse=True,
    ),
    Variant(
        38,
        'believes-while-releasing',
        'the holder goes on until its release is confirmed',
        profile='network',
        first=1,
        seeds=500,
        misuse=True,
    ),
]
