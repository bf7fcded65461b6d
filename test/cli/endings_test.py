#!/usr/bin/env python3
"""How the tool ends, by a signal as well, and what it leaves on masters, terminal and pipes: endings_test.py REDLOCK [CASE...]"""

import os
import pathlib
import resource
import signal
import socket
import subprocess
import termios
import threading
import time

import harness
from harness import (
    INTERNAL, LIMIT_S, LOST, USAGE, Relay, Skip, alive, case, children_of, contains, ended, equal, listed, main, stat_of, until)
from hearts import beating, beats, heart, now, supervisor_of
from terminals import Shell


@case('a tool that comes too late to end its command leaves the keys to expire')
def _(quorum):
    for protocol in ('guarded', 'plain'):
        path = quorum.path(protocol)
        # The deadline is in the middle of the lease, and leaves a busy machine time to renew.
        process = quorum.start('--protocol', protocol, '--clock-drift-factor', '0.5', 'run', '--ttl', '10s', protocol, '--', *heart(path))
        pid = beating(path)
        supervisor = supervisor_of(process)
        os.kill(supervisor, signal.SIGSTOP)
        process.send_signal(signal.SIGSTOP)
        until(lambda: all(0 < one.ask('PTTL', f'redlock:{{{protocol}}}') < 4_800 for one in quorum.masters), 'the deadline')
        assert alive(pid)
        process.send_signal(signal.SIGCONT)
        equal(process.wait(LIMIT_S), LOST)
        assert not alive(pid)
        equal(quorum.keys(), [f'redlock:{{{protocol}}}'])
        until(lambda: not quorum.keys(), 'the end of the lease')


@case('--kill-margin: the command is killed that long before its lease ends')
def _(quorum):
    path = quorum.path('beats')
    began = now()
    result = quorum.run('run', '--ttl', '8s', '--max-hold', '8s', '--grace', '4s', '--kill-margin', '4s', 'a', '--', *heart(path))
    contains(ended(result, LOST).stderr, 'max_hold_reached')
    (granted, pid), (last, _) = beats(path)[0], beats(path)[-1]
    assert not alive(pid)
    assert began + 2 < last < granted + 6, (began, granted, last)


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


def unread(port):
    """Whether a connection to this port has bytes that its client has not read."""
    lines = [line.split() for line in pathlib.Path('/proc/net/tcp').read_text().splitlines()[1:]]
    return any(int(words[2].split(':')[1], 16) == port and int(words[4].split(':')[1], 16) > 0 for words in lines)


@case('a signal that comes with the last replies of the acquire ends the tool before the command starts')
def _(quorum):
    gate = threading.Event()

    def held_back(master):
        def change(data):
            if master.keys():  # the master has granted the lock: this is its reply
                gate.wait(LIMIT_S)
            return data
        return change
    relays = [Relay(master, change=held_back(master)) for master in quorum.masters]
    process = quorum.start('run', '--master-timeout', '5s', 'a', '--', 'sh', '-c', 'echo ran; exec sleep 600',
                           env=listed(*relays))
    until(lambda: all(master.keys() for master in quorum.masters), 'a granted lock')
    process.send_signal(signal.SIGSTOP)
    until(lambda: stat_of(process.pid)[0] == 'T', 'the stop of the tool')
    gate.set()
    for one in relays:
        until(lambda one=one: unread(int(one.url.rpartition(':')[2])), 'a reply')
    process.terminate()  # the tool finds the replies and the signal in one turn of its loop
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=LIMIT_S)
    equal((process.returncode, out), (-signal.SIGTERM, ''))
    equal(quorum.keys(), [])


@case('a signal to the tool ends it by that signal once the lock is released, also if its command is stopped')
def _(quorum):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        for before in ('', 'kill -STOP $$; '):
            process, command = quorum.under(f'echo $$; {before}exec sleep 600')
            until(lambda: not before or stat_of(command)[0] == 'T', 'the stop of the command')
            process.send_signal(number)
            equal(process.wait(LIMIT_S), -number)
            equal(quorum.keys(), [])


@case('a caller that ignores SIGCHLD gets the status of the command, and the end of the tool')
def _(quorum):
    def ignore():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    for words in (['run', 'a'], ['run', '--slots', '2', 'b'], ['run', '--leave-daemons', 'c'], ['run', '--max-hold', '60s', 'd']):
        ended(quorum.run(*words, '--', 'sh', '-c', 'sleep 0.1 & exit 3', preexec_fn=ignore), 3)
    equal(quorum.keys(), [])


@case('elect: a signal ends the tool at whatever moment between two terms it comes')
def _(quorum):
    timeout_ms = 1_500  # the release of a lost term takes this long if no master replies, and so does the closing
    tools = [quorum.start('elect', '--ttl', '1s', '--max-ttl', '1s', '--master-timeout', f'{timeout_ms}ms', f'e{number}',
                          '--', 'sh', '-c', 'echo leads; exec sleep 600') for number in range(12)]
    for tool in tools:
        equal(tool.stdout.readline(), 'leads\n')
    quorum.everywhere('signal', signal.SIGSTOP)

    def ends(number, tool):
        contains(tool.stderr.readline(), 'lost')
        time.sleep(number / len(tools) * 2.4 * timeout_ms / 1_000)
        tool.terminate()
        tool.communicate(timeout=LIMIT_S)
    threads = [threading.Thread(target=ends, args=each, daemon=True) for each in enumerate(tools)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * timeout_ms / 1_000)
    equal([number for number, tool in enumerate(tools) if tool.poll() is None], [], 'still running')


if __name__ == '__main__':
    main()
