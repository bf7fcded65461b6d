#!/usr/bin/env python3
"""Ours and other lock clients on the same keys of the same real servers: exclusion_test.py REDLOCK

The others are real: the npm package `redlock`, a quorum client, over three masters and over one, and
redis-py's `Lock`, which knows one server. What is not installed is skipped, and says why.
"""

import atexit
import functools
import itertools
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
# pylint: disable=wrong-import-position
from clients import Client
from harness import Quorum, case, equal, main, until

LONG_MS = 300_000  # no case lasts that long: a lock that is gone has not expired

OURS = ('plain', 'guarded')
QUORUM_CLIENTS = (*OURS, 'npm redlock')
ALL = (*QUORUM_CLIENTS, 'redis-py')

# (first, second, on how many masters)
PAIRS = [(first, second, 3) for first, second in itertools.permutations(QUORUM_CLIENTS, 2)]
PAIRS += [(first, second, 1) for first, second in itertools.permutations(ALL, 2)
          if 'redis-py' in (first, second)]

numbers = itertools.count()


@functools.cache
def quorum(masters):
    started = Quorum(masters)
    atexit.register(started.stack.close)
    return started


@functools.cache
def client(kind, masters):
    """One of each kind serves all cases."""
    started = Client(kind, quorum(masters).masters)
    atexit.register(started.kill)
    return started


def new_resource():
    return f'r{next(numbers)}'


def key_of(resource):
    return f'redlock:{{{resource}}}'


def majority(masters, holds):
    return sum(map(holds, quorum(masters).masters)) > masters // 2


def taken(kind, masters, ttl):
    """A resource that this client has taken just now. The loaded machine may be slower than the ttl."""
    def one():
        resource = new_resource()
        return resource if client(kind, masters).does('acquire', resource, ttl) else None
    return until(one, f'a lock for {kind}')


def others_release_passes_on(first, second, masters):
    one, other = client(first, masters), client(second, masters)
    resource = taken(first, masters, LONG_MS)
    equal(other.does('acquire', resource, LONG_MS), False, 'a second holder')
    equal(one.does('release', resource), True, 'the release')
    until(lambda: other.does('acquire', resource, LONG_MS), 'the second one has it')
    equal(one.does('acquire', resource, LONG_MS), False, 'the first one again')
    equal(other.does('release', resource), True, 'the second release')
    for master in quorum(masters).masters:
        until(lambda master=master: master.ask('EXISTS', key_of(resource)) == 0, 'nothing is left')


def expired_is_lost(first, second, masters):
    one, other = client(first, masters), client(second, masters)
    resource = taken(first, masters, 300)
    # Paused, or ours would give it back by itself just before it expires.
    one.process.send_signal(signal.SIGSTOP)
    until(lambda: other.does('acquire', resource, LONG_MS), 'the lock expires')
    one.process.send_signal(signal.SIGCONT)
    equal(one.does('extend', resource, LONG_MS), False, 'an extension of what is lost')
    equal(one.does('release', resource), False, 'a release of what is lost')
    equal(one.does('acquire', resource, LONG_MS), False, 'a second holder')
    equal(other.does('extend', resource, LONG_MS), True, 'the extension by the holder')
    equal(other.does('release', resource), True, 'the release by the holder')


