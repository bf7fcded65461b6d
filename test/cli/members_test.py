#!/usr/bin/env python3
"""`redlock members`: members_test.py REDLOCK [CASE...]"""

import json
import pathlib
import re
import signal
import time

import harness
from harness import BROKEN, CONFIGURATION, LOST, NO_QUORUM, USAGE, WARNINGS, case, contains, ended, equal, main, until

SHORT = {'REDLOCK_MAX_TTL': '1s', 'REDLOCK_TTL': '900ms', 'REDLOCK_CLOCK_OFFSET_BOUND': '50ms'}


def listed(quorum, *which):
    return harness.listed(*(quorum.masters[i] for i in which))


def founded(quorum, *which, max_ttl='1s'):
    """A quorum of these masters, with a quarantine that is soon over."""
    quorum.env |= SHORT | {'REDLOCK_MAX_TTL': max_ttl}
    ended(quorum.run('run', '--wait', '30s', 'founding', '--', 'true', env=listed(quorum, *which)), 0)


def record(master):
    return (master.ask('GET', 'redlock::epoch') or '').split()


def reported(process, *parts):
    """Reads the progress until a line has these parts."""
    assert any(all(part in line for part in parts) for line in process.stderr), f'ended before {parts}'


def killed_after(process, *parts):
    reported(process, *parts)
    process.kill()
    process.wait()


def findings(quorum, *which):
    """What `doctor` finds on the members: (severity, what, what to do)."""
    result = quorum.run('doctor', '--json', '--clock-time', '20ms', env=listed(quorum, *which))
    return [(one['severity'], one['what'], one['change'])
            for one in json.loads(result.stdout)['findings'] if one['check'] == 'members']


def names(quorum, *which):
    return sorted(quorum.masters[i].name for i in which)


def members(quorum, *which):
    shown = json.loads(ended(quorum.run('--json', 'members', env=listed(quorum, *which)), 0).stdout)
    return shown['generation'], shown['members']


@case('members are shown, doctor finds a master that is none, and it is added', 4)
def _(quorum):
    founded(quorum, 0, 1, 2)
    equal(members(quorum, 0, 1, 2), (1, names(quorum, 0, 1, 2)))
    both = listed(quorum, 0, 1, 2, 3)
    new = quorum.masters[3].name
    equal(findings(quorum, 0, 1, 2, 3), [
        ('warning', 'is not a member of the quorum: its vote does not count',
         f'redlock members add {new}, or remove it from --masters')])
    diagnosis = quorum.run('doctor', '--clock-time', '20ms', env=both).stdout
    equal([word in diagnosis for word in ('broken', '[quorum]')], [False, False])
    dry = ended(quorum.run('members', 'add', new, '--dry-run', env=both), 0)
    contains(dry.stderr, 'would make generation 2')
    equal(members(quorum, 0, 1, 2), (1, names(quorum, 0, 1, 2)))
    contains(ended(quorum.run('members', 'add', new, env=both), 0).stdout, 'generation 2: ')


@case('replace adds the new master and then removes the old one, and is continued after a kill', 4)
def _(quorum):
    founded(quorum, 0, 1, 2)
    both = listed(quorum, 0, 1, 2, 3)
    old, new = quorum.masters[0].name, quorum.masters[3].name
    for said in (f'add {new}: planned on all masters', f'remove {old}: planned on all masters'):
        killed_after(quorum.start('members', 'replace', old, new, env=both), said)
    contains(ended(quorum.run('members', 'replace', old, new, env=both), 0).stdout, 'generation 3: ')
    equal(members(quorum, 1, 2, 3), (3, names(quorum, 1, 2, 3)))
    ended(quorum.run('run', '--wait', '20s', 'a', '--', 'true', env=listed(quorum, 1, 2, 3)), 0)
    again = ended(quorum.run('members', 'replace', old, new, env=both), 0)
    contains(again.stderr, f'{new} is a member already', f'{old} is not a member')


