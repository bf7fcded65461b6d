#!/usr/bin/env python3
"""acquire, extend, release, attach, status, watch, list, force-release: acquire_test.py REDLOCK [CASE...]"""

import json
import os
import signal
import time

import harness
from harness import (
    CONFIGURATION, HELD, LIMIT_S, LOST, NO_QUORUM, UNDECIDED, USAGE, case, contains, ended, equal, main)
from terminals import Terminal


def acquired(quorum, resource, *options):
    while True: # or the time limit of the suite
        result = ended(quorum.run('acquire', *options, resource), 0)
        equal(result.stderr, '')
        equal(len(result.stdout), 41)
        token = result.stdout.strip()
        # It is taken with a majority. The rest have it soon, or refuse it because it came late.
        end = time.monotonic() + 1
        while time.monotonic() < end:
            if all(master.ask('GET', f'redlock:{{{resource}}}') == token for master in quorum.masters):
                return token
        quorum.run('release', resource, '--token', token)


@case('acquire --json has the token, the fencing token and the votes, also those against it')
def _(quorum):
    result = ended(quorum.run('acquire', '--json', '--fencing', 'a'), 0)
    found = json.loads(result.stdout)
    equal(found['resource'], 'a')
    equal(len(found['token']), 40)
    assert 0 < found['valid_ms'] < 10_000 and found['fencing_token'] > 0
    equal(len(found['diagnostics']['votes']), 3)
    equal({vote['master'] for vote in found['diagnostics']['votes']}, {m.name for m in quorum.masters})
    result = ended(quorum.run('acquire', '--wait', 'none', '--json', 'a'), HELD)
    votes = json.loads(result.stdout)['diagnostics']['votes']
    equal([vote['vote'] for vote in votes].count('held') >= 2, True)


@case('extend, release and attach serve the owner of a lock; for any other token it is lost, and not taken')
def _(quorum):
    token = acquired(quorum, 'a', '--ttl', '5s')
    assert quorum.masters[0].ask('PTTL', 'redlock:{a}') <= 5_000
    owner, other = {'REDLOCK_TOKEN': token}, {'REDLOCK_TOKEN': 'a' * 40}
    for words in (['extend', 'a'], ['release', 'a'], ['attach', 'a', '--', 'echo', 'ran'], ['extend', 'b']):
        equal(ended(quorum.run(*words, env=other), LOST).stdout, '')
    equal((quorum.keys(), quorum.masters[0].ask('GET', 'redlock:{a}')), (['redlock:{a}'], token))
    result = ended(quorum.run('extend', '--ttl', '25s', 'a', env=owner), 0)
    equal((result.stdout, result.stderr), ('', ''))
    assert quorum.masters[0].ask('PTTL', 'redlock:{a}') > 20_000
    ended(quorum.run('extend', '--ttl', '1s', 'a', '--token', token), 0)
    assert quorum.masters[0].ask('PTTL', 'redlock:{a}') > 20_000  # never shorter
    result = ended(quorum.run('release', 'a', '--token', token), 0)
    equal((result.stdout, result.stderr, quorum.keys()), ('', '', []))
    ended(quorum.run('release', 'a', '--token', token), LOST)


@case('attach runs a command under a lock that stands, and keeps or releases it')
def _(quorum):
    token = acquired(quorum, 'a', '--ttl', '5s')
    env = {'REDLOCK_TOKEN': token}
    result = quorum.run('attach', '--keep', '--ttl', '1200ms', 'a', '--', 'sh', '-c',
                        'sleep 2; echo $REDLOCK_TOKEN; exit 3', env=env)
    equal(ended(result, 3).stdout.strip(), token)
    equal(quorum.keys(), ['redlock:{a}'])
    ended(quorum.run('attach', 'a', '--', 'true', env=env), 0)
    equal(quorum.keys(), [])
    ended(quorum.run('attach', 'a', '--', 'true', env={'REDLOCK_TOKEN': token[1:]}), CONFIGURATION)


