#!/usr/bin/env python3
"""acquire, extend, release, attach, status, watch, list, force-release: acquire_test.py REDLOCK [CASE...]"""

import json
import os
import pty
import signal
import subprocess
import time

import harness
from harness import (
    CONFIGURATION, HELD, LIMIT_S, LOST, NO_QUORUM, UNDECIDED, USAGE, case, contains, ended, equal, main, until)


def acquired(quorum, resource, *options, env=None):
    prefix = (env or {}).get('REDLOCK_PREFIX', 'redlock:')
    while True: # or the time limit of the suite
        result = ended(quorum.run('acquire', *options, resource, env=env), 0)
        equal(result.stderr, '')
        equal(len(result.stdout), 41)
        token = result.stdout.strip()
        # It is taken with a majority. The rest have it soon, or refuse it because it came late.
        end = time.monotonic() + 1
        while time.monotonic() < end:
            if all(master.ask('GET', f'{prefix}{{{resource}}}') == token for master in quorum.masters):
                return token
        quorum.run('release', resource, '--token', token, env=env)


@case('acquire prints the token and nothing else, and the lock stands for its ttl')
def _(quorum):
    token = acquired(quorum, 'a', '--ttl', '20s')
    for master in quorum.masters:
        equal(master.ask('GET', 'redlock:{a}'), token)
        assert 10_000 < master.ask('PTTL', 'redlock:{a}') <= 20_000


@case('acquire leaves no SET behind that could be executed late, when another owner has had the lock since')
def _(quorum):
    quorum.masters[0].ask('CONFIG', 'SET', 'slowlog-log-slower-than', '0')
    acquired(quorum, 'a', '--ttl', '20s')
    sent = quorum.masters[0].ask('SLOWLOG', 'GET', '100')
    texts = [' '.join(map(str, entry[3])) for entry in sent]
    assert any(text.startswith('EVAL') and 'redlock:{a}' in text for text in texts), texts


@case('acquire of what is held, and without a quorum')
def _(quorum):
    acquired(quorum, 'a')
    for wait in ('none', '200ms'):
        result = ended(quorum.run('acquire', '--wait', wait, 'a'), HELD)
        equal(result.stdout, '')
        contains(result.stderr, 'contended')
    result = ended(quorum.run('acquire', '--wait', 'none', '--json', 'a'), HELD)
    votes = json.loads(result.stdout)['diagnostics']['votes']
    equal([vote['vote'] for vote in votes].count('held') >= 2, True)
    for master in quorum.masters[:2]:
        master.kill()
    equal(ended(quorum.run('acquire', '--wait', 'none', 'b'), NO_QUORUM).stdout, '')


@case('at maxmemory acquire names the cause; what is held is extended and released')
def _(quorum):
    token = {'REDLOCK_TOKEN': acquired(quorum, 'a')}
    for master in quorum.masters:
        master.ask('CONFIG', 'SET', 'maxmemory', '100kb')
    contains(ended(quorum.run('acquire', '--wait', 'none', 'b'), NO_QUORUM).stderr, 'maxmemory is reached')
    ended(quorum.run('extend', 'a', env=token), 0)
    ended(quorum.run('release', 'a', env=token), 0)


@case('acquire waits for its turn')
def _(quorum):
    token = acquired(quorum, 'a', '--ttl', '20s')
    waiting = quorum.start('acquire', '--wait', '30s', 'a')
    until(lambda: any('subscribe' in m.ask('CLIENT', 'LIST') for m in quorum.masters), 'a waiter')
    ended(quorum.run('release', 'a', env={'REDLOCK_TOKEN': token}), 0)
    assert waiting.communicate()[0].strip() != token
    equal(waiting.returncode, 0)


