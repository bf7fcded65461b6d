#!/usr/bin/env python3
"""`redlock doctor`, on each misconfiguration that it claims to find: doctor_test.py REDLOCK [CASE...]"""

import contextlib
import json
import mmap
import os
import pathlib
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import time

from harness import (
    BROKEN, DEGRADED, NO_QUORUM, WARNINGS, Listener, Master, Quorum, Relay, ServerError, Skip, case, certificates, contains,
    ended, equal, free_port, main, until)

FINDS = {'broken': BROKEN, 'degraded': DEGRADED, 'warning': WARNINGS, 'healthy': 0}


def examine(quorum, *words, env=None):
    if '--clock-time' not in words:
        words = (*words, '--clock-time', '20ms')
    result = quorum.run('doctor', '--json', *words, env=env)
    report = json.loads(result.stdout)
    equal(result.returncode, FINDS[report['verdict']])
    return report


def found(quorum, check, severity, said, *words, master=None, env=None, alone=True):
    """The report has this finding, and what is not meant to be wrong is not found wrong."""
    report = examine(quorum, *words, env=env)
    fitting = [one for one in report['findings']
               if one['check'] == check and one['severity'] == severity and said in one['what']
               and (master is None or one['master'] == master.name)]
    if not fitting:
        raise AssertionError(f'no {severity} [{check}] {said!r} in {json.dumps(report, indent=1)}')
    assert fitting[0]['change'] or severity == 'note', fitting
    if alone:
        others = [one for one in report['findings']
                  if one['severity'] != 'note' and one['check'] not in (check, 'quorum')
                  and not (one['check'] == 'quarantine' and 'is off' in one['what'])]
        equal(others, [])
    return report


def through(quorum, way):
    """The masters, the first of them under another address."""
    return {'REDLOCK_MASTERS': quorum.env['REDLOCK_MASTERS'].replace(quorum.masters[0].url, way.url)}


def founded(quorum, *words, env=None):
    """All masters have replied once."""
    ended(quorum.run('run', *words, '--wait', '30s', 'founding', '--', 'true', env=env), 0)


def aged(quorum):
    """Quarantine is on, and short, and over."""
    quorum.env.pop('REDLOCK_NO_QUARANTINE')
    quorum.env |= {'REDLOCK_MAX_TTL': '1s', 'REDLOCK_TTL': '900ms', 'REDLOCK_CLOCK_OFFSET_BOUND': '50ms'}
    ended(quorum.run('run', 'warm-up', '--', 'true'), 0)
    until(lambda: examine(quorum)['admitted'] == len(quorum.masters), 'the end of the quarantine')


@case('a good quorum is healthy, for people and for machines')
def _(quorum):
    aged(quorum)
    report = examine(quorum)
    equal((report['verdict'], report['ready'], report['admitted']), ('healthy', True, 3))
    equal({one['severity'] for one in report['findings']}, {'note'})
    text = ended(quorum.run('doctor', '--clock-time', '10ms'), 0).stdout
    lines = text.splitlines()
    equal([line.split()[0] for line in lines[:-2]], ['MASTER', *(master.name for master in quorum.masters)], text)
    equal(lines[-2:], ['', 'Verdict: healthy (3 of 3 masters vote, 2 needed)'])
    text = ended(quorum.run('doctor', '--notes', '--clock-time', '10ms'), 0).stdout
    contains(text, 'note [clock]', 'ACL SETUSER')
    equal(quorum.keys(), [])


@case('a master that is broken, and locks that work, are told from no locks', 5)
def _(quorum):
    founded(quorum)
    words = ('doctor', '--clock-time', '10ms')
    quorum.masters[0].kill()
    quorum.masters[1].ask('ACL', 'SETUSER', 'default', '-eval')  # grants nothing
    text = ended(quorum.run(*words), DEGRADED).stdout
    contains(text, 'Verdict: degraded: locks work, but at least one master needs repair (3 of 5 masters vote, 3 needed)')
    equal(examine(quorum)['verdict'], 'degraded')
    ended(quorum.run('run', '--wait', '10s', 'a', '--', 'true'), 0)
    quorum.masters[2].kill()
    contains(ended(quorum.run(*words), BROKEN).stdout, 'Verdict: broken (2 of 5 masters vote, 3 needed)')
    ended(quorum.run('run', '--wait', 'none', 'a', '--', 'true'), NO_QUORUM)