@case('a change that cannot be made is refused at once, and nothing is planned', 5)
def _(quorum):
    founded(quorum, 0, 1, 2)
    equal(members(quorum, 0, 1, 2), (1, names(quorum, 0, 1, 2)))
    name = [master.name for master in quorum.masters]
    for arguments, which, said in (
            (('remove', name[2]), (0, 1, 2, 3), 'more than half'),
            (('add', name[3]), (0, 1, 3), 'is a member, and not in the list'),
            (('add',), (0, 1, 2), 'which master?'),
            (('add', name[3], name[4]), (0, 1, 2, 3, 4), 'which master?'),
            (('replace', name[0]), (0, 1, 2, 3), 'which master?'),
            (('replace', name[0], name[0]), (0, 1, 2, 3), 'by itself'),
            (('swap', name[3]), (0, 1, 2, 3), 'swap')):
        contains(ended(quorum.run('members', *arguments, env=listed(quorum, *which)), USAGE).stderr, said)
    wrong = quorum.run('members', 'add', name[3], env=listed(quorum, 0, 3, 4))
    contains(ended(wrong, NO_QUORUM).stderr, 'not known')
    plain = quorum.run('--protocol', 'plain', 'members', env=listed(quorum, 0, 1, 2))
    contains(ended(plain, NO_QUORUM).stdout, 'plain protocol has none')
    equal(members(quorum, 0, 1, 2), (1, names(quorum, 0, 1, 2)))
    founded(quorum, 4)
    grows = quorum.run('members', 'add', name[3], env=listed(quorum, 4, 3))
    contains(ended(grows, NO_QUORUM).stderr, 'a quorum of one master cannot grow. Leave out a master that was removed. To found')


@case('commands that only show something found no quorum, and raise no recorded quarantine', 3)
def _(quorum):
    shown = (['status', 'a'], ['members'], ['members', 'remove', quorum.masters[0].name, '--dry-run'], ['doctor', '--clock-time', '20ms'])
    for words, said in zip(shown, ('a: free', 'the members are not known', 'not founded', 'not founded')):
        result = quorum.run(*words)
        contains(result.stdout + result.stderr, said)
    ended(quorum.run('members', 'remove', quorum.masters[0].name), NO_QUORUM)
    for master in quorum.masters:
        equal(len(record(master)[-1]), 32) # no list
    del quorum.env['REDLOCK_NO_QUARANTINE']
    founded(quorum, 0, 1, 2)
    before = [record(master)[4] for master in quorum.masters]
    for words in shown:
        result = quorum.run(*words, env={'REDLOCK_MAX_TTL': '1h'})
        assert result.returncode in (0, WARNINGS), result
    equal([record(master)[4] for master in quorum.masters], before)


@case('a change that is not final is named with the command that finishes it, and others are refused until then', 5)
def _(quorum):
    founded(quorum, 0, 1, 2, 3, max_ttl='3s')
    equal(findings(quorum, 0, 1, 2, 3), [])
    new, other = quorum.masters[4].name, quorum.masters[0].name
    command = ('members', 'add', new)
    killed_after(quorum.start(*command), 'planned on all masters; final in')
    [(severity, what, change)] = findings(quorum, 0, 1, 2, 3, 4)
    equal(severity, 'warning')
    contains(what, f'not final: add {new}, planned on', *names(quorum, 0, 1, 2, 3, 4))
    contains(change, 'redlock ' + ' '.join(command))
    contains(ended(quorum.run('members', env=listed(quorum, 0, 1, 2, 3)), 0).stdout, f'change: add {new} (planned on ')
    for words in (['remove', new], ['remove', other, '--dry-run']): # the opposite, which may become final, and another
        contains(ended(quorum.run('members', *words), NO_QUORUM).stderr,
                 f'add {new} is planned on', f'finish it with redlock members add {new}')
    waits = quorum.start('members', 'remove', other)
    reported(waits, 'waits for another change', f'(add {new}); if nobody makes that one any more, make it first')
    waits.terminate()
    equal(waits.wait(), -signal.SIGTERM)
    ended(quorum.run(*command), 0)
    equal(findings(quorum, 0, 1, 2, 3, 4), [])


@case('a dry run refuses a master with an old record, and names one that the change would wait for', 5)
def _(quorum):
    founded(quorum, 0, 1, 2)
    old, other = quorum.masters[3].name, quorum.masters[4].name
    for name, which in ((old, (0, 1, 2, 3)), (other, (0, 1, 2, 4))):
        for action in ('add', 'remove'):
            ended(quorum.run('members', action, name, env=listed(quorum, *which)), 0)
    quorum.masters[4].ask('FLUSHALL')
    using = listed(quorum, 3, 0, 1, 2)
    contains(ended(quorum.run('members', 'add', old, '--dry-run', env=using), NO_QUORUM).stderr, 'generation 3): empty it first')
    adds = quorum.start('members', 'add', old, env=using)
    reported(adds, 'empty it first')
    quorum.masters[3].ask('FLUSHALL')
    equal(adds.wait(60), 0)
    ended(quorum.run('members', 'remove', old, env=using), 0)
    quorum.masters[1].kill()
    shown = ended(quorum.run('members', 'add', other, '--dry-run', env=listed(quorum, 0, 1, 2, 4)), 0)
    contains(shown.stderr, f'it would wait for {quorum.masters[1].name}: ', 'Connection refused')