@case('acquire --json has the token, the fencing token and the votes')
def _(quorum):
    result = ended(quorum.run('acquire', '--json', '--fencing', 'a'), 0)
    found = json.loads(result.stdout)
    equal(found['resource'], 'a')
    equal(len(found['token']), 40)
    assert 0 < found['valid_ms'] < 10_000 and found['fencing_token'] > 0
    equal(len(found['diagnostics']['votes']), 3)
    equal({vote['master'] for vote in found['diagnostics']['votes']}, {m.name for m in quorum.masters})


@case('extend by variable or option; a lost lock is told and not taken')
def _(quorum):
    token = acquired(quorum, 'a', '--ttl', '5s')
    result = ended(quorum.run('extend', '--ttl', '25s', 'a', env={'REDLOCK_TOKEN': token}), 0)
    equal((result.stdout, result.stderr), ('', ''))
    assert quorum.masters[0].ask('PTTL', 'redlock:{a}') > 20_000
    ended(quorum.run('extend', '--ttl', '28s', 'a', '--token', token), 0)
    ended(quorum.run('extend', '--ttl', '1s', 'a', '--token', token), 0)
    assert quorum.masters[0].ask('PTTL', 'redlock:{a}') > 20_000  # never shorter
    ended(quorum.run('extend', 'a', '--token', 'a' * 40), LOST)
    equal(quorum.masters[0].ask('GET', 'redlock:{a}'), token)
    ended(quorum.run('extend', 'b', '--token', 'a' * 40), LOST)
    equal(quorum.keys(), ['redlock:{a}'])


@case('extend without a quorum leaves the old deadline')
def _(quorum):
    token = acquired(quorum, 'a', '--ttl', '20s')
    for master in quorum.masters[:2]:
        master.kill()
    ended(quorum.run('extend', 'a', '--token', token), NO_QUORUM)
    equal(quorum.masters[2].ask('GET', 'redlock:{a}'), token)


@case('release gives it back; again, and by a wrong token, it is lost')
def _(quorum):
    token = acquired(quorum, 'a')
    ended(quorum.run('release', 'a', '--token', 'b' * 40), LOST)
    equal(quorum.keys(), ['redlock:{a}'])
    result = ended(quorum.run('release', 'a', '--token', token), 0)
    equal((result.stdout, result.stderr), ('', ''))
    equal(quorum.keys(), [])
    ended(quorum.run('release', 'a', '--token', token), LOST)


@case('release with a master away')
def _(quorum):
    token = acquired(quorum, 'a')
    quorum.masters[0].kill()
    result = ended(quorum.run('--json', 'release', 'a', '--token', token), 0)
    equal(json.loads(result.stdout)['result'], 'released')


@case('a token that is none is bad usage, and is not shown')
def _(quorum):
    for command in ('extend', 'release'):
        contains(ended(quorum.run(command, 'a'), USAGE).stderr, 'REDLOCK_TOKEN')
        result = ended(quorum.run(command, 'a', '--token', 'not-a-token'), USAGE)
        assert 'not-a-token' not in result.stderr
    ended(quorum.run('attach', 'a', '--', 'true'), USAGE)


@case('attach runs a command under a lock that stands, and releases it')
def _(quorum):
    token = acquired(quorum, 'a', '--ttl', '5s')
    env = {'REDLOCK_TOKEN': token}
    result = quorum.run('attach', '--keep', '--ttl', '1200ms', 'a', '--', 'sh', '-c',
                        'sleep 2; echo $REDLOCK_TOKEN; exit 3', env=env)
    equal(ended(result, 3).stdout.strip(), token)
    equal(quorum.keys(), ['redlock:{a}'])
    ended(quorum.run('attach', 'a', '--', 'true', env=env), 0)
    equal(quorum.keys(), [])
    result = ended(quorum.run('attach', 'a', '--', 'echo', 'ran', env=env), LOST)
    equal(result.stdout, '')


