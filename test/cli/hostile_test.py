#!/usr/bin/env python3
"""Servers that are broken or hostile, against every command that talks to one: hostile_test.py REDLOCK [CASE...]

Each command must end, with an error unless what the server says is a valid answer, in bounded memory, and must
print nothing that a terminal obeys.
"""

import contextlib
import functools
import itertools
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import threading

import harness
from harness import (
    BROKEN, CONFIGURATION, DEGRADED, HELD, LIMIT_S, LOST, NO_QUORUM, UNDECIDED, WARNINGS, Listener, case, contains, main,
    until)

MEMORY_MAX_KB = 50 * 1024
MEMORY_OF_REPLY_KB = 20 * 1024  # of doctor, list and force-release: what a reply of some MiB costs

INFO = ('run_id:' + 'a' * 40 + '\r\nrole:master\r\nredis_version:7.0.0\r\nuptime_in_seconds:100000\r\n'
        'maxmemory:0\r\nmaxmemory_policy:noeviction\r\nloading:0\r\n')


def bulk(text):
    return f'${len(text)}\r\n{text}\r\n'.encode()


CLOSE = 'close'
RESET = 'reset'


class Hostile(Listener):
    """A server that answers each command with what `reply` makes of its words; None: nothing."""

    def __init__(self, reply):
        self.reply = reply
        self.open = True
        self.heard = 0
        super().__init__()

    def serve(self, connection):
        with contextlib.suppress(OSError), connection, connection.makefile('rb') as commands:
            while self.open:
                words, _ = self.command(commands)
                if not words:
                    return
                self.heard += 1
                for part in self.reply(words) or ():
                    if part == RESET:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                    if part in (CLOSE, RESET):
                        return
                    connection.sendall(part)

    def close(self):
        self.open = False
        super().close()


def dripping():
    """One byte now and then, without end."""
    gate = threading.Event()
    yield b'$1000000\r\n'
    while True:
        yield b'x'
        gate.wait(0.05)


