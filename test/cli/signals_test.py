#!/usr/bin/env python3
"""Signals and job control of `redlock run`: signals_test.py REDLOCK [CASE...]"""

import os
import pathlib
import pty
import signal
import sys
import threading
import time

import harness
from harness import LIMIT_S, Quorum, Relay, case, contains, ended, equal, main, until, with_module


def state_of(pid):
    return pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0]


def command_of(tool):
    """The child of the supervisor after the leader of the group, once it is there."""
    def children(pid):
        return pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
    return int(until(lambda: [one for supervisor in children(tool) for one in children(supervisor)[1:]], 'the command')[0])


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
                           env={'REDLOCK_MASTERS': ','.join(one.url for one in relays)})
    until(lambda: all(master.keys() for master in quorum.masters), 'a granted lock')
    process.send_signal(signal.SIGSTOP)
    until(lambda: state_of(process.pid) == 'T', 'the stop of the tool')
    gate.set()
    for one in relays:
        until(lambda one=one: unread(int(one.url.rpartition(':')[2])), 'a reply')
    process.terminate()  # the tool finds the replies and the signal in one turn of its loop
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=LIMIT_S)
    equal((process.returncode, out), (-signal.SIGTERM, ''))
    equal(quorum.keys(), [])


@case('a signal to the whole group does not end the supervisor, however early it comes')
def _():
    early = with_module('EARLY_SIGNAL')
    with Quorum() as quorum:
        ended(quorum.run('run', 'a', '--', 'env', '-u', 'LD_PRELOAD', 'sh', '-c', 'exit 4', env=early), 4)


@case('a stopped command gets the signals that end it')
def _(quorum):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        process = quorum.start('run', 'a', '--', 'sh', '-c', 'echo $$; kill -STOP $$; exec sleep 600')
        command = int(process.stdout.readline())
        until(lambda command=command: state_of(command) == 'T', 'the stop of the command')
        process.send_signal(number)
        equal(process.wait(LIMIT_S), -number)
        equal(quorum.keys(), [])


@case('a caller that ignores SIGCHLD gets the status of the command, and the end of the tool')
def _():
    def ignore():
        harness.die_with_parent()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    with Quorum(3) as quorum:
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
    for master in quorum.masters:
        master.signal(signal.SIGSTOP)

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


# Starts the tool as a shell with job control does, in the foreground or in the background. What stops in the foreground
# continues in the background. Prints the tool's number, and at the end its status and the owner of the terminal.
SHELL = '''
import os, signal, sys
foreground = sys.argv[1] == 'foreground'
tool = os.fork()
if tool == 0:
    os.setpgid(0, 0)
    if foreground:
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[2], sys.argv[2:])
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
print('tool', tool, flush=True)
if foreground:
    os.waitpid(tool, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    print('stopped', flush=True)
    os.killpg(tool, signal.SIGCONT)
status = os.waitstatus_to_exitcode(os.waitpid(tool, 0)[1])
print('status', status, 'terminal', os.tcgetpgrp(0) == os.getpgrp(), flush=True)
'''


def in_shell(quorum, where, *words):
    """The terminal of a shell that has started the tool."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, '-c', SHELL, where, harness.TOOL, *words], quorum.env)

    def finish():
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    quorum.stack.callback(finish)
    return terminal


def line_with(terminal, what):
    """The rest of the first line that has this in it."""
    out = b''
    while what not in out or b'\n' not in out.partition(what)[2]:
        out += os.read(terminal, 1)
    return out.partition(what)[2].strip().decode()


@case('a command that continues in the background leaves the terminal to the shell')
def _(quorum):
    go = quorum.path('go')
    os.mkfifo(go)
    script = f'echo ready; read line < {go}; exit 4'  # without a child: a shell does not stop during a vfork
    terminal = in_shell(quorum, 'foreground', 'run', 'a', '--', 'sh', '-c', script)
    line_with(terminal, b'ready')
    os.write(terminal, b'\x1a')
    line_with(terminal, b'stopped')
    go.write_text('go on\n')
    equal(line_with(terminal, b'status '), '4 terminal True')


@case('a command that was stopped because it read the terminal from the background can be ended')
def _(quorum):
    terminal = in_shell(quorum, 'background', 'run', 'a', '--', 'cat')
    tool = int(line_with(terminal, b'tool '))
    until(quorum.keys, 'the lock')
    command = command_of(tool)
    until(lambda: state_of(command) == 'T', 'the stop of the command')
    os.kill(tool, signal.SIGTERM)
    equal(line_with(terminal, b'status '), f'{-signal.SIGTERM} terminal True')
    equal(quorum.keys(), [])


if __name__ == '__main__':
    main()
