#!/usr/bin/env python3
"""`redlock members`: members_test.py REDLOCK [CASE...]"""

import json
import pathlib
import re
import secrets
import signal
import time

from harness import BROKEN, CONFIGURATION, LOST, NO_QUORUM, USAGE, Quorum, case, contains, ended, equal, main, until

SHORT = {'REDLOCK_MAX_TTL': '1s', 'REDLOCK_TTL': '900ms', 'REDLOCK_CLOCK_OFFSET_BOUND': '50ms'}


def listed(quorum, *which):
    return {'REDLOCK_MASTERS': ','.join(quorum.masters[i].url for i in which)}


def founded(quorum, *which):
    ended(quorum.run('run', '--wait', '30s', 'founding', '--', 'true', env=listed(quorum, *which)), 0)


def record(master):
    return (master.ask('GET', 'redlock::epoch') or '').split()


def put_list(master, state, text):
    """Gives the record of this master another list."""
    words = record(master)
    words[-1] = secrets.token_hex(16) + state + text.encode().hex()
    master.ask('SET', 'redlock::epoch', ' '.join(words))


def reported(process, *parts):
    """Reads the progress until a line has these parts."""
    for line in process.stderr:
        if all(part in line for part in parts):
            return line
    raise AssertionError(f'ended before {parts}')


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


@case('members are shown, and a master is replaced', 4)
def _(quorum):
    quorum.env |= SHORT
    founded(quorum, 0, 1, 2)
    equal(members(quorum, 0, 1, 2), (1, names(quorum, 0, 1, 2)))
    both = listed(quorum, 0, 1, 2, 3)
    new, old = quorum.masters[3].name, quorum.masters[0].name
    equal(findings(quorum, 0, 1, 2, 3), [
        ('warning', 'is not a member of the quorum: its vote does not count',
         f'redlock members add {new}, or remove it from --masters')])
    diagnosis = quorum.run('doctor', '--clock-time', '20ms', env=both).stdout
    equal([word in diagnosis for word in ('broken', '[quorum]')], [False, False])
    dry = ended(quorum.run('members', 'add', new, '--dry-run', env=both), 0)
    contains(dry.stderr, 'would make generation 2')
    equal(members(quorum, 0, 1, 2), (1, names(quorum, 0, 1, 2)))
    contains(ended(quorum.run('members', 'add', new, env=both), 0).stdout, 'generation 2: ')
    quorum.masters[0].kill()
    contains(ended(quorum.run('members', 'remove', old, env=both), 0).stdout, 'generation 3: ')
    equal(members(quorum, 1, 2, 3), (3, names(quorum, 1, 2, 3)))
    ended(quorum.run('run', '--wait', '20s', 'a', '--', 'true', env=listed(quorum, 1, 2, 3)), 0)
    # Made already.
    contains(ended(quorum.run('members', 'add', new, env=both), 0).stderr, 'is a member already')
    contains(ended(quorum.run('members', 'remove', old, env=both), 0).stderr, 'is not a member')


@case('replace adds the new master and then removes the old one, and is continued after a kill', 4)
def _(quorum):
    quorum.env |= SHORT
    founded(quorum, 0, 1, 2)
    both = listed(quorum, 0, 1, 2, 3)
    old, new = quorum.masters[0].name, quorum.masters[3].name
    dry = ended(quorum.run('members', 'replace', old, new, '--dry-run', env=both), 0)
    contains(dry.stderr, f'add {new} would make generation 2', f'remove {old} would make generation 3')
    equal(members(quorum, 0, 1, 2), (1, names(quorum, 0, 1, 2)))
    for said in (f'add {new}: planned on all masters', f'remove {old}: planned on all masters'):
        replaces = quorum.start('members', 'replace', old, new, env=both)
        reported(replaces, said)
        replaces.kill()
        replaces.wait()
    contains(ended(quorum.run('members', 'replace', old, new, env=both), 0).stdout, 'generation 3: ')
    equal(members(quorum, 1, 2, 3), (3, names(quorum, 1, 2, 3)))
    again = ended(quorum.run('members', 'replace', old, new, env=both), 0)
    contains(again.stderr, f'{new} is a member already', f'{old} is not a member')