def flooding(begin, more):
    yield begin
    while True:
        yield more * (65_536 // len(more))


def noise():
    return random.Random(1).randbytes(4096)


# What the server sends for every command but INFO.
REPLIES = {
    # more than anybody asked for
    'a string that never ends': lambda words: flooding(b'$999999999999\r\n', b'x'),
    'a line that never ends': lambda words: flooding(b'+', b'x'),
    'an error that never ends': lambda words: flooding(b'-ERR ', b'x'),
    'a number that never ends': lambda words: flooding(b':', b'9'),
    'a length that never ends': lambda words: flooding(b'$', b'9'),
    'lists in lists that never end': lambda words: flooding(b'', b'*1\r\n'),
    'messages that never end': lambda words: flooding(b'', b'*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n'),
    'a string that is announced and not sent': lambda words: [b'$999999999999\r\n'],
    'a list of two thousand million': lambda words: [b'*2147483647\r\n'],
    'a map of two thousand million': lambda words: [b'%2147483647\r\n'],
    'a set of two thousand million': lambda words: [b'~2147483647\r\n'],
    'lists in lists of many': lambda words: [b'*60000\r\n' * 7],
    'a string of megabytes': lambda words: [b'$3900000\r\n' + b'x' * 3_900_000 + b'\r\n'],
    'lines of megabytes': lambda words: [b'$3888890\r\n' + b''.join(b'%06d:b\r\n' % one for one in range(388_889)) + b'\r\n'],
    'a list of megabytes': lambda words: [b'*65000\r\n' + b'$50\r\n%050d\r\n' % 0 * 65_000],
    'many numbers': lambda words: [b'*65000\r\n' + b':1\r\n' * 65_000],
    'a page of many names': lambda words: [b'*2\r\n$1\r\n0\r\n*60000\r\n' + b'$12\r\nredlock:{aa}\r\n' * 60_000],
    'an error of a megabyte': lambda words: [b'-ERR ' + b'x' * 1_000_000 + b'\r\n'],
    # less
    'nothing': lambda words: None,
    'one byte now and then': lambda words: dripping(),
    'the end of the connection': lambda words: [CLOSE],
    'a reset of the connection': lambda words: [RESET],
    'half a string, and the end': lambda words: [b'$100\r\nabc', CLOSE],
    'half a list, and a reset': lambda words: [b'*3\r\n:1\r\n', RESET],
    # something else
    'no RESP': lambda words: [b'HTTP/1.1 400 Bad Request\r\n\r\n'],
    'noise': lambda words: [noise()],
    'a negative length': lambda words: [b'$-7\r\n'],
    'a negative count': lambda words: [b'*-7\r\n'],
    'a length that is no number': lambda words: [b'$many\r\n'],
    'a number that is none': lambda words: [b':many\r\n'],
    'a number of a hundred digits': lambda words: [b':' + b'9' * 100 + b'\r\n'],
    'a string without its end': lambda words: [b'$3\r\nabcdefgh\r\n'],
    'a push that nobody asked for': lambda words: [b'>2\r\n+message\r\n+x\r\n'],
    'an attribute': lambda words: [b'|1\r\n+key\r\n+value\r\n+OK\r\n'],
    # errors of every kind
    'NOAUTH': lambda words: [b'-NOAUTH Authentication required.\r\n'],
    'NOSCRIPT, also to a script': lambda words: [b'-NOSCRIPT No matching script.\r\n'],
    'LOADING': lambda words: [b'-LOADING Redis is loading the dataset in memory\r\n'],
    'MOVED': lambda words: [b'-MOVED 3999 127.0.0.1:1\r\n'],
    'an empty error': lambda words: [b'-\r\n'],
    'an error that moves the cursor': lambda words: [b'-ERR \x1b[2J\x1b]0;owned\x07\xc2\x9b31m\r\n'],
    'an error with zeros, and no UTF-8': lambda words: [b'-ERR \x00\xff\xfe\xc0\x80\r\n'],
}
# Valid answers to some of the commands, which may succeed by them.
ANSWERS = {
    'replies that never end': lambda words: flooding(b'', b'$-1\r\n'),
    'a cursor without end': lambda words: (
        [b'*2\r\n' + bulk('7') + b'*0\r\n'] if words[0] == 'SCAN' else [b'+OK\r\n']),
    'no key': lambda words: [b'$-1\r\n'],
    'no list': lambda words: [b'*-1\r\n'],
    'an empty list': lambda words: [b'*0\r\n'],
    'zero': lambda words: [b':0\r\n'],
    'one': lambda words: [b':1\r\n'],
    'OK to everything': lambda words: [b'+OK\r\n'],
    'an empty string': lambda words: [b'$0\r\n\r\n'],
    'lists in a page of keys': lambda words: [b'*2\r\n*1\r\n:1\r\n*1\r\n*0\r\n'],
}

TOKEN = '0123456789abcdef0123456789abcdef01234567'
# Those that end by themselves.
COMMANDS = {
    'doctor': ['doctor', '--clock-time', '10ms'],
    'list': ['list'],
    'force-release': ['force-release', '--yes', 'backup'],
    'status': ['status', 'backup'],
    'acquire': ['acquire', '--wait', '300ms', 'backup'],
    'acquire --fencing --fifo': ['acquire', '--wait', '300ms', '--fencing', '--fifo', 'backup'],
    'extend': ['extend', '--token', TOKEN, 'backup'],
    'release': ['release', '--token', TOKEN, 'backup'],
    'attach': ['attach', '--token', TOKEN, 'backup', '--', 'true'],
    'run': ['run', '--wait', '300ms', 'backup', '--', 'true'],
    'run --shared': ['run', '--shared', '--wait', '300ms', 'backup', '--', 'true'],
    'pool': ['pool', '--size', '3', '--wait', '300ms', 'backup', '--', 'true'],
    'metrics': ['metrics'],
    'members': ['members'],
}
# Those that end by a signal.
ENDLESS = {
    'watch': ['watch', '--interval', '10ms', 'backup'],
    'elect': ['elect', 'backup', '--', 'sleep', '600'],
}
MAY_SUCCEED = ('metrics', 'watch')
# No Redis answers all of their commands with one type.
MUST_FAIL = ('doctor', 'force-release', 'list')
STATUSES = (HELD, NO_QUORUM, LOST, CONFIGURATION, UNDECIDED, WARNINGS, BROKEN, DEGRADED)
AT_ONCE = 12  # most of them wait


@functools.cache
def memory_at_rest():
    """Of the tool, in KB, with no master to ask."""
    process = subprocess.Popen([harness.TOOL, '--version'], stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_maxrss


class Attempt:
    """One command with one server."""

    def __init__(self, name, words, reply, info, protocol):
        self.name = name
        self.in_little = words[0] in MUST_FAIL
        self.server = Hostile(lambda command: [bulk(INFO)] if info and command[0] == 'INFO' else reply(command))
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [harness.TOOL, '--masters', self.server.url, '--protocol', protocol, '--connect-timeout', '200ms',
             '--no-quarantine', *words],
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output,
            env={'PATH': os.environ['PATH']}, preexec_fn=harness.die_with_parent)
        self.timer = threading.Timer(2 * LIMIT_S, self.process.kill)
        self.timer.start()

    def end(self, succeeds, by_signal):
        try:
            if by_signal:
                until(lambda: self.server.heard >= 2 or self.has_ended(), 'its commands')
                os.kill(self.process.pid, signal.SIGTERM) # it has not been waited for
            _, status, usage = os.wait4(self.process.pid, 0)
            self.process.returncode = code = os.waitstatus_to_exitcode(status)
            self.output.seek(0)
            text = self.output.read()
            what = f'{self.name}: status {code}, {usage.ru_maxrss} KB, output: {text[:500]}'
            allowed = STATUSES + ((0,) if succeeds else ())
            if by_signal:
                # A signal may also come before or after the session that listens to it: to a shell, the same status.
                allowed += (0, 128 + signal.SIGTERM, -signal.SIGTERM)
            assert code in allowed, what
            # What a child reports includes the memory of this process when it forked.
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            bounded = MEMORY_OF_REPLY_KB + memory_at_rest() if self.in_little else MEMORY_MAX_KB
            assert usage.ru_maxrss < max(bounded, own + 1024), what
            assert len(text) < 20_000, what
            assert not any(byte < 0x20 and byte != 0x0a or byte == 0x7f for byte in text), what
            assert b'\xc2\x9b' not in text, what
            text.decode()
        finally:
            self.close()

    def has_ended(self):
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def close(self):
        self.timer.cancel()
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()
        self.server.close()
        self.output.close()


def ends_in_bounds(command, words, by_signal=False, info=True, protocol='plain'):
    kinds = iter([(*kind, False) for kind in REPLIES.items()] + [(*kind, True) for kind in ANSWERS.items()])
    while some := list(itertools.islice(kinds, AT_ONCE)):
        with contextlib.ExitStack() as stack:
            attempts = []
            for name, reply, valid in some:
                attempt = Attempt(f'{command}, {name}', words, reply, info, protocol)
                stack.callback(attempt.close)
                attempts.append((attempt, valid))
            for attempt, valid in attempts:
                succeeds = valid and words[0] not in MUST_FAIL
                attempt.end(succeeds or words[0] in MAY_SUCCEED, by_signal)


def declare(command, words, **how):
    @case(f'{command} ends in bounded memory, whatever a server sends'
          + ''.join(f', {name}={value}' for name, value in how.items()))
    def _():
        ends_in_bounds(command, words, **how)


for one, its_words in COMMANDS.items():
    declare(one, its_words)
for one, its_words in ENDLESS.items():
    declare(one, its_words, by_signal=True)
# The introduction is a part of the library that all commands share; the guarded protocol is one of scripts.
for one in ('doctor', 'list', 'force-release', 'status', 'run'):
    declare(one, COMMANDS[one], info=False)
for one in ('doctor', 'run', 'acquire --fencing --fifo', 'members'):
    declare(one, COMMANDS[one], protocol='guarded')
# A change waits until the members reply.
declare('members add', ['members', 'add', 'm2', '--masters', 'redis://127.0.0.1:1?name=m2'], protocol='guarded',
        by_signal=True)


@contextlib.contextmanager
def quorum_of(reply):
    """The environment of a quorum of one such server that has an INFO."""
    server = Hostile(lambda words: [bulk(INFO)] if words[0] == 'INFO' else reply(words))
    with harness.Quorum(0) as quorum:
        quorum.env['REDLOCK_MASTERS'] = server.url
        yield quorum, server
    server.close()


@case('list gives up a SCAN whose cursor does not advance')
def _():
    with quorum_of(ANSWERS['a cursor without end']) as (quorum, server):
        result = harness.ended(quorum.run('list'), NO_QUORUM)
        contains(result.stderr, 'invalid reply to SCAN: the cursor does not advance')
        assert server.heard <= 3, server.heard


@case('doctor advises to delete nothing on a server that is not a Redis')
def _():
    for reply in (ANSWERS['OK to everything'], ANSWERS['an empty string'], REPLIES['no RESP'], REPLIES['LOADING']):
        with quorum_of(reply) as (quorum, _):
            result = quorum.run('doctor', '--clock-time', '10ms')
            assert result.returncode == BROKEN, result
            assert 'DEL ' not in result.stdout, result.stdout


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