def extension_is_respected(first, second, masters):
    one, other = client(first, masters), client(second, masters)
    for _ in range(20):
        resource = taken(first, masters, 700)
        # Expires after the lock would have.
        quorum(masters).masters[0].ask('SET', 'clock', 'x', 'PX', 750)
        if one.does('extend', resource, LONG_MS):
            break
    else:
        raise AssertionError('the machine is too slow for an extension within 700 ms')
    until(lambda: quorum(masters).masters[0].ask('EXISTS', 'clock') == 0, 'the end of the first ttl')
    assert majority(masters, lambda master: master.ask('PTTL', key_of(resource)) > LONG_MS // 2)
    equal(other.does('acquire', resource, LONG_MS), False, 'a second holder')
    equal(one.does('release', resource), True, 'the release')


for pair in PAIRS:
    where = f'{pair[0]} and {pair[1]} on {pair[2]}'
    for sentence, check in [
            ('the second waits for the release by the first, and the first for the second',
             others_release_passes_on),
            ('what expired while the first was paused is the second\'s, and not for the first to extend or release',
             expired_is_lost),
            ('the second respects an extension by the first', extension_is_respected)]:
        case(f'{where}: {sentence}')(functools.partial(check, *pair))


def never_two(kinds, masters, rounds):
    site = quorum(masters)
    directory = site.path(new_resource())
    directory.mkdir()
    (directory / 'counter').write_text('0')
    crowd = [Client(kind, site.masters) for kind in kinds]
    resource = new_resource()
    try:
        for one in crowd:
            one.tell('contend', resource, 20_000, rounds, directory)
        for one in crowd:
            equal(one.answer(), (True, ''), one.kind)
    finally:
        for one in crowd:
            one.kill()
    equal((directory / 'overlaps').exists(), False, 'two were in at once')
    equal(int((directory / 'counter').read_text()), rounds * len(crowd))
    print(f'# {rounds * len(crowd)} times in, by {len(crowd)} processes')


@case('six processes of three kinds contend over three masters, and never are two in')
def _():
    never_two(['plain', 'guarded', 'npm redlock'] * 2, 3, 100)


@case('seven processes of four kinds contend on one master, and never are two in')
def _():
    never_two(['plain', 'guarded', 'npm redlock', 'redis-py', 'plain', 'redis-py', 'npm redlock'],
              1, 100)


@case('a client that waits by polling gets what a foreign one releases long before its lease ends')
def _():
    for kind in OURS:
        for foreign, masters in (('npm redlock', 3), ('redis-py', 1)):
            resource = taken(foreign, masters, LONG_MS)
            waiter = client(kind, masters)
            # Waits for longer than the case may last: it looks once more before it gives up.
            waiter.tell('acquire', resource, 1000, LONG_MS)
            equal(client(foreign, masters).does('release', resource), True, 'the release')
            equal(waiter.answer()[0], True, f'{kind} after {foreign}')


@case('who waits for releases to be told gets a foreign lock when its lease would have ended')
def _():
    # `redlock run` subscribes by default. The releases of other clients are not announced.
    resource = taken('npm redlock', 3, 3000)
    waits = quorum(3).start('run', '--wait', '60s', resource, '--', 'true')
    client('npm redlock', 3).does('release', resource)
    equal(waits.wait(60), 0)


@case('on an empty prefix the bare name is the key for all')
def _():
    with Quorum(1) as site:
        crowd = [Client(kind, site.masters, prefix='') for kind in ALL]
        for one in crowd:
            until(lambda one=one: one.does('acquire', 'bare', LONG_MS), f'{one.kind} has it')
            equal(site.masters[0].keys(), ['bare'], one.kind)
            equal([other.does('acquire', 'bare', LONG_MS) for other in crowd], [False] * len(crowd))
            equal(one.does('release', 'bare'), True)
        for one in crowd:
            one.kill()


# What does not work, as docs/interoperability.md says.
@case('who locks one master of three excludes nobody who asks all of them, and is not excluded')
def _():
    site = quorum(3)
    alone = Client('redis-py', site.masters[:1])
    try:
        for kind in QUORUM_CLIENTS:
            resource = new_resource()
            equal(alone.does('acquire', resource, LONG_MS), True, 'one master')
            until(lambda kind=kind, resource=resource:
                  client(kind, 3).does('acquire', resource, LONG_MS), f'two holders, one is {kind}')
            equal(alone.does('release', resource), True)
            equal(client(kind, 3).does('release', resource), True)
    finally:
        alone.kill()


if __name__ == '__main__':
    main()