@case('a conflict ends with a status of one\'s own choice, and nothing else does')
def _(quorum):
    quorum.holder('a')
    own = ('--wait', 'none', '-E', '9', 'a')
    ended(quorum.run('acquire', *own), 9)
    ended(quorum.run('run', *own, '--', 'true'), 9)
    ended(quorum.run('run', '--exclusive', *own, '--', 'true'), 9)
    ended(quorum.run('acquire', '--wait', '50ms', '--conflict-exit-code', '0', 'a'), 0)
    ended(quorum.run('acquire', '--wait', 'none', 'a', env={'REDLOCK_CONFLICT_EXIT_CODE': '75'}), 75)
    ended(quorum.run('run', '--skip-if-held', '-E', '9', 'a', '--', 'true'), 0)
    ended(quorum.run('run', '-E', '9', 'b', '--', 'sh', '-c', 'exit 3'), 3)
    quorum.everywhere('kill', first=2)
    ended(quorum.run('run', '--wait', 'none', '-E', '9', 'b', '--', 'true'), NO_QUORUM)


@case('release, extend: answers that differ are no outage, a majority that is away is one')
def _(quorum):
    token = acquired(quorum, 'a', '--ttl', '20s')
    quorum.masters[1].ask('SET', 'redlock:{a}', 'somebody else', 'PX', 60_000)
    quorum.masters[2].kill()
    ended(quorum.run('release', 'a', '--token', token), UNDECIDED)
    quorum.masters[1].kill()
    ended(quorum.run('extend', 'a', '--token', token), NO_QUORUM)
    equal(quorum.masters[0].ask('GET', 'redlock:{a}'), token)
    ended(quorum.run('release', 'a', '--token', token), NO_QUORUM)


@case('status: free, held, undecided, by master')
def _(quorum):
    contains(ended(quorum.run('status', 'a'), 0).stdout, 'a: free', quorum.masters[2].name + '  absent')
    acquired(quorum, 'a', '--ttl', '20s')
    text = ended(quorum.run('status', 'a', 'b'), HELD).stdout
    contains(text, 'a: held by ', 's left', 'b: free')
    quorum.everywhere('ask', 'SET', 'redlock:{c}', 'somebody', first=1)
    quorum.masters[1].ask('SET', 'redlock:{c}', 'somebody else', 'PX', 60_000)
    contains(ended(quorum.run('status', 'a', 'c'), UNDECIDED).stdout, 'c: undecided', 'no expiry')
    found = json.loads(ended(quorum.run('--json', 'status', 'a'), HELD).stdout)[0]
    equal((found['state'], found['resource'], len(found['masters'])), ('held', 'a', 3))
    owners = {master['owner'] for master in found['masters']}
    equal(owners, {found['owner']})
    assert found['owner'] not in quorum.masters[0].ask('GET', 'redlock:{a}')
    quorum.everywhere('ask', 'FLUSHALL')  # no list of members is left, as before the first lock
    text = ended(quorum.run('status', 'a', env={'REDLOCK_NO_QUARANTINE': 'false'}), UNDECIDED).stdout
    contains(text, 'a: undecided', 'absent (the quorum is not founded yet)')
    quorum.everywhere('kill', first=2)
    contains(ended(quorum.run('status', 'c', 'a'), NO_QUORUM).stdout, 'c: undecided', 'unreachable')


@case('watch tells each change in a line')
def _(quorum):
    process = quorum.start('watch', '--interval', '20ms', 'a')
    contains(process.stdout.readline(), 'free')
    token = acquired(quorum, 'a', '--ttl', '20s')
    while 'held' not in (line := process.stdout.readline()):
        contains(line, 'undecided')
    ended(quorum.run('release', 'a', '--token', token), 0)
    while 'free' not in (line := process.stdout.readline()):
        assert 'undecided' in line or 'held' in line, line  # a look that fell between is followed by another
    process.send_signal(signal.SIGINT)
    equal(process.wait(), 0)


@case('colours on a terminal only, and never with NO_COLOR')
def _(quorum):
    text, status = Terminal(quorum, harness.TOOL, 'status', 'a').ends()
    contains(text, '\x1b[32mfree\x1b[0m')
    equal(status, 0)
    assert '\x1b' not in quorum.run('status', 'a').stdout
    quorum.env['NO_COLOR'] = '1'
    assert '\x1b' not in Terminal(quorum, harness.TOOL, 'status', 'a').ends()[0]


