#!/usr/bin/env python3
"""Signals and job control of `redlock run`: signals_test.py REDLOCK [CASE...]"""

import pathlib
import signal
import threading
import time

import harness
from harness import (
    LIMIT_S, Relay, case, contains, ended, equal, listed, main, stat_of, until)


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
        harness.die_with_parent()
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
