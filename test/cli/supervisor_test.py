#!/usr/bin/env python3
"""What `redlock run` starts ends with the lock, the tool and its supervisor: supervisor_test.py REDLOCK [CASE...]"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import (
    HELD, INTERNAL, LIMIT_S, LOST, Skip, alive, case, children_of, contains, ended, equal, main, until, with_module)
from hearts import HEART, beating, beats, now, supervisor_of


@contextlib.contextmanager
def reaping():
    """Orphans among the descendants of this process become its children."""
    harness.adopt_orphans(True)
    try:
        yield
    finally:
        harness.adopt_orphans(False)


GRANDCHILDREN = '''
setsid {python} -c "$HEART" {one} &
{python} -c "$HEART" {two} &
(setsid sh -c '{python} -c "$HEART" {three} & wait' &)
'''


def family(quorum, script_end):
    """A shell with children in its group, in another session, and orphans."""
    paths = [quorum.path(name) for name in ('one', 'two', 'three')]
    script = GRANDCHILDREN.format(python=sys.executable, one=paths[0], two=paths[1], three=paths[2])
    quorum.env['HEART'] = HEART
    return paths, ['sh', '-c', script + script_end]


def dies_with_the_lease(sentence, script_end, *said, stops=False, out=''):
    """A case: the masters do not answer any more. Command and grandchildren are dead before the deadline, and the tool ends."""
    @case(sentence)
    def _(quorum):
        paths, command = family(quorum, script_end)
        process = quorum.start('run', '--ttl', '1500ms', '--grace', '400ms', 'a', '--', *command)
        pids = [beating(path) for path in paths]
        if stops:
            os.kill(supervisor_of(process), signal.SIGSTOP)
        quorum.everywhere('signal', signal.SIGSTOP, first=2)
        stopped = now()
        equal(process.wait(), LOST)
        assert not any(map(alive, pids))
        assert max(beats(path)[-1][0] for path in paths) < stopped + 1.5
        equal(process.stdout.read(), out)
        contains(process.stderr.read(), 'majority_unreachable', *said)


dies_with_the_lease('grandchildren die with the lease, in whichever group and session', 'wait')
dies_with_the_lease('TERM comes before the end, and a command that heeds it ends in peace',  # and was not alone to the end
                    'trap "echo asked; exit 0" TERM; wait; wait', out='asked\n')
dies_with_the_lease('the supervisor is stopped when the lock is lost: it goes on, and ends command and grandchildren',
                    'trap "echo asked" TERM; wait; wait', stops=True, out='asked\n')
dies_with_the_lease('the supervisor is stopped after the loss: all are dead before the deadline, and the tool ends',
                    'trap "kill -STOP $PPID" TERM; while :; do sleep 0.01; done', 'the command had not ended in time: it was killed')


@case('what the command leaves behind ends before the lock is given back')
def _(quorum):
    script_end = ''.join(f'until [ -s {quorum.path(name)} ]; do sleep 0.01; done;'
                         for name in ('one', 'two', 'three')) + 'exit 4'
    paths, command = family(quorum, script_end)
    process = quorum.start('run', '--grace', '200ms', 'a', '--', *command)
    equal(process.wait(), 4)
    assert not any(alive(beating(path)) for path in paths)
    equal(quorum.keys(), [])


for _module, _sentence in (('SLOW_LOOK', 'a command that ends while its supervisor looks for others has its status passed on'),
                           ('EARLY_SIGNAL', 'a signal to the whole group does not end the supervisor, however early it comes')):
    @case(_sentence)
    def _(quorum, module=_module):
        env = with_module(module)
        ended(quorum.run('run', 'a', '--', 'env', '-u', 'LD_PRELOAD', 'sh', '-c', 'sleep 0.1; exit 4', env=env), 4)


@case('without a /proc that shows its processes, the tool refuses to start')
def _(quorum):
    for flags, before in (('-Urpf', ''), ('-Urm', 'mount -t tmpfs none /proc; ')):
        words = ['unshare', flags, 'sh', '-c']
        if not shutil.which('unshare') or subprocess.run([*words, before + 'true'], check=False, capture_output=True).returncode != 0:
            raise Skip('no namespaces here')
        for kind in (['run'], ['pool', '--size', '1'], ['elect']):
            result = quorum.run(*words[1:], before + 'exec "$@"', 'sh', harness.TOOL, *kind, 'a', '--', 'echo', 'ran', tool=words[0])
            contains(ended(result, INTERNAL).stderr, '/proc is not that of this PID namespace')
            equal((result.stdout, quorum.keys()), ('', []))
    inside = ['-Urpf', '--mount-proc', harness.TOOL, 'run', 'a', '--', 'sh', '-c', 'setsid sleep 600 & exit 4']
    ended(quorum.run(*inside, tool='unshare'), 4)


@case('--leave-daemons leaves them')
def _(quorum):
    path = quorum.path('one')
    script = (f'setsid {sys.executable} -c "$HEART" {path} >&- 2>&- &'
              f'until [ -s {path} ]; do sleep 0.01; done')
    quorum.env['HEART'] = HEART
    ended(quorum.run('run', '--leave-daemons', 'a', '--', 'sh', '-c', script), 0)
    pid = beating(path)
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


def dies_with_the_tool(sentence, stops):
    """A case: the tool is killed."""
    @case(sentence)
    def _(quorum):
        paths, command = family(quorum, 'wait')
        process = quorum.start('run', '--ttl', '2s', '--grace', '300ms', 'a', '--', *command)
        pids = [beating(path) for path in paths]
        supervisor = supervisor_of(process)
        with reaping():  # with a parent of its own session, the system does not continue it
            if stops:
                os.kill(supervisor, signal.SIGSTOP)
            process.kill()
            killed = now()
            equal((process.wait(), quorum.keys()), (-signal.SIGKILL, ['redlock:{a}']))
            os.waitpid(supervisor, 0)
        assert not any(map(alive, pids))
        assert max(beats(path)[-1][0] for path in paths) < killed + 2
        until(lambda: not quorum.keys(), 'the end of the lease')


dies_with_the_tool('the tool is killed: the command and its children die, and the lock ends with its ttl', stops=False)
dies_with_the_tool('the tool is killed while the supervisor is stopped: that goes on, and ends the command and grandchildren', stops=True)


# Hearts, each the parent of the next, in as many sessions.
DEEP = '''
import os, sys
for _ in range(int(sys.argv[2]) - 1):
    if os.fork():
        break
    os.setsid()
''' + HEART


def hearts_below(quorum, depth, *options):
    """The tool, and a function for the last beat of each heart of a tree of this depth below it."""
    path = quorum.path('beats')
    process = quorum.start('run', *options, 'a', '--', sys.executable, '-c', DEEP, str(path), str(depth))

    def last_beats():
        return {pid: at for at, pid in beats(path)}
    until(lambda: len(last_beats()) == depth, 'all hearts')
    return process, last_beats


def dies_in_time(quorum, attack, seconds, status):
    # The margin is for a busy machine. 20 ms for each level would take longer.
    process, last_beats = hearts_below(quorum, 40, '--ttl', '4s', '--grace', '600ms', '--kill-margin', '600ms')
    attack(process)
    attacked = now()
    until(lambda: not any(map(alive, last_beats())), 'the death of all')
    process.send_signal(signal.SIGCONT)
    equal(process.wait(), status)
    assert max(last_beats().values()) < attacked + seconds


@case('the supervisor is killed: a deep tree of processes dies at once, and the tool says so')
def _(quorum):
    dies_in_time(quorum, lambda process: os.kill(supervisor_of(process), signal.SIGKILL), 2, INTERNAL)
    equal(quorum.keys(), [])


@case('the tool is stopped: a deep tree of processes is dead before the deadline')
def _(quorum):
    dies_in_time(quorum, lambda process: process.send_signal(signal.SIGSTOP), 4, LOST)


@case('the supervisor was stopped, and the tool is killed when the command dies: grandchildren die as well')
def _(quorum):
    process, last_beats = hearts_below(quorum, 8, '--ttl', '2s', '--grace', '300ms', '--max-hold', '5s')
    pids = set(last_beats())
    supervisor = supervisor_of(process)
    leader = children_of(supervisor)[-1]
    try:
        os.kill(supervisor, signal.SIGSTOP)
        while alive(leader):
            time.sleep(0.001)
        process.kill()
        until(lambda: not any(map(alive, pids)), 'the death of all')
    finally:
        for pid in filter(alive, pids):
            os.kill(pid, signal.SIGKILL)


@case('the supervisor was stopped while the lease was renewed: the command goes on')
def _(quorum):
    process, _ = quorum.under('echo ran; read line; exit 4', '--ttl', '1s', stdin=subprocess.PIPE)
    supervisor = supervisor_of(process)
    os.kill(supervisor, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(supervisor, signal.SIGCONT)
    time.sleep(0.1)
    said = process.communicate('end\n', timeout=harness.LIMIT_S)
    equal(process.returncode, 4, said)


@case('a command may begin a session of its own, and is ended with the lease as well')
def _(quorum):
    ended(quorum.run('run', 'a', '--', 'setsid', 'sh', '-c', 'exit 13'), 13)
    process, command = quorum.under('exec setsid sh -c \'trap "exit 4" TERM; echo $$; while :; do sleep 0.02; done\'')
    equal(os.getsid(int(command)), int(command))
    process.terminate()
    equal(process.wait(LIMIT_S), 4)
    process = quorum.start('run', '--max-hold', '2s', '--ttl', '2s', 'a', '--', 'setsid', 'sh', '-c', 'trap "" TERM; echo; while :; do sleep 0.02; done')
    equal(process.wait(LIMIT_S), LOST)


# Starts the tool from a thread that ends, says so, and lives until it is killed.
PARENT = '''
import subprocess, sys, threading
def start():
    tool = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
    print(tool.stdout.readline().decode().strip(), tool.pid, flush=True)
thread = threading.Thread(target=start)
thread.start()
thread.join()
print('the thread has ended', flush=True)
sys.stdin.read()
'''


@case('--parent-death: the tool ends with the process that started it, and with no thread of that')
def _(quorum):
    between = quorum.start('-c', PARENT, harness.TOOL, 'run', '--parent-death', 'a', '--', 'sh', '-c', 'echo $$; exec sleep 600',
                           tool=sys.executable, stdin=subprocess.PIPE)
    command, tool = map(int, between.stdout.readline().split())
    equal(between.stdout.readline(), 'the thread has ended\n')
    # As long as that process lives. By now the end of its thread would have reached the command.
    ended(quorum.run('run', '--wait', '2s', 'a', '--', 'true'), HELD)
    assert alive(tool) and alive(command)
    between.kill()
    until(lambda: not alive(tool) and not alive(command), 'the end of both')
    equal(quorum.keys(), [])  # released, as after TERM


# A child of it becomes the tool when this process has ended. Prints the number of the child.
SHORT_LIVED = '''
import os, sys, time
os.setsid()
mine = os.getpid()
tool = os.fork()
if tool == 0:
    while os.getppid() == mine:
        time.sleep(0.001)
    os.execv(sys.argv[1], sys.argv[1:])
print(tool, flush=True)
'''


@case('--parent-death: the tool ends at once if the process that started it had ended before, and lives on without the option')
def _(quorum):
    with reaping():
        for options, outcome in ((['--parent-death'], -signal.SIGTERM), ([], 0)):
            short_lived = quorum.run('-c', SHORT_LIVED, harness.TOOL, 'run', *options, 'a', '--', 'true', tool=sys.executable)
            _, status = os.waitpid(int(short_lived.stdout), 0)
            equal(os.waitstatus_to_exitcode(status), outcome)


if __name__ == '__main__':
    main()