class Silent(Listener):
    """Says nothing, until the tool gives up: when it was connected to, and from when to when those connections lasted."""

    def __init__(self):
        self.begun, self.spans = [], []
        super().__init__()

    def serve(self, client):
        begun = time.monotonic()
        self.begun.append(begun)
        with client, contextlib.suppress(ConnectionResetError):
            while client.recv(4096):
                pass
        self.spans.append((begun, time.monotonic()))


def all_ended(masters):
    return all(one.spans and len(one.begun) == len(one.spans) for one in masters)


@case('silent masters are asked all at once')
def _():
    with Quorum(0) as quorum:
        for command in (['doctor', '--clock-time', '1ms'], ['list'], ['force-release', '--yes', 'a']):
            masters = [Silent() for _ in range(3)]
            env = {'REDLOCK_MASTERS': ','.join(one.url for one in masters)}
            quorum.run('--connect-timeout', '200ms', *command, env=env)
            until(lambda all=masters: all_ended(all), 'the end of all connections')
            # The library waits for less than the tool does.
            longest = [max(one.spans, key=lambda span: span[1] - span[0]) for one in masters]
            assert max(begun for begun, _ in longest) < min(ended for _, ended in longest), (command, longest)


@case('silent masters use up the time of the library and of the tool at once')
def _():
    with Quorum(0) as quorum:
        master = Silent()
        quorum.run('--connect-timeout', '5s', 'doctor', '--clock-time', '1ms', env={'REDLOCK_MASTERS': master.url})
        until(lambda: len(master.begun) >= 2 and all_ended([master]), 'the end of both connections')
        assert sorted(master.begun)[1] < min(ended for _, ended in master.spans), master.spans


@case('the ACL line that it prints is enough')
def _(quorum):
    aged(quorum)
    env = {'REDLOCK_USERNAME': 'fetcher', 'REDLOCK_PASSWORD': 'secret'}
    words = examine(quorum, env=env)['acl'].split()
    equal(words[:3], ['ACL', 'SETUSER', 'fetcher'])
    for master in quorum.masters:
        master.ask(*(word.replace('>PASSWORD', '>secret') for word in words))
        master.ask('ACL', 'SETUSER', 'default', 'off')
    equal(examine(quorum, env=env)['verdict'], 'healthy')
    for form in ('--fencing', '--shared', '--exclusive', '--fifo', '--slots=2'):
        ended(quorum.run('run', form, '--wait', '10s', 'a', '--', 'true', env=env), 0)


@case('reachability: a master that is down')
def _(quorum):
    founded(quorum)
    quorum.masters[0].kill()
    found(quorum, 'reachable', 'broken', 'not reachable', master=quorum.masters[0])


@case('reachability: a master that hangs')
def _(quorum):
    founded(quorum)
    quorum.masters[0].signal(19)
    found(quorum, 'reachable', 'broken', 'no reply within', '--connect-timeout', '300ms', master=quorum.masters[0])


@case('reachability: a wrong password is told, and not shown')
def _(quorum):
    quorum.masters[1].ask('CONFIG', 'SET', 'requirepass', 'right')
    env = {'REDLOCK_PASSWORD': 'wrong-sesame'}
    report = found(quorum, 'reachable', 'broken', 'WRONGPASS invalid username-password pair', master=quorum.masters[1],
                   env=env, alone=False)
    assert 'wrong-sesame' not in json.dumps(report)


def mistaken(quorum, urls, *parts, env=None):
    """What `run` says while it waits for good, and `doctor`, about a list of masters none of which can be used."""
    env = (env or {}) | {'REDLOCK_MASTERS': urls}
    # No end of a connection attempt helps.
    waiting = quorum.start('run', '--connect-timeout', '1h', 'a', '--', 'true', env=env)
    began, said = time.monotonic(), ''
    while not all(part in said for part in parts):
        line = waiting.stderr.readline()
        assert line, f'{parts} not in {said}'
        said += line
    took = time.monotonic() - began
    assert took < 10, f'{took} s; promised: two, on a machine that is not busy'
    waiting.terminate()
    waiting.communicate()
    report = examine(quorum, '--connect-timeout', '500ms', env=env)
    equal({one['check'] for one in report['findings'] if one['severity'] == 'broken'} - {'reachable', 'role', 'slots'},
          {'quorum'})
    contains(json.dumps(report), *parts)


def started(quorum, *options, count=3):
    masters = [Master(str(quorum.directory), options) for _ in range(count)]
    for master in masters:
        quorum.stack.callback(master.kill)
    return masters


