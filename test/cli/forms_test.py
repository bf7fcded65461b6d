#!/usr/bin/env python3
"""Slots, readers and writers, and leaders: forms_test.py REDLOCK [CASE...]"""

import json
import signal

import harness
from harness import CONFIGURATION, HELD, LIMIT_S, LOST, USAGE, case, contains, ended, equal, listed, main, until

@case('one attempt for a slot of the largest pool succeeds on a healthy quorum, and a larger one is refused')
def _(quorum):
    ended(quorum.run('pool', '--size', '4096', '--wait', 'none', '--master-timeout', '1s', 'a', '--', 'true'), 0)
    contains(ended(quorum.run('pool', '--size', '4097', 'a', '--', 'true'), USAGE).stderr, "'4097' is not a number from 1 to 4096")
    ended(quorum.run('pool', 'a', '--', 'true'), USAGE)
    ended(quorum.run('run', '--slots', '0', 'a', '--', 'true'), USAGE)


@case('the status of a pool shows who has which slot')
def _(quorum):
    quorum.holder('a', '--slots', '2')
    shown = ended(quorum.run('status', '--slots', '2', 'a'), 0).stdout
    contains(shown, 'a: free, 1 of 2 slots held')
    contains(shown, '  1 of 2 slots are free there')
    equal(sorted(line.split()[2] for line in shown.splitlines() if line.startswith('  slot ')), ['free', 'held'])
    quorum.holder('a', '--slots', '2')
    [pool] = json.loads(ended(quorum.run('status', '--json', '--slots', '2', 'a'), HELD).stdout)
    equal([(slot['state'], len(slot['owner'])) for slot in pool['slots']], [('held', 16)] * 2)
    ended(quorum.run('status', '--slots', '0', 'a'), USAGE)
    contains(ended(quorum.run('status', 'a:slot:1'), 0).stderr, 'redlock status --slots L a')


@case('readers run together, and any other command alone')
def _(quorum):
    ended(quorum.run('run', '--shared', 'a', '--', 'sh', '-c', 'test -z "$REDLOCK_TOKEN"'), 0)
    readers = [quorum.holder('a', '--shared') for _ in range(2)]
    for alone in ((), ('--exclusive',), ('--fencing',), ('--protocol', 'plain')):
        ended(quorum.run('run', *alone, '--wait', 'none', 'a', '--', 'true'), HELD)
    contains(quorum.run('status', 'a').stdout, '2 readers')
    contains(quorum.run('list').stdout, 'a: held by 2 readers, ')
    for reader in readers:
        reader.terminate()
        reader.wait()
    quorum.holder('a')
    ended(quorum.run('run', '--shared', '--wait', 'none', 'a', '--', 'true'), HELD)
    result = quorum.run('--protocol', 'plain', 'run', '--shared', '--wait', 'none', 'a', '--', 'true')
    ended(result, CONFIGURATION)


@case('a reader whose ACL does not let it look for others leaves them the lock when it goes')
def _(quorum):
    quorum.holder('a', '--shared')
    for refused in ('-zscore', '-zrange'):
        quorum.everywhere('ask', 'ACL', 'SETUSER', 'poor', 'reset', 'on', '>x', '~*', '&*', '+@all', refused)
        poor = listed(*(one.url.replace('://', '://poor:x@') for one in quorum.masters))
        contains(ended(quorum.run('run', '--shared', 'a', '--', 'true', env=poor), 0).stderr, "'a' was not released")
        ended(quorum.run('run', '--wait', 'none', 'a', '--', 'true'), HELD)


def loses(quorum, leader):
    quorum.everywhere('signal', signal.SIGSTOP, first=2)
    contains(leader.stderr.readline(), 'lost')
    quorum.everywhere('signal', signal.SIGCONT, first=2)


@case('a leader that lost is a candidate again, and one whose command ends resigns')
def _(quorum):
    log = quorum.path('log')
    script = f'echo term >> {log}; [ $(wc -l < {log}) = 2 ] && exit 202; exec sleep 600'
    leader = quorum.start('elect', '--ttl', '1s', 'a', '--', 'sh', '-c', script)
    until(log.exists, 'a leader')
    loses(quorum, leader)
    equal(leader.wait(), 202)  # the command's own, of its second term
    equal(log.read_text(), 'term\nterm\n')
    ended(quorum.run('status', 'a'), 0)


@case('a leader whose lock was lost after its command had ended resigns as well')
def _(quorum):
    log = quorum.path('log')
    script = f'echo term >> {log}; exec {harness.TOOL} force-release --yes --now a'
    ended(quorum.run('elect', 'a', '--', 'sh', '-c', script), LOST)
    equal(log.read_text(), 'term\n')


@case('a leader that was told to end is no candidate again, also if it is lost meanwhile')
def _(quorum):
    log = quorum.path('log')
    script = (f'exec 2> /dev/null; trap "echo told >> {log}" TERM; echo term >> {log}; '
              'while :; do sleep 0.1; done')
    leader = quorum.start('elect', '--ttl', '1s', 'a', '--', 'sh', '-c', script)
    until(log.exists, 'a leader')
    leader.terminate()
    until(lambda: 'told' in log.read_text(), 'the signal at the command')
    loses(quorum, leader)
    equal(leader.wait(LIMIT_S), LOST)
    equal(log.read_text().count('term'), 1)


if __name__ == '__main__':
    main()