def guest(quorum, max_ttl):
    """From now on commands have no max_ttl of their own, and a quarantine; the quorum has this one."""
    for name in ('REDLOCK_MAX_TTL', 'REDLOCK_TTL', 'REDLOCK_NO_QUARANTINE'):
        quorum.env.pop(name, None)
    quorum.env['REDLOCK_CLOCK_OFFSET_BOUND'] = '50ms'
    ended(quorum.run('run', '--max-ttl', max_ttl, '--ttl', '900ms', '--wait', '30s', 'founding', '--', 'true'), 0)


@case('a command without --max-ttl takes the max_ttl of the quorum, and leaves it as it is')
def _(quorum):
    guest(quorum, '1s')
    records = [record(master) for master in quorum.masters]
    for command in (['run', 'a', '--', 'true'], ['doctor', '--clock-time', '20ms'], ['acquire', 'b']):
        quorum.run(*command)
        equal([record(master) for master in quorum.masters], records)
    ended(quorum.run('run', '--wait', 'none', 'a', '--', 'true'), 0)
    refused = ended(quorum.run('run', '--wait', 'none', '--ttl', '5s', 'a', '--', 'true'), CONFIGURATION)
    contains(refused.stderr, 'ttl is 5000 ms', '1000 ms')
    contains(ended(quorum.run('members'), 0).stdout, 'max_ttl 1s, quarantine 1s122ms')
    # A longer one excludes the masters, which are young, and is called the reason.
    raised = quorum.run('run', '--max-ttl', '1h', '--wait', 'none', 'a', '--', 'true')
    contains(raised.stderr, 'a longer max_ttl was set')
    equal('restarted' in raised.stderr, False)


@case('max_ttl is raised and lowered while locks are taken')
def _(quorum):
    guest(quorum, '2s')
    token = ended(quorum.run('acquire', '--ttl', '2s', 'kept'), 0).stdout.strip()
    begun = time.monotonic()
    lowers = ended(quorum.run('members', 'max-ttl', '500ms'), 0)
    equal(time.monotonic() - begun > 2, True)
    contains(lowers.stderr, 'more than 250ms will stop', 'max-ttl 500ms: planned on all masters')
    contains(lowers.stdout, 'max_ttl 500ms, quarantine 612ms')
    equal({record(master)[4] for master in quorum.masters}, {'612000'})
    ended(quorum.run('extend', 'kept', '--token', token), LOST)
    refused = quorum.run('run', '--wait', 'none', '--ttl', '501ms', 'a', '--', 'true')
    contains(ended(refused, CONFIGURATION).stderr, "500 ms, the quorum's max_ttl", 'use a shorter --ttl, or `redlock members max-ttl')
    ended(quorum.run('run', '--wait', '5s', 'a', '--', 'true'), 0)
    contains(ended(quorum.run('members', 'max-ttl', '500ms'), 0).stderr, 'max_ttl is 500ms already')
    offset = quorum.run('--clock-offset-bound', '1h', 'run', '--wait', 'none', 'a', '--', 'true')
    contains(ended(offset, NO_QUORUM).stderr, 'clock_offset_bound leaves no ttl')
    contains(ended(quorum.run('members', 'max-ttl', '0s'), 203).stderr, 'TTL is 0s; allowed: 10ms to 1d')
    contains(ended(quorum.run('--max-ttl', '1s', 'members', 'max-ttl', '3s'), 0).stdout, 'max_ttl 3s')
    ended(quorum.run('run', '--ttl', '3s', '--wait', '10s', 'a', '--', 'true'), 0)
    ended(quorum.run('members', 'max-ttl'), USAGE)


@case('the runbook shortens a quarantine that is too long')
def _(quorum):
    page = pathlib.Path(__file__).parents[2] / 'docs/operations/runbooks.md'
    script = re.search(r'EVAL "(.*?)" 1 redlock::epoch', page.read_text(), re.DOTALL)[1]
    del quorum.env['REDLOCK_NO_QUARANTINE']
    founded(quorum, 0, 1, 2)
    [before] = {record(master)[4] for master in quorum.masters}
    ended(quorum.run('run', '--wait', 'none', '--max-ttl', '1h', '--ttl', '900ms', 'a', '--', 'true'), NO_QUORUM)
    equal({int(record(master)[4]) > 3_600_000_000 for master in quorum.masters}, {True})
    quorum.everywhere('ask', 'EVAL', script, '1', 'redlock::epoch')
    founded(quorum, 0, 1, 2)
    equal({record(master)[4] for master in quorum.masters}, {before})