@case('a server that says why and closes: maxclients, over TCP and a Unix socket, with and without a password')
def _():
    with Quorum(0) as quorum:
        socket_file = quorum.path('socket')
        for path in ('tcp', 'unix'):
            with contextlib.ExitStack() as stack:
                full, = started(quorum, '--unixsocket', str(socket_file), count=1)
                stack.enter_context(full.connect())
                full.ask('CONFIG', 'SET', 'maxclients', 1)
                url = full.url if path == 'tcp' else f'unix://{socket_file}'
                for env in ({}, {'REDLOCK_PASSWORD': 'sesame'}):
                    mistaken(quorum, url, 'ERR max number of clients reached', env=env)
                full.kill()


@case('a server that says why and closes: protected mode')
def _(quorum):
    address = subprocess.run(['hostname', '-I'], capture_output=True, text=True).stdout.split()
    if not address:
        raise Skip('this machine has no address but the loopback')
    for master in quorum.masters:
        master.ask('CONFIG', 'SET', 'bind', '* -::*')
    for env in ({}, {'REDLOCK_PASSWORD': 'sesame'}):
        mistaken(quorum, ','.join(f'redis://{address[0]}:{master.port}' for master in quorum.masters),
                 'DENIED Redis is running in protected mode', env=env)


@case('a server of another kind: a sentinel, a node of a cluster, a web server, one that says nothing')
def _():
    with Quorum(0) as quorum:
        mistaken(quorum, sentinel(quorum), 'is a sentinel')
        node, = started(quorum, '--cluster-enabled', 'yes', '--cluster-config-file', 'nodes', '--cluster-port',
                        str(free_port()), count=1)
        mistaken(quorum, node.url, 'CLUSTERDOWN Hash slot not served', 'cluster-enabled no')
        texts = json.dumps(examine(quorum, env={'REDLOCK_MASTERS': node.url}))
        equal(texts.count('CLUSTERDOWN Hash slot not served'), 1, texts)
        mistaken(quorum, Web().url, 'HTTP/1.1 400 Bad Request')


class Web(Listener):
    """A server that answers everything as a web server does."""

    def serve(self, client):
        with client, contextlib.suppress(OSError):
            client.recv(4096)
            client.sendall(b'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n')


@case('reachability: a missing password is told, and nothing that follows from it')
def _(quorum):
    founded(quorum)
    quorum.masters[1].ask('CONFIG', 'SET', 'requirepass', 'sesame')
    report = found(quorum, 'reachable', 'broken', 'wants a password, and none was given: NOAUTH',
                   master=quorum.masters[1])
    contains(json.dumps(report), 'REDLOCK_PASSWORD')
    equal(report['verdict'], 'degraded')


@case('quorum: no majority votes')
def _(quorum):
    for master in quorum.masters[:2]:
        master.kill()
    found(quorum, 'quorum', 'broken', 'no lock can be acquired', alone=False)


@case('quorum: an even number, or too few')
def _():
    with Quorum(2) as quorum:
        founded(quorum)
        found(quorum, 'quorum', 'warning', 'tolerates no failure')
    with Quorum(4) as quorum:
        founded(quorum)
        found(quorum, 'quorum', 'warning', 'as many failures as 3')


@case('members: a list that lacks one')
def _(quorum):
    founded(quorum)
    urls = quorum.env['REDLOCK_MASTERS'].split(',')
    name = quorum.masters[2].name
    report = found(quorum, 'members', 'warning', f'1 of the 3 members is not in this list: {name}. This client '
                   'tolerates no failures instead of 1', env={'REDLOCK_MASTERS': ','.join(urls[:2])})
    equal((report['verdict'], report['admitted']), ('warning', 2))


@case('latency: masters that answer late')
def _():
    with Quorum() as quorum:
        env = through(quorum, Relay(quorum.masters[0], seconds=0.03))
        found(quorum, 'latency', 'warning', 'near master_timeout', env=env, alone=False)
        found(quorum, 'latency', 'broken', 'later than master_timeout', '--master-timeout', '20ms', env=env, alone=False)


@case('proxy: one address, several servers')
def _():
    with Quorum() as quorum, Quorum(1) as other:
        env = through(quorum, Relay(quorum.masters[0], other.masters[0]))
        founded(quorum, env=env)
        for tries in range(5): # a connection in between may lead both of doctor's to one server
            with contextlib.suppress(AssertionError if tries < 4 else ()):
                report = found(quorum, 'proxy', 'broken', 'reached two servers', env=env, alone=False)
                break
        # It votes, although it must not be trusted: that endangers the locks of all.
        equal((report['verdict'], report['ready']), ('broken', True))


