#!/usr/bin/env python3
"""What the tool leaves on the masters, the terminal and its pipes when it ends: endings_test.py REDLOCK [CASE...]"""

import os
import resource
import signal
import socket
import subprocess
import termios
import time

import harness
from harness import (
    INTERNAL, LIMIT_S, LOST, USAGE, Skip, alive, case, children_of, contains, ended, equal, main, stat_of, until)
from hearts import beating, beats, heart, supervisor_of
from terminals import Shell


@case('a tool that comes too late to end its command leaves the keys to expire')
def _(quorum):
    for protocol in ('guarded', 'plain'):
        path = quorum.path(protocol)
        # The deadline is in the middle of the lease.
        process = quorum.start('--protocol', protocol, '--clock-drift-factor', '0.5', 'run', '--ttl', '6s', protocol, '--', *heart(path))
        pid = beating(path)
        supervisor = supervisor_of(process)
        os.kill(supervisor, signal.SIGSTOP)
        process.send_signal(signal.SIGSTOP)
        until(lambda: all(0 < one.ask('PTTL', f'redlock:{{{protocol}}}') < 2_800 for one in quorum.masters), 'the deadline')
        assert alive(pid)
        process.send_signal(signal.SIGCONT)
        equal(process.wait(LIMIT_S), LOST)
        assert not alive(pid)
        equal(quorum.keys(), [f'redlock:{{{protocol}}}'])
        until(lambda: not quorum.keys(), 'the end of the lease')


@case('--kill-margin: the command is killed that long before its lease ends')
def _(quorum):
    path = quorum.path('beats')
    result = quorum.run('run', '--ttl', '8s', '--max-hold', '8s', '--grace', '4s', '--kill-margin', '4s', 'a', '--', *heart(path))
    ended(result, LOST)
    assert beats(path)[-1][0] < beats(path)[0][0] + 6, beats(path)[-1]


@case('a reader of standard error that has ended costs neither the status nor the lock')
def _(quorum):
    read, write = os.pipe()
    os.close(read)
    said = {'stderr': write, 'stdout': subprocess.DEVNULL, 'text': None}
    equal(quorum.start('rnu', **said).wait(LIMIT_S), USAGE)
    equal(quorum.start('--verbose', 'run', 'a', '--', 'sh', '-c', 'exit 4', **said).wait(LIMIT_S), 4)
    equal(quorum.keys(), [])
    stopped, command = quorum.under('echo $$; kill -STOP $$; exit 5', **said | {'stdout': -1})
    until(lambda: stat_of(int(command))[0] == 'T', 'the stop of the command')
    os.kill(int(command), signal.SIGCONT)
    equal(stopped.wait(LIMIT_S), 5)
    equal(quorum.keys(), [])
    os.close(write)


RAW = 'sh -c "stty raw -echo; echo begun; exec sleep 600"'


def with_echo(shell):
    return bool(termios.tcgetattr(shell.terminal)[3] & termios.ECHO)


@case('a command that is killed with the terminal in raw mode leaves it as it was')
def _(quorum):
    for name in ('bash', 'dash'):
        for options, ends in ((['--max-hold', '3s', '--ttl', '3s'], None), ([], signal.SIGKILL), ([], signal.SIGTERM)):
            shell = Shell(quorum, name)
            shell.line('stty echo')
            quorum.path('script').write_text(' '.join([harness.TOOL, 'run', *options, 'a', '--', RAW]) + '; stty -a | grep -w icanon; exit 0')
            shell.line(f'{name} ./script')
            shell.reads('begun')
            assert not with_echo(shell)
            if ends:
                group = os.tcgetpgrp(shell.terminal)
                if ends == signal.SIGKILL:  # its leader may be the first to end
                    os.kill(group, ends)
                    until(lambda: not pathlib.Path(f'/proc/{group}').exists(), 'the end of the leader of the group')
                os.killpg(group, ends)
            contains(shell.reads('echonl'), ' icanon', ' echo')
            shell.line('stty -echo')
            equal(shell.synchronize()[0], 0)
            until(lambda: not quorum.keys(), 'the release')


@case('a limit of descriptors is called that')
def _(quorum):
    statuses = set()
    for number in range(8, 24):
        for words in (['run', 'a', '--', 'sh', '-c', 'exit 4'], ['status', 'a'], ['list']):
            result = quorum.run('-c', f'ulimit -n {number}; exec "$0" "$@"', harness.TOOL, *words, tool='sh')
            statuses.add(result.returncode)
            if result.returncode == INTERNAL:
                contains(result.stderr, 'Too many open files\n')
    assert {INTERNAL, 4} <= statuses, statuses


@case('metrics --listen without descriptors waits for some')
def _(quorum):
    process = quorum.start('metrics', '--listen', '0')
    port = int(process.stderr.readline().split(':')[-1].split('/')[0])
    idle = len(os.listdir(f'/proc/{process.pid}/fd'))
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (idle + 2, idle + 2))
    clients = [socket.create_connection(('127.0.0.1', port)) for _ in range(6)]
    contains(process.stderr.readline(), 'cannot accept a connection: Too many open files')

    def spent():
        return sum(map(int, stat_of(process.pid)[11:13]))
    before = spent()
    time.sleep(2)  # so that a loop would be seen
    assert spent() - before < os.sysconf('SC_CLK_TCK') / 5, spent() - before
    for client in clients:
        client.close()
    with socket.create_connection(('127.0.0.1', port), LIMIT_S) as client:
        client.sendall(b'GET /metrics HTTP/1.1\r\n\r\n')
        contains(client.recv(100).decode(), '200 OK')


@case('as process 1 the tool reaps orphans, passes signals on, and ends with the status of its work')
def _(quorum):
    inside = ['--pid', '--fork', '--kill-child', '--mount-proc']
    if quorum.run(*inside, 'true', tool='unshare').returncode != 0:
        raise Skip('no PID namespace of its own can be made here')

    def start(script):
        process = quorum.start(*inside, harness.TOOL, 'run', 'a', '--', 'sh', '-c', script, tool='unshare')
        equal(process.stdout.readline(), 'begun\n')
        return process, children_of(process.pid)[0]
    process, first = start('echo begun; until [ -e go ]; do sleep 0.05; done; exit 4'.replace('go', str(quorum.path('go'))))
    entered = ['nsenter', '-t', str(first), '--pid', '--mount', 'sh', '-c', 'sleep 0.1 & exec true']
    if subprocess.run(entered, check=False).returncode == 0:
        until(lambda: len(children_of(first)) == 1, 'the end of the orphan')  # at first it may not have come
    quorum.path('go').touch()
    equal(process.wait(LIMIT_S), 4)
    equal(quorum.keys(), [])
    process, first = start('trap "exit 6" TERM; echo begun; while :; do sleep 0.05; done')
    os.kill(first, signal.SIGTERM)
    equal(process.wait(LIMIT_S), 6)
    equal(quorum.keys(), [])


if __name__ == '__main__':
    main()