@case('replace removes a dead master before it adds the new one', 6)
def _(quorum):
    quorum.env |= SHORT
    founded(quorum, 0, 1, 2, 3, 4)
    old, new = quorum.masters[0].name, quorum.masters[5].name
    quorum.masters[0].kill()
    dry = ended(quorum.run('members', 'replace', old, new, '--dry-run'), 0)
    contains(dry.stderr, f'remove {old} would make generation 2', f'add {new} would make generation 3')
    ended(quorum.run('members', 'replace', old, new), 0)
    equal(members(quorum, 1, 2, 3, 4, 5), (3, names(quorum, 1, 2, 3, 4, 5)))


@case('a dead master of three is not replaced with a list of four', 4)
def _(quorum):
    quorum.env |= SHORT
    founded(quorum, 0, 1, 2)
    quorum.masters[0].kill()
    old, new = quorum.masters[0].name, quorum.masters[3].name
    refused = ended(quorum.run('members', 'replace', old, new), USAGE)
    contains(refused.stderr, '2 members would be left', 'Remove it with a list without the new master, then add that one')
    ended(quorum.run('members', 'remove', old, env=listed(quorum, 0, 1, 2)), 0)
    ended(quorum.run('members', 'add', new, env=listed(quorum, 1, 2, 3)), 0)
    equal(members(quorum, 1, 2, 3), (3, names(quorum, 1, 2, 3)))


@case('a change that cannot be made is refused at once, and nothing is planned', 5)
def _(quorum):
    quorum.env |= SHORT
    founded(quorum, 0, 1, 2)
    equal(members(quorum, 0, 1, 2), (1, names(quorum, 0, 1, 2)))
    name = [master.name for master in quorum.masters]
    for arguments, which, said in (
            (('remove', name[2]), (0, 1, 2, 3), 'more than half'),
            (('add', name[3]), (0, 1, 3), 'is a member, and not in the list'),
            (('add', 'localhost:1'), (0, 1, 2, 3), 'must be in the list of masters'),
            (('remove', name[2].replace('127.0.0.1', 'localhost')), (0, 1, 2), 'must be in the list of masters'),
            (('add',), (0, 1, 2), 'which master?'),
            (('add', name[3], name[4]), (0, 1, 2, 3, 4), 'which master?'),
            (('replace', name[0]), (0, 1, 2, 3), 'which master?'),
            (('replace', name[0], name[0]), (0, 1, 2, 3), 'by itself'),
            (('replace', name[0], name[3]), (0, 1, 2), 'must be in the list of masters'),
            (('swap', name[3]), (0, 1, 2, 3), 'swap')):
        contains(ended(quorum.run('members', *arguments, env=listed(quorum, *which)), USAGE).stderr, said)
    wrong = quorum.run('members', 'add', name[3], env=listed(quorum, 0, 3, 4))
    contains(ended(wrong, NO_QUORUM).stderr, 'not known')
    plain = quorum.run('--protocol', 'plain', 'members', env=listed(quorum, 0, 1, 2))
    contains(ended(plain, NO_QUORUM).stdout, 'plain protocol has none')
    equal(members(quorum, 0, 1, 2), (1, names(quorum, 0, 1, 2)))


@case('a quorum of two cannot lose one', 2)
def _(quorum):
    quorum.env |= SHORT
    founded(quorum, 0, 1)
    refused = quorum.run('members', 'remove', quorum.masters[0].name, env=listed(quorum, 0, 1))
    contains(ended(refused, USAGE).stderr, 'cannot lose one')


@case('a quorum of one cannot grow', 2)
def _(quorum):
    quorum.env |= SHORT
    founded(quorum, 0)
    refused = quorum.run('members', 'add', quorum.masters[1].name, env=listed(quorum, 0, 1))
    contains(ended(refused, NO_QUORUM).stderr, 'a quorum of one master cannot grow. To found another list, see docs/')


@case('commands that only show something found no quorum', 3)
def _(quorum):
    contains(ended(quorum.run('members'), NO_QUORUM).stdout, 'the members are not known')
    contains(ended(quorum.run('members', 'remove', quorum.masters[0].name, '--dry-run'), NO_QUORUM).stderr, 'not founded')
    ended(quorum.run('members', 'remove', quorum.masters[0].name), NO_QUORUM)
    ended(quorum.run('status', 'a'), 0)
    for master in quorum.masters:
        equal(len(record(master)[-1]), 32) # no list
    founded(quorum, 0, 1, 2)
    equal(members(quorum, 0, 1, 2), (1, names(quorum, 0, 1, 2)))