@case('proxy: something that is no server of Redis\' kind')
def _(quorum):
    quorum.masters[0].ask('CONFIG', 'SET', 'requirepass', '')
    quorum.masters[0].ask('ACL', 'SETUSER', 'default', '-info')
    found(quorum, 'proxy', 'broken', 'no run_id', master=quorum.masters[0], alone=False)


class Altered(Listener):
    """A way to a master that changes the replies to doctor's own commands."""

    def __init__(self, master, wrong):
        self.master = master
        self.wrong = wrong
        super().__init__()

    def changed(self, words):
        ours = words[0] in ('TIME', 'CONFIG') or len(words) > 1 and '{redlock-doctor-' in words[1]
        return self.wrong.get(words[0]) if ours else None

    def serve(self, client):
        with contextlib.suppress(OSError), client, client.makefile('rb') as commands, \
                self.master.connect() as master, master.makefile('rb') as replies:
            while (command := self.command(commands))[0]:
                words, sent = command
                master.sendall(sent)
                answer = raw_reply(replies)
                client.sendall(self.changed(words) or answer)


def raw_reply(stream):
    line = stream.readline()
    if line[:1] == b'$' and int(line[1:]) >= 0:
        return line + stream.read(int(line[1:]) + 2)
    if line[:1] == b'*':
        return line + b''.join(raw_reply(stream) for _ in range(int(line[1:])))
    return line


@case('replies: a check whose reply is of a wrong type is a warning')
def _(quorum):
    wrong = {}
    quorum.env['REDLOCK_MASTERS'] = ','.join(Altered(master, wrong).url for master in quorum.masters)
    aged(quorum)
    for command, sent in (('TIME', b':1\r\n'), ('TIME', b'*0\r\n'), ('TIME', b'$-1\r\n'),
                          ('CONFIG', b'$-1\r\n'), ('CONFIG', b'+OK\r\n'), ('SET', b'$-1\r\n'),
                          ('SET', b'$0\r\n\r\n'), ('GET', b':1\r\n'), ('PTTL', b'+OK\r\n'),
                          ('PEXPIRE', b'$-1\r\n'), ('DEL', b'+OK\r\n')):
        wrong.clear()
        wrong[command] = sent
        report = examine(quorum)
        serious = [one for one in report['findings'] if one['severity'] != 'note']
        equal((report['verdict'], [(one['check'], one['severity']) for one in serious]),
              ('warning', [('replies', 'warning')] * 3), f'{command} {sent}')
        for one in serious:
            contains(one['what'], command)
    # A server of Redis' kind that lacks a parameter.
    wrong.clear()
    wrong['CONFIG'] = b'*0\r\n'
    equal(examine(quorum)['verdict'], 'healthy')


@case('run ids: the same server twice')
def _(quorum):
    urls = [quorum.masters[0].url, quorum.masters[1].url, quorum.masters[0].url.replace('127.0.0.1', 'localhost')]
    env = {'REDLOCK_MASTERS': ','.join(urls)}
    founded(quorum, env=env)
    found(quorum, 'duplicate', 'broken', 'is the same server as', env=env)


@case('replication: a replica, and a master that has one')
def _(quorum):
    quorum.masters[0].ask('REPLICAOF', '127.0.0.1', quorum.masters[1].port)
    until(lambda: 'state=online' in quorum.masters[1].ask('INFO', 'replication'), 'replication')
    found(quorum, 'replication', 'broken', 'is a replica of', master=quorum.masters[0], alone=False)
    found(quorum, 'replication', 'warning', 'a promoted replica', master=quorum.masters[1], alone=False)


@case('replication: a replica that was put in its master\'s place')
def _(quorum):
    quorum.masters[0].ask('REPLICAOF', '127.0.0.1', quorum.masters[1].port)
    until(lambda: 'state=online' in quorum.masters[1].ask('INFO', 'replication'), 'replication')
    quorum.masters[0].ask('REPLICAOF', 'NO', 'ONE')
    for protocol in ('plain', 'guarded'):
        found(quorum, 'replication', 'warning', 'was a replica', '--protocol', protocol,
              master=quorum.masters[0], alone=False)


@case('replication: a master that requires replicas for its writes')
def _(quorum):
    quorum.masters[0].ask('CONFIG', 'SET', 'min-replicas-to-write', '1')
    found(quorum, 'writes', 'broken', 'NOREPLICAS', master=quorum.masters[0], alone=False)
    found(quorum, 'replication', 'warning', 'min-replicas-to-write', master=quorum.masters[0], alone=False)