@case('a script of acquire, extend and release, in a shell')
def _(quorum):
    script = ('set -e; export REDLOCK_TOKEN=$("$0" acquire --ttl 5s job);'
              '"$0" extend --ttl 9s job; "$0" status job || echo "held: $?"; "$0" release job; "$0" status job')
    result = subprocess.run(['sh', '-c', script, harness.TOOL], env=quorum.env, text=True,
                            capture_output=True, check=True)
    contains(result.stdout, 'job: held by', 'held: 200', 'job: free')
    equal(result.stderr, '')


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
    for master in quorum.masters[1:]:
        master.kill()
    ended(quorum.run('run', '--wait', 'none', '-E', '9', 'b', '--', 'true'), NO_QUORUM)


@case('release: answers that differ are no outage')
def _(quorum):
    token = acquired(quorum, 'a', '--ttl', '20s')
    quorum.masters[1].ask('SET', 'redlock:{a}', 'somebody else', 'PX', 60_000)
    quorum.masters[2].kill()
    ended(quorum.run('release', 'a', '--token', token), UNDECIDED)
    quorum.masters[1].kill()
    ended(quorum.run('release', 'a', '--token', token), NO_QUORUM)


@case('status: free, held, undecided, by master')
def _(quorum):
    contains(ended(quorum.run('status', 'a'), 0).stdout, 'a: free', quorum.masters[2].name + '  absent')
    acquired(quorum, 'a', '--ttl', '20s')
    text = ended(quorum.run('status', 'a', 'b'), HELD).stdout
    contains(text, 'a: held by ', 's left', 'b: free')
    for master in quorum.masters[:1]:
        master.ask('SET', 'redlock:{c}', 'somebody')
    quorum.masters[1].ask('SET', 'redlock:{c}', 'somebody else', 'PX', 60_000)
    contains(ended(quorum.run('status', 'a', 'c'), UNDECIDED).stdout, 'c: undecided', 'no expiry')
    found = json.loads(ended(quorum.run('--json', 'status', 'a'), HELD).stdout)[0]
    equal((found['state'], found['resource'], len(found['masters'])), ('held', 'a', 3))
    owners = {master['owner'] for master in found['masters']}
    equal(owners, {found['owner']})
    assert found['owner'] not in quorum.masters[0].ask('GET', 'redlock:{a}')
    for master in quorum.masters[:2]:
        master.kill()
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