@case('commands that only show something do not raise the recorded quarantine', 3)
def _(quorum):
    quorum.env |= SHORT
    del quorum.env['REDLOCK_NO_QUARANTINE']
    founded(quorum, 0, 1, 2)
    before = [record(master)[4] for master in quorum.masters]
    longer = {'REDLOCK_MAX_TTL': '1h'}
    ended(quorum.run('status', 'a', env=longer), 0)
    ended(quorum.run('members', env=longer), 0)
    ended(quorum.run('members', 'remove', quorum.masters[0].name, '--dry-run', env=longer), 0)
    equal([record(master)[4] for master in quorum.masters], before)


@case('a change names the master that it waits for, and goes on when that is back', 4)
def _(quorum):
    quorum.env |= SHORT
    founded(quorum, 0, 1, 2)
    quorum.masters[1].kill()
    adds = quorum.start('members', 'add', quorum.masters[3].name, env=listed(quorum, 0, 1, 2, 3))
    reported(adds, 'waits for', quorum.masters[1].name, 'Connection refused')
    equal(len(record(quorum.masters[0])[-1]), len(record(quorum.masters[2])[-1])) # nothing is planned
    until(quorum.masters[1].start)
    equal(adds.wait(60), 0)
    equal(members(quorum, 0, 1, 2, 3), (2, names(quorum, 0, 1, 2, 3)))


@case('doctor finds a change that is not final, and names the command that finishes it', 4)
def _(quorum):
    quorum.env |= SHORT | {'REDLOCK_MAX_TTL': '3s'}
    founded(quorum, 0, 1, 2)
    equal(findings(quorum, 0, 1, 2), [])
    command = ('members', 'add', quorum.masters[3].name)
    adds = quorum.start(*command, env=listed(quorum, 0, 1, 2, 3))
    reported(adds, 'planned on all masters; final in')
    adds.kill()
    adds.wait()
    [(severity, what, change)] = findings(quorum, 0, 1, 2, 3)
    equal(severity, 'warning')
    contains(what, f'not final: add {quorum.masters[3].name}, planned on', *names(quorum, 0, 1, 2, 3))
    contains(change, 'redlock ' + ' '.join(command))
    contains(ended(quorum.run('members', env=listed(quorum, 0, 1, 2)), 0).stdout, f'change: add {quorum.masters[3].name} (planned on ')
    ended(quorum.run(*command, env=listed(quorum, 0, 1, 2, 3)), 0)
    equal(findings(quorum, 0, 1, 2, 3), [])


@case('the opposite of a change that is planned is refused, as that may become final', 4)
def _(quorum):
    quorum.env |= SHORT | {'REDLOCK_MAX_TTL': '3s'}
    founded(quorum, 0, 1, 2)
    both, new = listed(quorum, 0, 1, 2, 3), quorum.masters[3].name
    adds = quorum.start('members', 'add', new, env=both)
    reported(adds, 'planned on all masters; final in')
    adds.kill()
    adds.wait()
    contains(ended(quorum.run('members', 'remove', new, env=both), NO_QUORUM).stderr,
             f'add {new} is planned on', f'finish it with redlock members add {new}')


@case('a dry run refuses a master with an old record, and names one that the change would wait for', 5)
def _(quorum):
    quorum.env |= SHORT
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


@case('a change beside another plan is not shown as one that can be made', 5)
def _(quorum):
    quorum.env |= SHORT | {'REDLOCK_MAX_TTL': '3s'}
    founded(quorum, 0, 1, 2, 3)
    new, other = quorum.masters[4].name, quorum.masters[0].name
    adds = quorum.start('members', 'add', new)
    reported(adds, 'planned on all masters; final in')
    adds.kill()
    adds.wait()
    contains(ended(quorum.run('members', 'remove', other, '--dry-run'), NO_QUORUM).stderr,
             f'add {new} is planned on', f'finish it with redlock members add {new}')
    removes = quorum.start('members', 'remove', other)
    reported(removes, 'waits for another change', f'(add {new}); if nobody makes that one any more, make it first')
    removes.kill()
    removes.wait()


