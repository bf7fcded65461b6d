#!/usr/bin/env python3
"""Servers that are broken or hostile, against the commands that ask masters themselves: hostile_test.py REDLOCK [CASE...]

Each must end, with an error, in bounded memory, and must print nothing that a terminal obeys. The other commands ask
through the library, for which test/net/hostile_test.cpp has more such servers.
"""

import contextlib
import functools
import itertools
import os
import resource
import subprocess
import tempfile
import threading

import harness
from harness import (
    BROKEN, CONFIGURATION, DEGRADED, HELD, LOST, NO_QUORUM, UNDECIDED, WARNINGS, Listener, case, contains, ended, listed, main)

MEMORY_OF_REPLY_KB = 20 * 1024  # what a reply of some MiB costs

INFO = ('run_id:' + 'a' * 40 + '\r\nrole:master\r\nredis_version:7.0.0\r\nuptime_in_seconds:100000\r\n'
        'maxmemory:0\r\nmaxmemory_policy:noeviction\r\nloading:0\r\n')


def bulk(text):
    return f'${len(text)}\r\n{text}\r\n'.encode()


CLOSE = 'close'


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
                    if part == CLOSE:
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


# What the server sends for every command but INFO.
REPLIES = {
    # more than anybody asked for
    'a string that never ends': lambda words: flooding(b'$999999999999\r\n', b'x'),
    'a line that never ends': lambda words: flooding(b'+', b'x'),
    'lists in lists that never end': lambda words: flooding(b'', b'*1\r\n'),
    'a list of two thousand million': lambda words: [b'*2147483647\r\n'],
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
    # something else
    'no RESP': lambda words: [b'HTTP/1.1 400 Bad Request\r\n\r\n'],
    # errors of every kind
    'NOAUTH': lambda words: [b'-NOAUTH Authentication required.\r\n'],
    'LOADING': lambda words: [b'-LOADING Redis is loading the dataset in memory\r\n'],
    'an error that moves the cursor': lambda words: [b'-ERR \x1b[2J\x1b]0;owned\x07\xc2\x9b31m\r\n'],
    'an error with zeros, and no UTF-8': lambda words: [b'-ERR \x00\xff\xfe\xc0\x80\r\n'],
    # valid answers to some of the commands; no Redis answers all of them with one type
    'replies that never end': lambda words: flooding(b'', b'$-1\r\n'),
    'a cursor without end': lambda words: (
        [b'*2\r\n' + bulk('7') + b'*0\r\n'] if words[0] == 'SCAN' else [b'+OK\r\n']),
    'no key': lambda words: [b'$-1\r\n'],
    'no list': lambda words: [b'*-1\r\n'],
    'an empty list': lambda words: [b'*0\r\n'],
    'zero': lambda words: [b':0\r\n'],
    'OK to everything': lambda words: [b'+OK\r\n'],
    'an empty string': lambda words: [b'$0\r\n\r\n'],
    'lists in a page of keys': lambda words: [b'*2\r\n*1\r\n:1\r\n*1\r\n*0\r\n'],
}

COMMANDS = {
    'doctor': ['doctor', '--clock-time', '10ms'],
    'list': ['list'],
    'force-release': ['force-release', '--yes', 'backup'],
}
STATUSES = (HELD, NO_QUORUM, LOST, CONFIGURATION, UNDECIDED, WARNINGS, BROKEN, DEGRADED)
AT_ONCE = 12  # most of them wait


@functools.cache
def memory_at_rest():
    """Of the tool, in KB, with no master to ask."""
    process = subprocess.Popen([harness.TOOL, '--version'], stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_maxrss


def hostile(quorum, reply, info=True):
    """A server for a quorum, which answers INFO rightly, or does not."""
    server = Hostile(lambda words: [bulk(INFO)] if info and words[0] == 'INFO' else reply(words))
    quorum.stack.callback(server.close)
    return server


def ends_in_bounds(command, info):
    kinds = iter(REPLIES.items())
    while some := list(itertools.islice(kinds, AT_ONCE)):
        with harness.Quorum(0) as quorum:
            attempts = []
            for name, reply in some:
                server = hostile(quorum, reply, info)
                output = quorum.stack.enter_context(tempfile.TemporaryFile())
                process = quorum.start('--connect-timeout', '200ms', *COMMANDS[command],
                                       stdout=output, stderr=output, env=listed(server))
                attempts.append((name, output, process))
            for name, output, process in attempts:
                check_end(f'{command}, {name}', process, output)


def check_end(name, process, output):
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    output.seek(0)
    text = output.read()
    what = f'{name}: status {process.returncode}, {usage.ru_maxrss} KB, output: {text[:500]}'
    assert process.returncode in STATUSES, what
    # What a child reports includes the memory of this process when it forked.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert usage.ru_maxrss < max(MEMORY_OF_REPLY_KB + memory_at_rest(), own + 1024), what
    assert len(text) < 20_000, what
    assert not any(byte < 0x20 and byte != 0x0a or byte == 0x7f for byte in text), what
    assert b'\xc2\x9b' not in text, what
    text.decode()


for _command in COMMANDS:
    for _info, _from in ((True, ''), (False, ' from its first reply on')):
        case(f'{_command} ends in bounded memory, whatever a server sends{_from}')(
            functools.partial(ends_in_bounds, _command, _info))


@case('list gives up a SCAN whose cursor does not advance', 0)
def _(quorum):
    server = hostile(quorum, REPLIES['a cursor without end'])
    result = ended(quorum.run('list', env=listed(server)), NO_QUORUM)
    contains(result.stderr, 'invalid reply to SCAN: the cursor does not advance')
    assert server.heard <= 3, server.heard


@case('doctor advises to delete nothing on a server that is not a Redis', 0)
def _(quorum):
    for reply in (REPLIES['OK to everything'], REPLIES['an empty string'], REPLIES['no RESP'], REPLIES['LOADING']):
        result = ended(quorum.run('doctor', '--clock-time', '10ms', env=listed(hostile(quorum, reply))), BROKEN)
        assert 'DEL ' not in result.stdout, result.stdout


@case('list leaves out a key that cannot be a lock, and shows the others', 1)
def _(quorum):
    quorum.masters[0].ask('SET', 'redlock:{' + 'x' * 2000 + '}', 'somebody', 'PX', 60_000)
    quorum.masters[0].ask('SET', 'redlock:{backup}', 'token', 'PX', 60_000)
    result = ended(quorum.run('list', '--json'), 0)
    contains(result.stdout, '"backup"')
    contains(result.stderr, 'a key that is not a lock of this library', '2000 bytes')


if __name__ == '__main__':
    main()
