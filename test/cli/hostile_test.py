#!/usr/bin/env python3
"""Servers that are broken or hostile, against what the tool asks itself: hostile_test.py REDLOCK [CASE...]

Each command must end with an error, in bounded memory, whatever the server sends.
"""

import contextlib
import os
import socket
import subprocess
import threading

import harness
from harness import (
    BROKEN, CONFIGURATION, HELD, LIMIT_S, NO_QUORUM, WARNINGS, case, contains, main)

MEMORY_MAX_KB = 50 * 1024

INFO = ('run_id:' + 'a' * 40 + '\r\nrole:master\r\nredis_version:7.0.0\r\nuptime_in_seconds:100000\r\n'
        'maxmemory:0\r\nmaxmemory_policy:noeviction\r\nloading:0\r\n')


def bulk(text):
    return f'${len(text)}\r\n{text}\r\n'.encode()


class Hostile:
    """A server that answers each command with what `reply` makes of its words; None: nothing."""

    def __init__(self, reply):
        self.reply = reply
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.url = 'redis://127.0.0.1:%d' % self.listener.getsockname()[1]
        self.open = True
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while self.open:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with contextlib.suppress(OSError), connection, connection.makefile('rb') as commands:
            while self.open:
                count = commands.readline()
                if not count:
                    return
                words = []
                for _ in range(int(count[1:])):
                    length = int(commands.readline()[1:])
                    words.append(commands.read(length + 2)[:-2].decode(errors='replace'))
                for part in self.reply(words) or ():
                    connection.sendall(part)

    def close(self):
        self.open = False
        self.listener.close()


def dripping():
    """One byte now and then, for ever."""
    gate = threading.Event()
    yield b'$1000000\r\n'
    while True:
        yield b'x'
        gate.wait(0.05)


def flooding():
    yield b'$999999999999\r\n'
    while True:
        yield b'x' * 65_536


# What the server sends for every command but INFO.
REPLIES = {
    'a string that never ends': lambda words: flooding(),
    'a string that is announced and not sent': lambda words: [b'$999999999999\r\n'],
    'a list of two thousand million': lambda words: [b'*2147483647\r\n'],
    'lists in lists of many': lambda words: [b'*60000\r\n' * 7],
    'one byte now and then': lambda words: dripping(),
    'no RESP': lambda words: [b'HTTP/1.1 400 Bad Request\r\n\r\n'],
    'a negative length': lambda words: [b'$-7\r\n'],
    'an error of a megabyte': lambda words: [b'-ERR ' + b'x' * 1_000_000 + b'\r\n'],
    'a cursor without end': lambda words: (
        [b'*2\r\n' + bulk('7') + b'*0\r\n'] if words[0] == 'SCAN' else [b'+OK\r\n']),
    'nothing': lambda words: None,
}
COMMANDS = {
    'doctor': ['doctor', '--clock-time', '10ms'],
    'list': ['list'],
    'force-release': ['force-release', '--yes', 'backup'],
}


def ends_in_bounds(name, words, reply):
    def answer(command):
        return [bulk(INFO)] if command[0] == 'INFO' else reply(command)

    server = Hostile(answer)
    try:
        process = subprocess.Popen(
            [harness.TOOL, *words, '--masters', server.url, '--protocol', 'plain'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={'PATH': os.environ['PATH']}, preexec_fn=harness.die_with_parent)
        timer = threading.Timer(2 * LIMIT_S, process.kill)
        timer.start()
        text = process.stderr.read().decode()
        process.stderr.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
        what = f'{name}: status {process.returncode}, {usage.ru_maxrss} KB, stderr: {text[:500]}'
        assert process.returncode in (HELD, NO_QUORUM, CONFIGURATION, WARNINGS, BROKEN), what
        assert usage.ru_maxrss < MEMORY_MAX_KB, what
        assert len(text) < 10_000, what
    finally:
        server.close()


def declare(command, words):
    @case(f'{command} ends in bounded memory, whatever a server sends')
    def _():
        for name, reply in REPLIES.items():
            ends_in_bounds(f'{command}, {name}', words, reply)


for one, its_words in COMMANDS.items():
    declare(one, its_words)


@case('list leaves out a key that cannot be a lock, and shows the others')
def _():
    with harness.Quorum(1) as quorum:
        quorum.masters[0].ask('SET', 'redlock:{' + 'x' * 2000 + '}', 'somebody', 'PX', 60_000)
        quorum.masters[0].ask('SET', 'redlock:{backup}', 'token', 'PX', 60_000)
        result = harness.ended(quorum.run('list', '--json'), 0)
        contains(result.stdout, '"backup"')
        contains(result.stderr, 'a key that is not a lock of this library', '2000 bytes')


if __name__ == '__main__':
    main()
