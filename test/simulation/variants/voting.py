"""Wrong ways to count votes, and to take back what was not won."""

from edits import Variant, at, either, instead, script, when

PLAIN_REMOVE = 'compare_and_delete'

# Whether a claim was ever a lease: its removal is a release then, and a rollback otherwise.
HELD_ONCE = (
    at(
        'claim.hpp',
        before='    phase stage = phase::asking;\n',
        new='    bool held_once = false;\n',
    ),
    at(
        'attempt.cpp',
        before='    attempt.stage = claim::phase::asking;\n',
        new='    attempt.held_once = false;\n',
    ),
    at(
        'attempt.cpp',
        before='    attempt.stage = claim::phase::held;\n',
        new='    attempt.held_once = true;\n',
    ),
)

# Both kinds of removal are written at one place.
UNCOMPARED = at(
    'removal.cpp',
    before='void engine::write_removal(const claim& ended, const ladder& commands, rung how) {\n'
    '    scratch_.clear();\n    channel_.clear();\n',
    new='''    if (variant::on(
            ended.held_once ? variant::release_without_compare
                            : variant::rollback_without_compare)) {
        append_command(
            scratch_,
            {"EVAL", "return redis.call('DEL', KEYS[1]) == 1 and 1 or -1", "1", ended.key});
        return;
    }
''',
)

OUTCOME_UNKNOWN = (
    '(mine.said == vote::pending || mine.said == vote::timed_out'
    ' || mine.said == vote::unreachable)'
)

VARIANTS = [
    Variant(
        1,
        'quorum-half',
        'a quorum is N/2',
        profile='network',
        first=1,
        seeds=100,
        edits=(
            either(
                'settings.hpp',
                'quorum_of(masters.size())',
                'std::max<std::size_t>(masters.size() / 2, 1)',
            ),
        ),
    ),
    Variant(
        6,
        'set-without-nx',
        'SET without NX',
        profile='calm',
        first=1,
        seeds=100,
        edits=(
            when(
                'command.cpp',
                'append_command(out, {"SET", key, token, "PX", decimal(ttl.count())}); return;',
                after='    append_command(out, {"SET", key, token, "NX", "PX",',
            ),
        ),
        scripts=(
            script(
                'guarded_acquire',
                ("local p = redis.call('PTTL', KEYS[1])\nif p ~= -2 then return {0, p, 0} end\n", ''),
                ("ARGV[1], 'NX', 'PX'", "ARGV[1], 'PX'"),
            ),
        ),
    ),
    Variant(
        7,
        'rollback-without-compare',
        'a rollback deletes whatever is there',
        profile='calm',
        first=1,
        seeds=100,
        edits=(*HELD_ONCE, UNCOMPARED),
    ),
    Variant(
        8,
        'release-without-compare',
        'a release, or the removal after a loss, deletes whatever is there',
        profile='clients',
        first=1,
        seeds=1000,
    ),
    Variant(
        9,
        'no-rollback-when-unknown',
        'no rollback on a master that has not answered',
        profile='long-leases',
        first=1,
        seeds=200,
        edits=(
            instead(
                'removal.cpp',
                'if (mine.asked) {',
                f'if (mine.asked && !(%ON && !ended.held_once && {OUTCOME_UNKNOWN})) {{',
            ),
        ),
    ),
    Variant(
        10,
        'rollback-unordered',
        'a rollback takes another connection than the SET, and may overtake it',
        profile='long-leases',
        first=1,
        seeds=200,
        edits=(
            when(
                'removal.cpp',
                f'''if (!ended.held_once && masters_[i].link->up() && {OUTCOME_UNKNOWN}) {{
                masters_[i].link->closed("the rollback takes another one", now);
                written = nullptr;
            }}''',
                before='            ++ended.owing;\n',
            ),
        ),
    ),
    Variant(
        29,
        'token-reused',
        'a retry uses the token of the attempt before',
        profile='retries',
        first=1,
        seeds=2000,
        edits=(
            at(
                'operation.hpp',
                before='    handle attempt;              // the claim of the last attempt\n',
                new='    std::array<char, 40> token{};\n',
            ),
            instead(
                'attempt.cpp',
                '    host_.random(secret);\n    write_hex(secret, attempt.token);\n',
                '''    if (%ON && wanted.attempts > 0) {
        attempt.token = wanted.token;
    } else {
        host_.random(secret);
        write_hex(secret, attempt.token);
        wanted.token = attempt.token;
    }
''',
            ),
        ),
    ),
    Variant(
        30,
        'older-grant-counted',
        'a grant of an older attempt is counted for the newer one',
        profile='retries',
        first=1,
        seeds=5000,
        edits=(
            at(
                'claim.hpp',
                before='    round count;\n    handle operation;\n',
                new='    handle begun_for;\n',
            ),
            at(
                'attempt.cpp',
                before='    attempt.operation = wanted.self;\n',
                new='    attempt.begun_for = wanted.self;\n',
            ),
            when(
                'replies.cpp',
                '''
            operation* const again = operations_.find(owner->begun_for);
            claim* const newer = again == nullptr ? nullptr : claims_.find(again->attempt);
            if (got.said == vote::granted && command.kind == command_kind::acquire
                && newer != nullptr && newer->stage == claim::phase::asking) {
                acquire_answered(*newer, master, got, now);
            }
        ''',
                after='        return; // it is given up or lost, and the removal comes after',
            ),
        ),
    ),
    Variant(
        31,
        'busy-counted',
        'a busy reply is counted as a grant',
        profile='calm',
        first=1,
        seeds=100,
        edits=(
            either(
                'answer.cpp',
                'vote::held',
                'vote::granted',
                before='reply_type::nil ? ',
            ),
            either('answer.cpp', 'vote::held', 'vote::granted', before='out.said = '),
        ),
    ),
    Variant(
        32,
        'no-late-check',
        'a command may be executed however late',
        profile='guarded-in-flight',
        first=1,
        seeds=200,
        edits=(
            either(
                'connection.hpp',
                'clock_.not_after(moment, rules_)',
                'std::int64_t{0}',
            ),
        ),
    ),
    Variant(
        33,
        'set-then-pexpire',
        'SET NX, and PEXPIRE once that has succeeded',
        profile='clients',
        first=1,
        seeds=500,
        edits=(
            when(
                'command.cpp',
                'append_command(out, {"SET", key, token, "NX"}); return;',
                after='    append_command(out, {"SET", key, token, "NX", "PX",',
            ),
            when(
                'attempt.cpp',
                '''
        if (what == vote::granted && !rules_.guarded()) {
            scratch_.clear();
            append_command(
                scratch_, {"PEXPIRE", attempt.key, std::to_string(attempt.ttl.count())});
            send(master, scratch_, {.kind = command_kind::ping, .subject = {}}, now);
        }
    ''',
                after='    if (what == vote::granted) {\n        mine.confirm(',
            ),
        ),
    ),
    Variant(
        36,
        'fewer-masters',
        'one client is configured with fewer masters',
        profile='calm',
        first=1,
        seeds=500,
        misuse=True,
    ),
]