@case('a lock is extended and released while the members change', 4)
def _(quorum):
    quorum.env |= SHORT
    founded(quorum, 0, 1, 2)
    replaces = quorum.start('members', 'replace', quorum.masters[0].name, quorum.masters[3].name)
    while replaces.poll() is None:
        token = ended(quorum.run('acquire', '--wait', '20s', 'a'), 0).stdout.strip()
        for _ in range(5):
            ended(quorum.run('extend', 'a', '--token', token), 0)
        ended(quorum.run('release', 'a', '--token', token), 0)
    equal(replaces.returncode, 0)


@case('a lock that has only half of the members after a change is extended, and nobody else gets it', 4)
def _(quorum):
    quorum.env |= SHORT | {'REDLOCK_MAX_TTL': '20s', 'REDLOCK_TTL': '15s'}
    founded(quorum, 0, 1, 2, 3)
    token = ended(quorum.run('acquire', '--wait', '20s', 'a'), 0).stdout.strip()
    for master in quorum.masters[2:]: # as if these had a vote only since
        until(lambda master=master: master.ask('GET', 'redlock:{a}') == token)
        master.ask('DEL', 'redlock:{a}')
    ended(quorum.run('extend', 'a', '--token', token), 0)
    for master in quorum.masters:
        until(lambda master=master: master.ask('GET', 'redlock:{a}') == token)
    for master in quorum.masters[1:]: # less than half
        master.ask('DEL', 'redlock:{a}')
    ended(quorum.run('extend', 'a', '--token', token), LOST)


@case('a change that was stopped is not made again after another process made it and a third one undid it', 4)
def _(quorum):
    quorum.env |= SHORT
    founded(quorum, 0, 1, 2)
    both, new = listed(quorum, 0, 1, 2, 3), quorum.masters[3].name
    adds = quorum.start('members', 'add', new, env=both)
    reported(adds, 'planned on')
    adds.send_signal(signal.SIGSTOP)
    for action in ('add', 'remove'):
        ended(quorum.run('members', action, new, env=both), 0)
    adds.send_signal(signal.SIGCONT)
    equal(adds.wait(60), NO_QUORUM)
    contains(adds.stderr.read(), 'begin the change again if it is still wanted')
    equal(members(quorum, 0, 1, 2), (3, names(quorum, 0, 1, 2)))


# Commands without a max_ttl of their own, and with a quarantine.
def guest_of(quorum):
    for name in ('REDLOCK_MAX_TTL', 'REDLOCK_TTL', 'REDLOCK_NO_QUARANTINE'):
        quorum.env.pop(name, None)
    quorum.env['REDLOCK_CLOCK_OFFSET_BOUND'] = '50ms'


@case('a command without --max-ttl takes the max_ttl of the quorum, and leaves it as it is')
def _():
    with Quorum(3) as quorum:
        guest_of(quorum)
        ended(quorum.run('run', '--max-ttl', '1s', '--ttl', '900ms', '--wait', '30s', 'founding', '--', 'true'), 0)
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
def _():
    with Quorum(3) as quorum:
        guest_of(quorum)
        ended(quorum.run('run', '--max-ttl', '2s', '--ttl', '900ms', '--wait', '30s', 'founding', '--', 'true'), 0)
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
        ended(quorum.run('members', 'max-ttl', '9ms'), USAGE)
        ended(quorum.run('members', 'max-ttl'), USAGE)


@case('the runbook shortens a quarantine that is too long')
def _():
    page = pathlib.Path(__file__).parents[2] / 'docs/operations/runbooks.md'
    script = re.search(r'EVAL "(.*?)" 1 redlock::epoch', page.read_text(), re.DOTALL)[1]
    with Quorum(3) as quorum:
        quorum.env |= SHORT
        del quorum.env['REDLOCK_NO_QUARANTINE']
        founded(quorum, 0, 1, 2)
        [before] = {record(master)[4] for master in quorum.masters}
        ended(quorum.run('run', '--wait', 'none', '--max-ttl', '1h', '--ttl', '900ms', 'a', '--', 'true'), NO_QUORUM)
        equal({int(record(master)[4]) > 3_600_000_000 for master in quorum.masters}, {True})
        for master in quorum.masters:
            master.ask('EVAL', script, '1', 'redlock::epoch')
        founded(quorum, 0, 1, 2)
        equal({record(master)[4] for master in quorum.masters}, {before})