@case('eviction: a policy that evicts locks')
def _(quorum):
    founded(quorum)
    quorum.masters[0].ask('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    found(quorum, 'eviction', 'warning', 'allkeys-lru', master=quorum.masters[0])
    quorum.masters[0].ask('CONFIG', 'SET', 'maxmemory', '100mb')
    found(quorum, 'eviction', 'broken', 'may evict locks', master=quorum.masters[0])


@case('memory: a full master takes no lock')
def _(quorum):
    quorum.masters[0].ask('CONFIG', 'SET', 'maxmemory', '1')
    found(quorum, 'writes', 'broken', 'OOM', master=quorum.masters[0], alone=False)


@case('persistence: what a master does with a restart', options=['--enable-protected-configs', 'yes'])
def _(quorum):
    aged(quorum)
    found(quorum, 'persistence', 'note', 'does not vote for 1s122ms after')
    for master in quorum.masters:
        master.ask('CONFIG', 'SET', 'dir', mkdir(quorum, master))
        master.ask('CONFIG', 'SET', 'appendfsync', 'always')
        master.ask('CONFIG', 'SET', 'appendonly', 'yes')
    found(quorum, 'persistence', 'note', 'writes every lock to disk')


def mkdir(quorum, master):
    path = quorum.path(f'of-{master.port}')
    path.mkdir()
    return str(path)


@case(
    'persistence: a snapshot that failed, and the writes that are refused for it',
    options=['--enable-protected-configs', 'yes'])
def _(quorum):
    master = quorum.masters[0]
    directory = pathlib.Path(mkdir(quorum, master))
    master.ask('CONFIG', 'SET', 'dir', str(directory))
    master.ask('CONFIG', 'SET', 'save', '1 1000000')
    directory.rmdir()
    master.ask('BGSAVE')
    until(lambda: 'rdb_last_bgsave_status:err' in master.ask('INFO', 'persistence'), 'a failed snapshot')
    found(quorum, 'persistence', 'warning', 'last snapshot failed', master=master, alone=False)
    found(quorum, 'writes', 'broken', 'MISCONF', master=master, alone=False)


@case('persistence: an append-only file that cannot be written')
def _(quorum):
    # A file that may not grow ends a program that does not ignore the signal.
    program = quorum.path('server')
    program.write_text('#!/bin/sh\ntrap "" XFSZ\nexec "${REAL_SERVER}" "$@"\n')
    program.chmod(0o755)
    real = os.environ.get('REDLOCK_REDIS_SERVER') or 'redis-server'
    master = Master(str(quorum.directory), ['--appendonly', 'yes'], env={'REAL_SERVER': real}, program=program)
    quorum.stack.callback(master.kill)
    until(lambda: master.ask('PING') == 'PONG', 'the start of a server')  # its files are there
    resource.prlimit(master.process.pid, resource.RLIMIT_FSIZE, (1, 1))
    with contextlib.suppress(ServerError):
        master.ask('SET', 'a', 'b')
    until(lambda: 'aof_last_write_status:err' in master.ask('INFO', 'persistence'), 'a failed write')
    env = through(quorum, master)
    found(quorum, 'persistence', 'broken', 'cannot write its append-only file', master=master, env=env,
          alone=False)


@case('role: a master that is loading its data')
def _(quorum):
    directory = quorum.path('loading')
    directory.mkdir()
    # Loading takes longer than the case, and is interrupted for each request.
    options = ['--rdbcompression', 'no', '--key-load-delay', '2000', '--loading-process-events-interval-bytes',
               '1024']
    master = Master(str(directory), options)
    quorum.stack.callback(master.kill)
    master.ask('EVAL', "for i = 1, 50000 do redis.call('SET', i, string.rep('x', 1000)) end", 0)
    master.ask('SAVE')
    master.restart()
    until(lambda: 'loading:1' in master.ask('INFO', 'persistence'), 'the loading')
    env = through(quorum, master)
    found(quorum, 'role', 'warning', 'is loading its data', master=master, env=env, alone=False)


@case('version: a server that is too old')
def _(quorum):
    if 'valkey_version' in quorum.masters[0].ask('INFO', 'server'):
        raise Skip('this server is no Redis')
    # A real server in all but this.
    old = Relay(quorum.masters[0], change=lambda data: re.sub(rb'redis_version:\d', b'redis_version:5', data))
    founded(quorum, env=through(quorum, old))
    found(quorum, 'version', 'warning', 'versions before 7.0 are not tested', env=through(quorum, old))


@case('restart: a master in quarantine, and for how long')
def _(quorum):
    aged(quorum)
    env = {'REDLOCK_MAX_TTL': '20s'}
    quorum.masters[0].restart()
    report = found(quorum, 'quarantine', 'warning', 'does not vote for', master=quorum.masters[0], env=env,
                   alone=False)
    assert any(re.search(r'for another \d+s(\d+ms)?:', one['what']) for one in report['findings'])


@case('quarantine that is off is told')
def _(quorum):
    founded(quorum)
    found(quorum, 'quarantine', 'warning', 'is off')


@case('quarantine: a quorum for which none is recorded is not healthy')
def _(quorum):
    founded(quorum)
    quorum.env.pop('REDLOCK_NO_QUARANTINE')
    found(quorum, 'quarantine', 'warning', 'none is recorded')
    ended(quorum.run('run', '--wait', 'none', '--max-ttl', '10s', '--ttl', '1s', 'a', '--', 'true'), NO_QUORUM)
    assert all('none is recorded' not in one['what'] for one in examine(quorum)['findings'])


@case('max_ttl: another client that uses a longer one')
def _(quorum):
    aged(quorum)
    ended(quorum.run('run', '--wait', 'none', 'a', '--', 'true', env={'REDLOCK_MAX_TTL': '10m'}), 201)
    report = found(quorum, 'max_ttl', 'warning', 'clock options differ', alone=False)
    equal(report['admitted'], 0)
    assert any('redlock members max-ttl 1s' in one['change'] for one in report['findings'])
    for master in quorum.masters:
        master.ask('DEL', 'redlock::epoch')
    founded(quorum)
    equal(examine(quorum)['admitted'], len(quorum.masters), 'after the shorter quarantine')


@case('record: one of another version, or damaged')
def _(quorum):
    aged(quorum)
    quorum.masters[0].ask('DEL', 'redlock::epoch')
    quorum.masters[0].ask('HSET', 'redlock::epoch', 'run', 'x', 'born', '1', 'q', '0', 'dur', '0')
    quorum.masters[1].ask('SET', 'redlock::epoch', '5 of a version to come')
    large = quorum.masters[2].ask('GET', 'redlock::epoch') + 'ab' * 2_500_000  # more than a reply may have
    quorum.masters[2].ask('SET', 'redlock::epoch', large)
    for master in quorum.masters:
        report = found(quorum, 'record', 'broken', 'of another version of redlock, or damaged',
                       master=master, alone=False)
    assert any('docs/operations.md' in one['change'] for one in report['findings'])


@case('doctor founds no quorum and raises no recorded quarantine, and tells what it found once')
def _(quorum):
    quorum.env.pop('REDLOCK_NO_QUARANTINE')

    def records():
        return [master.ask('GET', 'redlock::epoch').split()[4:] for master in quorum.masters]
    for words in ((), ('--max-ttl', '10m')):
        result = ended(quorum.run('doctor', '--clock-time', '20ms', *words), BROKEN)
        names = ', '.join(master.name for master in quorum.masters)
        contains(result.stdout, f'broken [vote] {names} does not vote: the quorum is not founded yet', 'redlock members found')
        equal(result.stdout.count('not founded yet'), 1)
        equal([(record[0], len(record)) for record in records()], [('0', 2)] * 3)  # no quarantine, an id, and no list
        equal(quorum.keys(), [])
    ended(quorum.run('members', 'found', '--new', env={'REDLOCK_MAX_TTL': '1s'}), 0)
    before = records()
    report = examine(quorum, '--max-ttl', '10m')
    equal((report['admitted'], records()), (3, before))


def not_voting(quorum, env=None):
    """What is found about masters that the library refuses, by master."""
    report = examine(quorum, env=env)
    assert all(any(word in one['change'] for word in ('errors.md', '--masters', 'members found')) and one['severity'] == 'broken'
               for one in report['findings'] if one['check'] == 'vote')
    return report, {one['master']: one['what'] for one in report['findings'] if one['check'] == 'vote'}


@case('vote: a list that is not that of the quorum, and a quorum that is not founded')
def _():
    with Quorum() as quorum:
        founded(quorum)
        few = {'REDLOCK_MASTERS': quorum.masters[0].url}
        report, refused = not_voting(quorum, few)
        equal((report['admitted'], report['verdict']), (0, 'broken'))
        equal(set(refused), {quorum.masters[0].name})
        for why in refused.values():
            contains(why, 'does not vote: not a member', *(master.name for master in quorum.masters))
    with Quorum() as quorum:
        quorum.masters[2].signal(signal.SIGSTOP)
        report, refused = not_voting(quorum)
        equal(set(refused), {master.name for master in quorum.masters[:2]})
        for why in refused.values():
            contains(why, f'missing: {quorum.masters[2].name}')


@case('vote: a record that only the library refuses')
def _(quorum):
    aged(quorum)
    whole = quorum.masters[0].ask('GET', 'redlock::epoch')
    words, id, members = whole[:whole.rindex(' ') + 1], whole.split()[-1][:33], whole.split()[-1][33:]
    # The list in other letters, another mark before it, half of it, and nonsense.
    for record in (words + id + members.upper(), words + id[:32] + '7' + members, whole[:-2], words + id + 'ff'):
        quorum.masters[0].ask('SET', 'redlock::epoch', record)
        report, refused = not_voting(quorum)
        equal((report['verdict'], report['admitted'], set(refused)), ('degraded', 2, {quorum.masters[0].name}), record)


@case('vote: a master with a name of its own')
def _(quorum):
    named = {'REDLOCK_MASTERS': ','.join(f'{one.url}?name=m{i}' for i, one in enumerate(quorum.masters))}
    ended(quorum.run('run', '--wait', '30s', 'founding', '--', 'true', env=named), 0)
    report, refused = not_voting(quorum)
    equal((report['admitted'], set(refused)), (0, {master.name for master in quorum.masters}))
    quorum.masters[0].ask('SET', 'redlock::epoch', quorum.masters[0].ask('GET', 'redlock::epoch')[:-2])
    report, refused = not_voting(quorum, named)
    equal((report['verdict'], report['admitted'], len(refused)), ('degraded', 2, 1))


@case('acl: what every lock needs, and what makes it faster')
def _(quorum):
    founded(quorum)
    quorum.masters[0].ask('ACL', 'SETUSER', 'default', '-eval', '-time')
    found(quorum, 'acl', 'broken', '+eval +time', master=quorum.masters[0])
    quorum.masters[1].ask('ACL', 'SETUSER', 'default', '-publish', '-evalsha', '-config')
    found(quorum, 'acl', 'warning', '+evalsha +publish', master=quorum.masters[1], alone=False)


@case('acl: another prefix than the one that is allowed')
def _(quorum):
    for master in quorum.masters:
        master.ask('ACL', 'SETUSER', 'default', 'resetkeys', '~locks:*')
    found(quorum, 'acl', 'broken', '+set', alone=False)
    founded(quorum, '--prefix', 'locks:')
    found(quorum, 'quarantine', 'warning', 'is off', '--prefix', 'locks:')


@case('slots: a node of a cluster')
def _(quorum):
    node = Master(str(quorum.directory), ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes',
                                         '--cluster-port', str(free_port())])  # else 10,000 more, free or not
    quorum.stack.callback(node.kill)
    env = through(quorum, node)
    found(quorum, 'slots', 'broken', 'CLUSTERDOWN', master=node, env=env, alone=False)
    node.ask('CLUSTER', 'ADDSLOTSRANGE', 0, 16383)
    until(lambda: 'cluster_state:ok' in node.ask('CLUSTER', 'INFO'), 'a cluster')
    found(quorum, 'slots', 'broken', 'CROSSSLOT', master=node, env=env, alone=False)