@case('an outdated list is called so', 5)
def _(quorum):
    founded(quorum, 0, 1, 2)
    for action, which, using in (('add', 3, (0, 1, 2, 3)), ('remove', 0, (0, 1, 2, 3)),
                                 ('add', 4, (1, 2, 3, 4)), ('remove', 1, (1, 2, 3, 4))):
        ended(quorum.run('members', action, quorum.masters[which].name, env=listed(quorum, *using)), 0)
    equal(members(quorum, 2, 3, 4), (5, names(quorum, 2, 3, 4)))
    old = listed(quorum, 0, 1, 2)
    contains(ended(quorum.run('members', env=old), NO_QUORUM).stdout,
             'this list of masters is outdated', 'have changed to ' + ', '.join(names(quorum, 2, 3, 4)))
    equal(json.loads(ended(quorum.run('--json', 'members', env=old), NO_QUORUM).stdout)['outdated'], True)
    refused = quorum.run('members', 'remove', quorum.masters[0].name, env=old)
    contains(ended(refused, NO_QUORUM).stderr, 'is outdated')
    contains(ended(quorum.run('doctor', '--clock-time', '20ms', env=old), BROKEN).stdout, '[members] this list of masters is outdated')
    # A master that was removed, and still runs.
    [(severity, what, change)] = findings(quorum, 1, 2, 3, 4)
    contains(what, 'is not a member, and has a memory record of generation 5')
    contains(change, 'if it is a member under another name')


@case('a mistyped address is told at once and leaves nothing behind: the corrected list founds the quorum, and --new spares the quarantine')
def _(quorum):
    quorum.env |= SHORT
    right = listed(quorum, 0, 1, 2)
    first, second, _ = quorum.masters
    typo = harness.listed(first, second, 'redis://127.0.0.1:1')
    twice = harness.listed(first, second, first.url.replace('127.0.0.1', 'localhost'))
    contains(ended(quorum.run('members', 'found', '--new', env=twice), USAGE).stderr, 'the same server')
    founding, said = quorum.start('members', 'found', '--new', env=typo), ''
    while 'check its port' not in said: # or the time limit of the suite
        said += founding.stderr.readline()
    contains(said, 'missing: 127.0.0.1:1', 'refused')
    founding.kill()
    told = ended(quorum.run('run', '--wait', '300ms', 'a', '--', 'true', env=typo), NO_QUORUM).stderr
    contains(told, 'missing: 127.0.0.1:1')
    equal([(record(one)[4], len(record(one)[-1])) for one in quorum.masters[:2]], [('0', 32), ('0', 32)])
    dry = ended(quorum.run('members', 'found', '--dry-run', env=right), 0)
    contains(dry.stderr, 'it would found the quorum')
    contains(ended(quorum.run('members', 'found', '--new', env=right), 0).stdout, 'generation 1: ')
    equal([record(one)[3] for one in quorum.masters], ['0', '0', '0'])
    ended(quorum.run('run', '--wait', 'none', 'a', '--', 'true', env=right), 0)
    contains(ended(quorum.run('members', 'found', env=right), 0).stderr, 'founded already')
    for other in (typo, listed(quorum, 0, 1), listed(quorum, 0)):
        contains(ended(quorum.run('members', 'found', env=other), NO_QUORUM).stderr, 'is not replaced (correct --masters')
    contains(ended(quorum.run('members', 'found', 'a', env=right), USAGE).stderr, '--masters')
    contains(ended(quorum.run('members', 'add', 'a', '--new', env=right), USAGE).stderr, 'members found')


def interrupted(master, state):
    """As if the client that founded the quorum had gone away before the list was final on this master."""
    words = record(master)
    words[-1] = words[-1][:32] + state + words[-1][33:]
    master.ask('SET', 'redlock::epoch', ' '.join(words))


@case('a founding that was interrupted is replaced by another list at once, or finished', 4)
def _(quorum):
    founded(quorum, 0, 1, 3)
    interrupted(quorum.masters[1], '4')
    again = ended(quorum.run('members', 'found', env=listed(quorum, 0, 1, 3)), 0)
    equal(record(quorum.masters[1])[-1][32], '1')
    equal('final yet' in again.stdout, False)
    interrupted(quorum.masters[1], '4')  # all masters had that list: anybody makes it final
    until(lambda: quorum.run('members', env=listed(quorum, 0, 1, 3)) and record(quorum.masters[1])[-1][32] == '1')
    for one in quorum.masters[:2]:
        interrupted(one, '0')
    quorum.masters[3].kill()
    right = listed(quorum, 0, 1, 2)
    told = ended(quorum.run('run', '--wait', '300ms', 'a', '--', 'true', env=right), NO_QUORUM).stderr
    contains(told, 'redlock members found', quorum.masters[3].name)
    contains(ended(quorum.run('members', 'found', '--new', env=right), 0).stdout, 'generation 1: ')
    ended(quorum.run('run', '--wait', 'none', 'a', '--', 'true', env=right), 0)


if __name__ == '__main__':
    main()