@case('watch on a terminal rewrites its lines')
def _(quorum):
    tool = Terminal(quorum, harness.TOOL, 'watch', '--interval', '20ms', 'a')
    contains(tool.reads('\x1b[4A\x1b[J'), 'a: ')
    os.kill(tool.pid, signal.SIGINT)
    equal(tool.ends()[1], 0)


@case('list merges the masters, and lists locks only')
def _(quorum):
    equal(ended(quorum.run('list'), 0).stdout, '')
    for resource in ('b', 'a/[x]*', 'a'):
        acquired(quorum, resource, '--ttl', '20s', '--fencing')
    quorum.masters[1].ask('SET', 'redlock:{c}', 'f' * 40, 'PX', 60_000)
    quorum.masters[1].ask('SET', 'other', '1')
    lines = ended(quorum.run('list'), 0).stdout.splitlines()
    equal([line.split(': ')[0] for line in lines], ['a', 'a/[x]*', 'b', 'c'])
    equal([line.split(': ')[1].split()[0] for line in lines], ['held', 'held', 'held', 'free'])
    found = json.loads(ended(quorum.run('list', '--json'), 0).stdout)
    equal([one['resource'] for one in found], ['a', 'a/[x]*', 'b', 'c'])
    quorum.masters[0].kill()
    result = ended(quorum.run('list'), 0)
    contains(result.stderr, quorum.masters[0].name)
    equal(len(result.stdout.splitlines()), 4)
    quorum.masters[1].kill()
    ended(quorum.run('list'), NO_QUORUM)
    ended(quorum.run('list', '--prefix', ''), CONFIGURATION)


@case('watch ends when nobody reads it any more, though nothing changes')
def _(quorum):
    for options in ([], ['--json'], ['--interval', '10m']):
        process = quorum.start('watch', *options, 'a')
        contains(process.stdout.readline(), 'free')
        process.stdout.close()
        equal((process.wait(LIMIT_S), process.stderr.read()), (0, ''), str(options))


@case('list with another prefix, whatever characters it has')
def _(quorum):
    for name, prefix in (('one', 'a*[b]\\'), ('two', 'axb')):
        ended(quorum.run('--prefix', prefix, 'acquire', name), 0)
    [line] = quorum.run('--prefix', 'a*[b]\\', 'list').stdout.splitlines()
    contains(line, 'one: held')


@case('force-release asks first; no is no')
def _(quorum):
    token = acquired(quorum, 'a', '--ttl', '25s')
    contains(ended(quorum.run('force-release', 'a'), USAGE).stderr, '--yes')
    tool = Terminal(quorum, harness.TOOL, 'force-release', 'a')
    contains(tool.reads('Type yes'), 'a: \x1b[33mheld', 'after the current lease')
    tool.type('no\n')
    equal((tool.ends()[1], quorum.masters[0].ask('GET', 'redlock:{a}')), (HELD, token))
    equal(ended(quorum.run('force-release', '--yes', 'a'), 0).stdout.count('taken'), 3)
    ended(quorum.run('extend', 'a', '--token', token), LOST)
    ended(quorum.run('run', '--wait', 'none', 'a', '--', 'true'), HELD)
    tool = Terminal(quorum, harness.TOOL, 'force-release', '--now', 'a')
    contains(tool.reads('Type yes'), 'there may be two holders')
    tool.type('yes\n')
    text, status = tool.ends()
    equal((status, quorum.keys(), text.count('removed')), (0, [], 3))


@case('force-release with a majority away is not done')
def _(quorum):
    acquired(quorum, 'a', '--ttl', '25s')
    quorum.everywhere('kill', first=2)
    result = ended(quorum.run('--json', 'force-release', '--yes', 'a'), NO_QUORUM)
    found = json.loads(result.stdout)
    equal((found['released'], [one['gone'] for one in found['masters']]), (False, [False, False, True]))
    contains(result.stderr, 'may still have the lock')


if __name__ == '__main__':
    main()