def sentinel(quorum):
    """The URL of a new one."""
    config = quorum.path('sentinel.conf')
    port = free_port()
    config.write_text(f'port {port}\nbind 127.0.0.1\n')
    program = os.environ.get('REDLOCK_REDIS_SERVER') or 'redis-server'
    process = subprocess.Popen([program, str(config), '--sentinel'], stdout=subprocess.DEVNULL)
    quorum.stack.callback(process.wait)
    quorum.stack.callback(process.kill)
    until(lambda: not socket.socket().connect_ex(('127.0.0.1', port)), 'a sentinel')
    return f'redis://127.0.0.1:{port}'


@case('times: a master_timeout that is not small')
def _(quorum):
    founded(quorum)
    found(quorum, 'times', 'warning', 'is large compared with max_ttl', '--master-timeout', '5s')


@case('clock: masters that are apart, and one that runs at another speed')
def _():
    library = os.environ.get('STEPPED_CLOCK')
    if not library or not os.path.exists(library):
        raise Skip('the module that steps clocks is not built')
    with Quorum() as quorum:
        file = quorum.path('clock')
        file.write_bytes(struct.pack('q', 0))
        with open(file, 'r+b') as opened, mmap.mmap(opened.fileno(), 8) as offset:
            off = Master(str(quorum.directory), env={'LD_PRELOAD': library, 'REDLOCK_CLOCK_FILE': str(file)})
            quorum.stack.callback(off.kill)
            env = through(quorum, off)
            founded(quorum, env=env)
            offset[:] = struct.pack('q', 700_000)
            found(quorum, 'clock', 'warning', 'more than half', env=env)
            offset[:] = struct.pack('q', -1_500_000)
            found(quorum, 'clock', 'broken', 'more than clock_offset_bound', env=env)
            offset[:] = struct.pack('q', 0)
            with drifting(offset, 0.2):
                found(quorum, 'clock', 'broken', 'its clock drifted by', '--clock-time', '500ms', master=off, env=env)


