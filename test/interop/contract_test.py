#!/usr/bin/env python3
"""What our locks leave on the masters, as docs/interoperability.md promises it: contract_test.py REDLOCK

Read and written by plain commands, as another client would.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
# pylint: disable=wrong-import-position
from harness import HELD, Quorum, ServerError, case, ended, equal, main, until

VALUE = r'[0-9a-f]{40}'


def refused(master, *words):
    """The first word of the error that the server answers with."""
    try:
        return master.ask(*words)
    except ServerError as error:
        return str(error).split()[0]


@case('a lock is one string key with an expiry, and its value is forty hexadecimal digits')
def _():
    for protocol in ('plain', 'guarded'):
        with Quorum(3) as quorum:
            quorum.env |= {'REDLOCK_PROTOCOL': protocol}
            token = quorum.run('acquire', '--ttl', '20s', 'r').stdout.strip()
            assert re.fullmatch(VALUE, token), token
            for master in quorum.masters:
                until(lambda master=master: master.keys() == ['redlock:{r}'], 'the key')
                equal(master.ask('TYPE', 'redlock:{r}'), 'string')
                equal(master.ask('GET', 'redlock:{r}'), token)
                left = master.ask('PTTL', 'redlock:{r}')
                assert 0 < left <= 20_000, left
                # Nothing else but the record, and that only for the guarded protocol.
                equal(sorted(master.ask('KEYS', '*')),
                      (['redlock::epoch'] if protocol == 'guarded' else []) + ['redlock:{r}'])


@case('the compare-and-delete of the Redis page releases it, and ours finds it gone')
def _(quorum):
    token = quorum.run('acquire', '--ttl', '20s', 'r').stdout.strip()
    script = ('if redis.call("get",KEYS[1]) == ARGV[1] then '
              'return redis.call("del",KEYS[1]) else return 0 end')
    for master in quorum.masters:
        until(lambda master=master: master.keys(), 'the key')
        equal(master.ask('SET', 'redlock:{r}', 'another', 'NX', 'PX', 1000), None)
        equal(master.ask('EVAL', script, 1, 'redlock:{r}', 'another'), 0)
        equal(master.ask('EVAL', script, 1, 'redlock:{r}', token), 1)
    ended(quorum.run('run', '--wait', 'none', 'r', '--', 'true'), 0)


@case('whatever is under the key excludes ours, and is left alone: strings without expiry, hashes')
def _():
    for protocol in ('plain', 'guarded'):
        with Quorum(3) as quorum:
            quorum.env |= {'REDLOCK_PROTOCOL': protocol}
            for master in quorum.masters:
                master.ask('SET', 'redlock:{s}', 'for ever')
                master.ask('HSET', 'redlock:{h}', 'client:1', 1)  # as Redisson keeps a lock
                master.ask('PEXPIRE', 'redlock:{h}', 60_000)
            for resource in 'sh':
                ended(quorum.run('run', '--wait', 'none', resource, '--', 'true'), HELD)
            for master in quorum.masters:
                equal(master.ask('GET', 'redlock:{s}'), 'for ever')
                equal(master.ask('HGETALL', 'redlock:{h}'), ['client:1', '1'])


@case('who keeps a lock in a hash gets WRONGTYPE where ours is, and harms nothing', 1)
def _(quorum):
    token = quorum.run('acquire', '--ttl', '20s', 'r').stdout.strip()
    master = quorum.masters[0]
    for words in (['HEXISTS', 'redlock:{r}', 'client:1'], ['HINCRBY', 'redlock:{r}', 'client:1', 1]):
        equal(refused(master, *words), 'WRONGTYPE', words[0])
    equal(master.ask('GET', 'redlock:{r}'), token)


@case('a fencing counter is a decimal number that grows with each owner and outlives the lock')
def _(quorum):
    seen = []
    for _ in range(3):
        told = quorum.run('run', '--fencing', 'r', '--', 'sh', '-c', 'echo $REDLOCK_FENCING_TOKEN')
        seen.append(int(told.stdout))
        counters = [int(master.ask('GET', 'redlock:{r}:fence')) for master in quorum.masters]
        assert counters.count(seen[-1]) >= 2, (seen, counters)
        until(lambda: quorum.keys() == ['redlock:{r}:fence'], 'the lock is gone, the counter is not')
        for master in quorum.masters:
            assert master.ask('PTTL', 'redlock:{r}:fence') > 0
    assert seen == sorted(set(seen)), seen
    # It begins at a master's clock in microseconds.
    clock = int(quorum.masters[0].ask('TIME')[0]) * 1_000_000
    assert abs(clock - seen[0]) < 3600 * 1_000_000, (clock, seen[0])


@case('who takes a lock by SET does not count, so it has no place in the order of tokens', 1)
def _(quorum):
    master = quorum.masters[0]
    ended(quorum.run('run', '--fencing', 'r', '--', 'true'), 0)
    before = master.ask('GET', 'redlock:{r}:fence')
    equal(master.ask('SET', 'redlock:{r}', 'foreign', 'NX', 'PX', 60_000), 'OK')
    master.ask('DEL', 'redlock:{r}')
    equal(master.ask('GET', 'redlock:{r}:fence'), before)


@case('the record of a master is a string of its format, run id, promotion, birth, quarantine and an id with the list', 1)
def _(quorum):
    ended(quorum.run('run', 'r', '--', 'true'), 0)
    master = quorum.masters[0]
    layout, run, promoted_from, born, quarantine, drawn = master.ask('GET', 'redlock::epoch').split(' ')
    run_id = re.search(r'run_id:(\w+)', master.ask('INFO', 'server'))[1]
    equal((layout, run, promoted_from, quarantine), ('4', run_id, '-', '0/32602000'))  # off
    number, listed = re.fullmatch('([0-9a-f]{32})1([0-9a-f]+)', drawn).groups()
    assert int(number, 16) != 0
    equal(bytes.fromhex(listed).decode(), master.url.removeprefix('redis://'))
    assert 0 < int(born) <= int(master.ask('TIME')[0]) * 1_000_000 + 1_000_000
    equal(master.ask('PTTL', 'redlock::epoch'), -1)


@case('a foreign SET is not held up by a quarantine: only ours are', 1)
def _(quorum):
    del quorum.env['REDLOCK_NO_QUARANTINE']
    quorum.env |= {'REDLOCK_MAX_TTL': '10m'}
    ended(quorum.run('run', '--wait', 'none', 'r', '--', 'true'), 201)
    equal(quorum.masters[0].ask('SET', 'redlock:{r}', 'foreign', 'NX', 'PX', 60_000), 'OK')


@case('the slots of a pool are locks, one key for each number', 1)
def _(quorum):
    quorum.holder('crew', '--slots', '1', '--fencing')
    equal(quorum.keys(), ['redlock:{crew}:slot:0', 'redlock:{crew}:slot:0:fence'])
    assert re.fullmatch(VALUE, quorum.masters[0].ask('GET', 'redlock:{crew}:slot:0'))
    # One key more under the same name, and neither sees the other.
    ended(quorum.run('run', '--wait', 'none', 'crew', '--', 'true'), 0)


@case('while there are readers the lock is theirs, and a foreign SET is kept out by them', 1)
def _(quorum):
    master = quorum.masters[0]
    quorum.holder('r', '--shared')
    equal(quorum.keys(), ['redlock:{r}', 'redlock:{r}:readers'])
    equal(master.ask('GET', 'redlock:{r}'), 'readers')
    equal(master.ask('TYPE', 'redlock:{r}:readers'), 'zset')
    token, until_ms = master.ask('ZRANGE', 'redlock:{r}:readers', 0, -1, 'WITHSCORES')
    assert re.fullmatch(VALUE, token), token
    assert float(until_ms) > float(master.ask('TIME')[0]) * 1000
    assert master.ask('PTTL', 'redlock:{r}:readers') > 0
    equal(master.ask('SET', 'redlock:{r}', 'foreign', 'NX', 'PX', 60_000), None)


@case('the queue of those who want their turn is two sorted sets which expire', 1)
def _(quorum):
    master = quorum.masters[0]
    quorum.holder('r', '--fifo')
    quorum.start('run', '--fifo', 'r', '--', 'true')
    keys = ['redlock:{r}', 'redlock:{r}:queue', 'redlock:{r}:queue:until']
    # The holder's own ticket may be seen first, and be gone the next moment.
    until(lambda: quorum.keys() == keys and all(master.ask('TYPE', key) == 'zset' for key in keys[1:]), 'the queue')
    for key in keys[1:]:
        assert master.ask('PTTL', key) != -1, key


@case('a release is told on the channel of the lock by a part of its value, and no other change is', 1)
def _(quorum):
    master = quorum.masters[0]
    ear = quorum.start('-p', master.port, 'PSUBSCRIBE', '*', tool='redis-cli')
    equal([ear.stdout.readline() for _ in range(3)], ['psubscribe\n', '*\n', '1\n'])
    token = quorum.run('acquire', '--ttl', '20s', 'r').stdout.strip()
    # Somebody else's by now: the release must neither remove it nor wake anybody.
    equal(master.ask('SET', 'redlock:{r}', 'foreign', 'PX', 60_000), 'OK')
    told = quorum.run('release', 'r', env={'REDLOCK_TOKEN': token})
    assert told.returncode != 0, told
    equal(master.ask('GET', 'redlock:{r}'), 'foreign')
    equal(master.ask('DEL', 'redlock:{r}'), 1)
    again = quorum.run('acquire', '--ttl', '20s', 'r').stdout.strip()
    ended(quorum.run('release', 'r', env={'REDLOCK_TOKEN': again}), 0)
    equal([ear.stdout.readline() for _ in range(4)], ['pmessage\n', '*\n', 'redlock:{r}:free\n', f'{again[:16]}\n'])


@case('a message on the channel makes a waiter ask long before a foreign lease ends', 1)
def _(quorum):
    master = quorum.masters[0]
    equal(master.ask('SET', 'redlock:{r}', 'foreign', 'NX', 'PX', 600_000), 'OK')
    waits = quorum.start('run', '--wait', 'forever', 'r', '--', 'true')
    until(lambda: master.ask('PUBSUB', 'NUMSUB', 'redlock:{r}:free')[1] == 1, 'it listens')
    # Both at once: an attempt in between would find the lock free, and end the subscription.
    release = "redis.call('DEL', KEYS[1]) return redis.call('PUBLISH', KEYS[1] .. ':free', 'x')"
    equal(master.ask('EVAL', release, 1, 'redlock:{r}'), 1)
    equal(waits.wait(60), 0)


if __name__ == '__main__':
    main()