@case('an outdated list is called so', 5)
def _(quorum):
    quorum.env |= SHORT
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


@case('two changes at once that were killed are made by the same two commands', 5)
def _(quorum):
    quorum.env |= SHORT
    founded(quorum, 0, 1, 2, 3, 4)
    commands = [('members', 'remove', quorum.masters[i].name) for i in (0, 1)]
    both = [quorum.start(*command) for command in commands]
    until(lambda: any(len(record(master)[-1]) != len(record(quorum.masters[4])[-1]) for master in quorum.masters))
    for process in both:
        process.kill()
        process.wait()
    both = [quorum.start(*command) for command in commands]
    for process in both:
        equal(process.wait(60), 0)
    equal(members(quorum, 0, 1, 2, 3, 4), (3, names(quorum, 2, 3, 4)))


@case('of two plans that block each other, one is dropped by emptying a master', 5)
def _(quorum):
    quorum.env |= SHORT
    founded(quorum, 0, 1, 2, 3, 4)
    by_name = sorted(quorum.masters, key=lambda master: master.name)
    name = [master.name for master in by_name]
    plans = [','.join(['2', '-' + name[i], *(other for other in name if other != name[i])]) for i in (0, 1)]
    for i, plan in enumerate((1, 0, 1, 0)):
        put_list(by_name[i], '2', plans[plan])
    blocked = quorum.start('members', 'remove', name[0])
    reported(blocked, 'waits for another change, which is planned on', f'{name[2]} (remove {name[1]})')
    equal([severity for severity, _, _ in findings(quorum, 0, 1, 2, 3, 4)], ['warning', 'warning'])
    by_name[2].ask('FLUSHALL')
    equal(blocked.wait(60), 0)
    ended(quorum.run('members', 'remove', name[1]), 0)
    equal(members(quorum, 0, 1, 2, 3, 4), (3, name[2:]))


@case('a mistyped address leaves nothing behind: the corrected list founds the quorum, and --new spares the quarantine', 3)
def _(quorum):
    quorum.env |= SHORT
    right = listed(quorum, 0, 1, 2)
    typo = {'REDLOCK_MASTERS': ','.join([quorum.masters[0].url, quorum.masters[1].url, 'redis://127.0.0.1:1'])}
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
    quorum.env |= SHORT
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


@case('without the command the corrected list replaces an interrupted one after a quarantine', 4)
def _(quorum):
    quorum.env |= SHORT
    founded(quorum, 0, 1, 3)
    for one in quorum.masters[:2]:
        interrupted(one, '0')
    quorum.masters[3].kill()
    ended(quorum.run('run', '--wait', '30s', 'a', '--', 'true', env=listed(quorum, 0, 1, 2)), 0)


@case('a founding says at once which master is away and why, and refuses one server twice', 2)
def _(quorum):
    quorum.env |= SHORT
    twice = {'REDLOCK_MASTERS': ','.join([one.url for one in quorum.masters] + [quorum.masters[0].url.replace('127.0.0.1', 'localhost')])}
    contains(ended(quorum.run('members', 'found', '--new', env=twice), USAGE).stderr, 'the same server')
    away = {'REDLOCK_MASTERS': ','.join([one.url for one in quorum.masters] + ['redis://127.0.0.1:1'])}
    founding = quorum.start('members', 'found', '--new', env=away)
    said = ''
    while 'check its port' not in said: # or the time limit of the suite
        said += founding.stderr.readline()
    contains(said, 'missing: 127.0.0.1:1', 'refused')
    founding.kill()
    ended(quorum.run('members', 'found', '--new'), 0)
    ended(quorum.run('members', 'max-ttl', '5'), USAGE)


@case('a list with the same masters by another name is recognized', 3)
def _(quorum):
    quorum.env |= SHORT
    founded(quorum, 0, 1, 2)
    other = {'REDLOCK_MASTERS': quorum.env.get('REDLOCK_MASTERS', ','.join(
        one.url for one in quorum.masters)).replace('127.0.0.1', 'localhost')}
    told = ended(quorum.run('run', '--wait', 'none', 'a', '--', 'true', env=other), NO_QUORUM).stderr
    contains(told, 'the same server by another name')
    contains(told, 'write it in that way')
    contains(quorum.run('doctor', '--clock-time', '20ms', env=other).stdout, 'write it in that way')


if __name__ == '__main__':
    main()