@contextlib.contextmanager
def drifting(offset, share):
    """A clock that gains so much."""
    stop = threading.Event()
    began = time.monotonic()

    def drift():
        while not stop.wait(0.002):
            offset[:] = struct.pack('q', int((time.monotonic() - began) * share * 1e6))

    thread = threading.Thread(target=drift)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@case('tls: verified, unknown authority, wrong name, nearly over, not verified, no TLS there')
def _(quorum):
    certificates(quorum.directory)
    options = ['--tls-cert-file', str(quorum.path('server.crt')), '--tls-key-file', str(quorum.path('server.key')),
               '--tls-ca-cert-file', str(quorum.path('ca.crt')), '--tls-auth-clients', 'no']
    try:
        masters = []
        for _ in range(3):
            port = free_port()
            masters.append(port)
            server = Master(str(quorum.directory), [*options, '--tls-port', str(port)])
            quorum.stack.callback(server.kill)
    except RuntimeError as error:
        raise Skip('this server has no TLS') from error
    urls = {'REDLOCK_MASTERS': ','.join(f'rediss://localhost:{port}' for port in masters)}
    trusted = urls | {'REDLOCK_TLS_CA_FILE': str(quorum.path('ca.crt'))}
    mistaken(quorum, ','.join(f'redis://localhost:{port}' for port in masters), 'a TLS port needs rediss://')
    mistaken(quorum, urls['REDLOCK_MASTERS'], 'certificate verify failed', '--tls-ca-file')
    mistaken(quorum, urls['REDLOCK_MASTERS'].replace('localhost', '127.0.0.1'), "it does not name '127.0.0.1'",
             '--tls-server-name', env=trusted)
    mistaken(quorum, quorum.env['REDLOCK_MASTERS'].replace('redis:', 'rediss:'), 'without TLS', 'redis://')
    founded(quorum, env=trusted)
    report = examine(quorum, env=trusted)
    equal({one['check'] for one in report['findings'] if one['severity'] != 'note'}, {'tls', 'quarantine'})
    found(quorum, 'tls', 'warning', 'its certificate expires in', env=trusted)
    found(quorum, 'reachable', 'broken', 'certificate verify failed', env=urls, alone=False)
    found(quorum, 'reachable', 'broken', 'certificate verify failed', '--tls-server-name', 'other', env=trusted,
          alone=False)
    found(quorum, 'tls', 'warning', 'is not verified', '--tls-insecure', env=urls, alone=False)
    plain = {'REDLOCK_MASTERS': quorum.env['REDLOCK_MASTERS'].replace('redis:', 'rediss:')}
    found(quorum, 'reachable', 'broken', 'not reachable', '--connect-timeout', '500ms', env=trusted | plain,
          alone=False)


@case('tls: a password that travels in the clear')
def _(quorum):
    address = subprocess.run(['hostname', '-I'], capture_output=True, text=True).stdout.split()
    if not address:
        raise Skip('this machine has no address but the loopback')
    for master in quorum.masters:
        master.ask('CONFIG', 'SET', 'bind', '* -::*')
        master.ask('CONFIG', 'SET', 'protected-mode', 'no')
        master.ask('CONFIG', 'SET', 'requirepass', 'sesame')
    env = {'REDLOCK_MASTERS': ','.join(f'redis://:sesame@{address[0]}:{m.port}' for m in quorum.masters)}
    founded(quorum, env=env)
    report = found(quorum, 'tls', 'warning', 'in clear text', env=env)
    assert 'sesame' not in json.dumps(report)


if __name__ == '__main__':
    main()
