#!/usr/bin/env python3
"""Slots, readers and writers, and leaders: forms_test.py REDLOCK [CASE...]"""

import os
import pathlib
import signal

import harness
from harness import CONFIGURATION, HELD, LIMIT_S, LOST, USAGE, Quorum, alive, case, contains, ended, equal, main, until

STAY = ['--', 'sh', '-c', 'echo "${REDLOCK_SLOT-in}"; exec sleep 600']


@case('so many run at once as there are slots, each under a number of its own')
def _(quorum):
    for words in (['run', '--slots', '3', 'a'], ['pool', '--size', '3', 'a']):
        inside = [quorum.start(*words, *STAY) for _ in range(3)]
        equal({process.stdout.readline() for process in inside}, {'0\n', '1\n', '2\n'})
        ended(quorum.run(words[0], '--wait', 'none', *words[1:], '--', 'true'), HELD)
        ended(quorum.run(words[0], '--skip-if-held', *words[1:], '--', 'false'), 0)
        waiting = quorum.start(*words, '--', 'sh', '-c', 'exit 4')
        inside[1].terminate()
        equal((inside[1].wait(), waiting.wait()), (-signal.SIGTERM, 4))
        for process in (inside[0], inside[2]):
            process.terminate()
            process.wait()
    ended(quorum.run('pool', 'a', '--', 'true'), USAGE)
    ended(quorum.run('run', '--slots', '0', 'a', '--', 'true'), USAGE)


@case('one attempt for a slot of the largest pool succeeds on a healthy quorum, and a larger one is refused')
def _(quorum):
    ended(quorum.run('pool', '--size', '4096', '--wait', 'none', '--master-timeout', '1s', 'a', '--', 'true'), 0)
    contains(ended(quorum.run('pool', '--size', '4097', 'a', '--', 'true'), USAGE).stderr, "'4097' is not a number from 1 to 4096")


@case('readers run together, and any other command alone')
def _(quorum):
    ended(quorum.run('run', '--shared', 'a', '--', 'sh', '-c', 'test -z "$REDLOCK_TOKEN"'), 0)
    readers = [quorum.start('run', '--shared', 'a', *STAY) for _ in range(2)]
    equal([reader.stdout.readline() for reader in readers], ['in\n', 'in\n'])
    for alone in ((), ('--exclusive',), ('--fencing',), ('--protocol', 'plain')):
        ended(quorum.run('run', *alone, '--wait', 'none', 'a', '--', 'true'), HELD)
    contains(quorum.run('status', 'a').stdout, '2 readers')
    contains(quorum.run('list').stdout, 'a: held by 2 readers, ')
    writer = quorum.start('run', '--fifo', 'a', *STAY)
    master = quorum.masters[0]
    until(lambda: master.ask('EXISTS', 'redlock:{a}:intent') == 1, 'the intent')
    ended(quorum.run('run', '--shared', '--wait', 'none', 'a', '--', 'true'), HELD)
    for reader in readers:
        reader.terminate()
        reader.wait()
    equal(writer.stdout.readline(), 'in\n')
    ended(quorum.run('run', '--shared', '--wait', 'none', 'a', '--', 'true'), HELD)
    ended(quorum.run('run', '--shared', '--exclusive', 'a', '--', 'true'), USAGE)
    ended(quorum.run('run', '--shared', '--fencing', 'a', '--', 'true'), USAGE)
    result = quorum.run('--protocol', 'plain', 'run', '--shared', '--wait', 'none', 'a', '--', 'true')
    ended(result, CONFIGURATION)


@case('only the leader runs; when it is killed another leads')
def _(quorum):
    log = quorum.path('log')
    script = f'echo $REDLOCK_FENCING_TOKEN $$ >> {log}; exec sleep 600'
    candidates = [quorum.start('elect', '--ttl', '1s', 'a', '--', 'sh', '-c', script) for _ in range(3)]

    def terms():
        return [line.split() for line in log.read_text().splitlines()] if log.exists() else []

    for count in (1, 2):
        until(lambda: len(terms()) == count, 'a leader')
        leader = int(terms()[-1][1])
        parent = int(pathlib.Path(f'/proc/{leader}/stat').read_text().rpartition(')')[2].split()[1])
        tool = int(pathlib.Path(f'/proc/{parent}/stat').read_text().rpartition(')')[2].split()[1])
        os.kill(tool, signal.SIGKILL)
        until(lambda: not alive(leader), 'the end of the command')
    until(lambda: len(terms()) == 3, 'the last leader')
    numbers = [int(number) for number, _ in terms()]
    equal(numbers, sorted(set(numbers)))
    equal(sum(process.poll() is None for process in candidates), 1)


@case('a leader that lost is a candidate again, and one whose command ends resigns')
def _(quorum):
    log = quorum.path('log')
    script = f'echo term >> {log}; [ $(wc -l < {log}) = 2 ] && exit 202; exec sleep 600'
    leader = quorum.start('elect', '--ttl', '1s', 'a', '--', 'sh', '-c', script)
    until(log.exists, 'a leader')
    for master in quorum.masters[:2]:
        master.signal(signal.SIGSTOP)
    contains(leader.stderr.readline(), 'lost')
    for master in quorum.masters[:2]:
        master.signal(signal.SIGCONT)
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
    for master in quorum.masters[:2]:
        master.signal(signal.SIGSTOP)
    contains(leader.stderr.readline(), 'lost')
    for master in quorum.masters[:2]:
        master.signal(signal.SIGCONT)
    equal(leader.wait(LIMIT_S), LOST)
    equal(log.read_text().count('term'), 1)


@case('a candidate that waits ends at a signal')
def _(quorum):
    quorum.holder('a')
    waiting = quorum.start('elect', 'a', '--', 'true')
    until(lambda: any('subscribe' in m.ask('CLIENT', 'LIST') for m in quorum.masters), 'a candidate')
    waiting.terminate()
    equal(waiting.wait(), -signal.SIGTERM)


if __name__ == '__main__':
    main()