def terminal_text(quorum, *words, env=None, typed=b'', until_text=None):
    """What the tool writes to a terminal, and its exit status."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(harness.TOOL, [harness.TOOL, *words], quorum.env | {'TERM': 'xterm'} | (env or {}))
    out = b''
    if typed:
        while b'Type yes' not in out:
            out += os.read(terminal, 4096)
        os.write(terminal, typed)
    try:
        while part := os.read(terminal, 4096):
            out += part
            if until_text and until_text in out:
                os.kill(pid, signal.SIGINT)
                until_text = None
    except OSError:
        pass
    os.close(terminal)
    return out.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@case('colours on a terminal only, and never with NO_COLOR')
def _(quorum):
    text, status = terminal_text(quorum, 'status', 'a')
    contains(text, '\x1b[32mfree\x1b[0m')
    equal(status, 0)
    assert '\x1b' not in terminal_text(quorum, 'status', 'a', env={'NO_COLOR': '1'})[0]
    assert '\x1b' not in quorum.run('status', 'a').stdout


@case('watch on a terminal rewrites its lines')
def _(quorum):
    text, status = terminal_text(quorum, 'watch', '--interval', '20ms', 'a', until_text=b'\x1b[4A\x1b[J')
    contains(text, 'a: ')
    equal(status, 0)


@case('list merges the masters, and lists locks only')
def _(quorum):
    equal(ended(quorum.run('list'), 0).stdout, '')
    for resource in ('b', 'a/[x]*', 'a'):
        acquired(quorum, resource, '--ttl', '20s', '--fencing')
    quorum.masters[1].ask('SET', 'redlock:{c}', 'f' * 40, 'PX', 60_000)
    quorum.masters[1].ask('SET', 'other', '1')
    for number in range(2500):
        quorum.masters[2].ask('SET', f'redlock-{number}', '1') if number % 50 == 0 else None
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
    env = {'REDLOCK_PREFIX': 'a*[b]\\'}
    acquired(quorum, 'one', env=env)
    acquired(quorum, 'two', env={'REDLOCK_PREFIX': 'axb'})
    contains(quorum.run('list', env=env).stdout, 'one: held')
    equal(len(quorum.run('list', env=env).stdout.splitlines()), 1)


@case('force-release asks first; no is no')
def _(quorum):
    token = acquired(quorum, 'a', '--ttl', '25s')
    contains(ended(quorum.run('force-release', 'a'), USAGE).stderr, '--yes')
    text, status = terminal_text(quorum, 'force-release', 'a', typed=b'no\n')
    contains(text, 'a: \x1b[33mheld', 'after the current lease')
    equal((status, quorum.masters[0].ask('GET', 'redlock:{a}')), (HELD, token))
    text, status = terminal_text(quorum, 'force-release', '--now', 'a', typed=b'yes\n')
    contains(text, 'there may be two holders')
    equal((status, quorum.keys(), text.count('removed')), (0, [], 3))


@case('force-release takes the lock from a holder that is alive, and no other has it meanwhile')
def _(quorum):
    path = quorum.path('log')
    script = f'echo begin >> {path}; trap "" TERM; while :; do echo held >> {path}; sleep 0.005; done'
    holder = quorum.start('run', '--ttl', '2s', 'a', '--', 'sh', '-c', script)
    until(path.exists, 'the holder')
    waiting = quorum.start('run', 'a', '--', 'sh', '-c', f'echo begin >> {path}')
    until(lambda: any('subscribe' in m.ask('CLIENT', 'LIST') for m in quorum.masters), 'a waiter')
    equal(ended(quorum.run('force-release', '--yes', 'a'), 0).stdout.count('taken'), 3)
    equal((waiting.wait(), holder.wait()), (0, LOST))
    lines = path.read_text().splitlines()
    equal((lines.count('begin'), lines[-1]), (2, 'begin'))


@case('force-release --now wakes who waits, and the old holder hears of it')
def _(quorum):
    holder = quorum.holder('a', '--ttl', '2s')
    waiting = quorum.start('run', 'a', '--', 'sh', '-c', 'echo held; exec sleep 600')
    until(lambda: any('subscribe' in m.ask('CLIENT', 'LIST') for m in quorum.masters), 'a waiter')
    equal(ended(quorum.run('force-release', '--yes', '--now', 'a'), 0).stdout.count('removed'), 3)
    equal(waiting.stdout.readline(), 'held\n')
    equal(holder.wait(), LOST)


@case('force-release with a majority away is not done')
def _(quorum):
    acquired(quorum, 'a', '--ttl', '25s')
    for master in quorum.masters[:2]:
        master.kill()
    result = ended(quorum.run('--json', 'force-release', '--yes', 'a'), NO_QUORUM)
    found = json.loads(result.stdout)
    equal((found['released'], [one['gone'] for one in found['masters']]), (False, [False, False, True]))
    contains(result.stderr, 'may still have the lock')


@case('force-release does not touch a master whose record has another list of masters')
def _(quorum):
    token = acquired(quorum, 'a', '--ttl', '25s')
    wrong = {'REDLOCK_MASTERS': quorum.masters[0].url}
    for now in ([], ['--now']):
        result = ended(quorum.run('--json', 'force-release', '--yes', *now, 'a', env=wrong), NO_QUORUM)
        found = json.loads(result.stdout)
        equal(found['released'], False)
        for one in found['masters']:
            contains(one['text'], 'not touched: not a member', quorum.masters[2].name)
    equal([master.ask('GET', 'redlock:{a}') for master in quorum.masters], [token] * 3)
    # The plain protocol has no list.
    ended(quorum.run('--protocol', 'plain', 'force-release', '--yes', 'a', env=wrong), 0)


if __name__ == '__main__':
    main()
