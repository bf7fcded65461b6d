#!/usr/bin/env python3
"""`redlock doctor`, on each misconfiguration that it claims to find: doctor_test.py REDLOCK [CASE...]"""

import contextlib
import json
import mmap
import re
import signal
import socket
import struct
import subprocess
import threading
import time

from harness import (
    BROKEN, DEGRADED, NO_QUORUM, WARNINGS, Listener, Master, Quorum, Relay, ServerError, Skip, case, contains, ended, equal,
    free_port, listed, main, until, with_module)

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
    return listed(way, *quorum.masters[1:])


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
    contains(ended(quorum.run(*words), BROKEN).stdout, 'broken [quorum] no lock can be acquired',
             'Verdict: broken (2 of 5 masters vote, 3 needed)')
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


@case('silent masters are asked all at once, by the library and by the tool', 0)
def _(quorum):
    for command in (['doctor', '--clock-time', '1ms'], ['list'], ['force-release', '--yes', 'a']):
        masters = [Silent() for _ in range(3)]
        quorum.run('--connect-timeout', '200ms', *command, env=listed(*masters))
        until(lambda all=masters: all_ended(all), 'the end of all connections')
        # The library waits for less than the tool does.
        longest = [max(one.spans, key=lambda span: span[1] - span[0]) for one in masters]
        assert max(begun for begun, _ in longest) < min(ended for _, ended in longest), (command, longest)
    master = Silent()
    quorum.run('--connect-timeout', '5s', 'doctor', '--clock-time', '1ms', env=listed(master))
    until(lambda: len(master.begun) >= 2 and all_ended([master]), 'the end of both connections')
    assert sorted(master.begun)[1] < min(ended for _, ended in master.spans), master.spans


@case('the ACL line that it prints is enough')
def _(quorum):
    aged(quorum)
    env = {'REDLOCK_USERNAME': 'fetcher', 'REDLOCK_PASSWORD': 'secret'}
    words = examine(quorum, env=env)['acl'].split()
    equal(words[:3], ['ACL', 'SETUSER', 'fetcher'])
    quorum.everywhere('ask', *(word.replace('>PASSWORD', '>secret') for word in words))
    quorum.everywhere('ask', 'ACL', 'SETUSER', 'default', 'off')
    equal(examine(quorum, env=env)['verdict'], 'healthy')
    for form in ('--fencing', '--shared', '--exclusive', '--fifo', '--slots=2'):
        ended(quorum.run('run', form, '--wait', '10s', 'a', '--', 'true', env=env), 0)


def spoilt(sentence, spoil, *findings, words=(), alone=True):
    """A case: what is found about one of three masters, which were founded, after this was done to it."""
    @case(sentence)
    def _(quorum):
        founded(quorum)
        spoil(quorum.masters[0])
        for check, severity, said in findings:
            found(quorum, check, severity, said, *words, master=quorum.masters[0], alone=alone)


def asking(*commands):
    return lambda master: [master.ask(*command.split()) for command in commands]


spoilt('reachability: a master that is down', Master.kill, ('reachable', 'broken', 'not reachable'))
spoilt('reachability: a master that hangs', lambda master: master.signal(signal.SIGSTOP),
       ('reachable', 'broken', 'no reply within'), words=['--connect-timeout', '300ms'])
spoilt('replication: a master that requires replicas for its writes', asking('CONFIG SET min-replicas-to-write 1'),
       ('writes', 'broken', 'NOREPLICAS'), ('replication', 'warning', 'min-replicas-to-write'), alone=False)
spoilt('eviction: a policy that evicts locks', asking('CONFIG SET maxmemory-policy allkeys-lru'),
       ('eviction', 'warning', 'allkeys-lru'))
spoilt('eviction: the same policy and a limit',
       asking('CONFIG SET maxmemory-policy allkeys-lru', 'CONFIG SET maxmemory 100mb'),
       ('eviction', 'broken', 'may evict locks'))
spoilt('memory: a full master takes no lock', asking('CONFIG SET maxmemory 1'), ('writes', 'broken', 'OOM'), alone=False)
spoilt('acl: what every lock needs', asking('ACL SETUSER default -eval -time'), ('acl', 'broken', '+time +eval'))
spoilt('acl: INFO, which says nothing about the server', asking('ACL SETUSER default -info'), ('acl', 'broken', '+info'))
spoilt('acl: what some locks need, and what makes them faster',
       asking('ACL SETUSER default -publish -subscribe -evalsha -config -zadd -zrem'),
       ('acl', 'warning', '+evalsha (speed), +zadd +zrem (--shared and --fifo), +publish +subscribe (notification of waiters'))
spoilt('acl: the keys of other programs only', asking('ACL SETUSER default resetkeys ~other:*'),
       ('acl', 'broken', 'it must allow the keys redlock:*'))
spoilt('acl: no channels', asking('ACL SETUSER default resetchannels'),
       ('acl', 'warning', 'it must allow the channels &redlock:*'))


@case('quarantine that is off, and a master_timeout that is not small')
def _(quorum):
    founded(quorum)
    found(quorum, 'quarantine', 'warning', 'is off')
    found(quorum, 'times', 'warning', 'is large compared with max_ttl', '--master-timeout', '5s')


@case('reachability: a wrong password is told and not shown, and a missing one without what follows from it')
def _(quorum):
    founded(quorum)
    master = quorum.masters[1]
    master.ask('CONFIG', 'SET', 'requirepass', 'right')
    report = found(quorum, 'reachable', 'broken', 'WRONGPASS invalid username-password pair', master=master,
                   env={'REDLOCK_PASSWORD': 'wrong-sesame'}, alone=False)
    assert 'wrong-sesame' not in json.dumps(report)
    report = found(quorum, 'reachable', 'broken', 'wants a password, and none was given: NOAUTH', master=master)
    contains(json.dumps(report), 'REDLOCK_PASSWORD')
    equal(report['verdict'], 'degraded')


def mistaken(quorum, env, *parts):
    """What `run` says while it waits for good, and `doctor`, about a list of masters none of which can be used."""
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
    equal({one['check'] for one in report['findings'] if one['severity'] == 'broken'}
          - {'acl', 'commands', 'reachable', 'role', 'slots', 'writes'}, {'quorum'})
    contains(json.dumps(report), *parts)
    return said + json.dumps(report)


@case('a server that says why and closes: maxclients, over TCP and a Unix socket, with and without a password', 0)
def _(quorum):
    socket_file = quorum.path('socket')
    full = quorum.add('--unixsocket', str(socket_file))
    with full.connect():
        full.ask('CONFIG', 'SET', 'maxclients', 1)
        for url in (full.url, f'unix://{socket_file}'):
            for env in ({}, {'REDLOCK_PASSWORD': 'sesame'}):
                mistaken(quorum, listed(url) | env, 'ERR max number of clients reached')


def from_outside(quorum, login=''):
    """The masters, by an address that is not of the loopback."""
    address = subprocess.run(['hostname', '-I'], capture_output=True, text=True).stdout.split()
    if not address:
        raise Skip('this machine has no address but the loopback')
    quorum.everywhere('ask', 'CONFIG', 'SET', 'bind', '* -::*')
    return listed(*(f'redis://{login}{address[0]}:{master.port}' for master in quorum.masters))


@case('a server that says why and closes: protected mode')
def _(quorum):
    urls = from_outside(quorum)
    for env in ({}, {'REDLOCK_PASSWORD': 'sesame'}):
        mistaken(quorum, urls | env, 'DENIED Redis is running in protected mode')


@case('a server of another kind: a sentinel, a node of a cluster, a web server', 0)
def _(quorum):
    mistaken(quorum, listed(sentinel(quorum)), 'is a sentinel')
    node = listed(cluster_node(quorum))
    mistaken(quorum, node, 'CLUSTERDOWN Hash slot not served', 'cluster-enabled no')
    texts = json.dumps(examine(quorum, env=node))
    equal(texts.count('CLUSTERDOWN Hash slot not served'), 1, texts)
    mistaken(quorum, listed(Web()), 'HTTP/1.1 400 Bad Request')
    mistaken(quorum, listed(f'unix://{quorum.directory}', f'unix://{quorum.path("none")}'),
             'Connection refused', 'No such file', 'unixsocket in its')


def is_busy(master):
    try:
        return master.ask('PING') != 'PONG'
    except ServerError as error:
        return str(error).startswith('BUSY')


@case('a server that is busy with a script was reached, and one that lacks a command has no wrong ACL', 0)
def _(quorum):
    busy = quorum.add('--lua-time-limit', '1')
    with busy.connect() as client:
        client.sendall(b'EVAL "while true do end" 0\r\n')
        until(lambda: is_busy(busy), 'a script')
        said = mistaken(quorum, listed(busy), 'BUSY ', 'SCRIPT KILL or FUNCTION KILL')
        contains(said, 'replies with an error: BUSY')
        assert 'not reachable' not in said, said
    for command in ('EVAL', 'SET', 'INFO'):
        said = mistaken(quorum, listed(quorum.add('--rename-command', command, '')), 'rename-command')
        contains(said, f'does not know commands that every lock needs: {command}"')
        assert 'ACL refuses' not in said and 'a proxy' not in said, said
    lacking = listed(quorum.add('--rename-command', 'PUBLISH', '', '--rename-command', 'CLIENT', ''))
    found(quorum, 'commands', 'warning', 'CLIENT SETNAME (names in CLIENT LIST), PUBLISH (', env=lacking, alone=False)
    refusing = quorum.add()
    refusing.ask('ACL', 'SETUSER', 'default', '-time')
    mistaken(quorum, listed(refusing), 'ACL')


@case('masters that are admitted and refuse every lock have no votes')
def _(quorum):
    founded(quorum)
    for name in ('maxmemory', 'min-replicas-to-write'):
        quorum.everywhere('ask', 'CONFIG', 'SET', name, 1)
        contains(ended(quorum.run('doctor', '--clock-time', '10ms'), BROKEN).stdout, ' refuse to set a key: ',
                 'no lock can be acquired: 0 of 3 masters vote', 'Verdict: broken (0 of 3 masters vote, 2 needed)')
        mistaken(quorum, {}, f'CONFIG SET {name}')
        quorum.everywhere('ask', 'CONFIG', 'SET', name, 0)


class Web(Listener):
    """A server that answers everything as a web server does."""

    def serve(self, client):
        with client, contextlib.suppress(OSError):
            client.recv(4096)
            client.sendall(b'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n')


@case('quorum: an even number, or too few')
def _():
    for count, said in ((2, 'tolerates no failure'), (4, 'as many failures as 3')):
        with Quorum(count) as quorum:
            founded(quorum)
            found(quorum, 'quorum', 'warning', said)


@case('members: a list that lacks one')
def _(quorum):
    founded(quorum)
    name = quorum.masters[2].name
    report = found(quorum, 'members', 'warning', f'1 of the 3 members is not in this list: {name}. This client '
                   'tolerates no failures instead of 1', env=listed(*quorum.masters[:2]))
    equal((report['verdict'], report['admitted']), ('warning', 2))


@case('latency: masters that answer late')
def _(quorum):
    env = through(quorum, Relay(quorum.masters[0], seconds=0.03))
    found(quorum, 'latency', 'warning', 'near master_timeout', env=env, alone=False)
    found(quorum, 'latency', 'broken', 'later than master_timeout', '--master-timeout', '20ms', env=env, alone=False)


@case('proxy: one address, several servers')
def _(quorum):
    env = through(quorum, Relay(quorum.masters[0], quorum.add()))
    founded(quorum, env=env)
    for tries in range(5): # a connection in between may lead both of doctor's to one server
        with contextlib.suppress(AssertionError if tries < 4 else ()):
            report = found(quorum, 'proxy', 'broken', 'reached two servers', env=env, alone=False)
            break
    # It votes, although it must not be trusted: that endangers the locks of all.
    equal((report['verdict'], report['ready']), ('broken', True))


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
    quorum.env |= listed(*(Altered(master, wrong) for master in quorum.masters))
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
    env = listed(*quorum.masters[:2], quorum.masters[0].url.replace('127.0.0.1', 'localhost'))
    founded(quorum, env=env)
    found(quorum, 'duplicate', 'broken', 'is the same server as', env=env)


@case('replication: a replica, a master that has one, and a replica that was put in its master\'s place')
def _(quorum):
    replica, master, _ = quorum.masters
    replica.ask('REPLICAOF', '127.0.0.1', master.port)
    until(lambda: 'state=online' in master.ask('INFO', 'replication'), 'replication')
    found(quorum, 'replication', 'broken', 'is a replica of', master=replica, alone=False)
    contains(quorum.run('status', 'a', env={'REDLOCK_NO_QUARANTINE': 'false'}).stdout, 'absent (is a replica (role:slave)')
    found(quorum, 'replication', 'warning', 'a promoted replica', master=master, alone=False)
    replica.ask('REPLICAOF', 'NO', 'ONE')
    for protocol in ('plain', 'guarded'):
        found(quorum, 'replication', 'warning', 'was a replica', '--protocol', protocol, master=replica, alone=False)


@case('persistence: what a master does with a restart')
def _(quorum):
    aged(quorum)
    found(quorum, 'persistence', 'note', 'does not vote for 1s122ms after')
    durable = quorum.add('--appendonly', 'yes', '--appendfsync', 'always')
    found(quorum, 'persistence', 'note', 'writes every lock to disk', master=durable, env=through(quorum, durable), alone=False)


def informed(sentence, changes, check, severity, said):
    """A case: what is found about a master whose INFO has these changes, each as long as what it replaces."""
    @case(sentence)
    def _(quorum):
        def change(data):
            for part, other in changes.items():
                data = data.replace(part, other)
            return data
        env = through(quorum, Relay(quorum.masters[0], change=change))
        found(quorum, check, severity, said, env=env, alone=False)


informed('proxy: something that is no server of Redis\' kind', {b'\nrun_id:': b'\nrun_no:'}, 'proxy', 'broken', 'no run_id')
informed('persistence: a snapshot that failed', {b'rdb_last_bgsave_status:ok\r\n': b'rdb_last_bgsave_status:err\n'},
         'persistence', 'warning', 'last snapshot failed')
informed('persistence: an append-only file that cannot be written',
         {b'aof_enabled:0': b'aof_enabled:1', b'aof_last_write_status:ok\r\n': b'aof_last_write_status:err\n'},
         'persistence', 'broken', 'cannot write its append-only file')
informed('role: a master that is loading its data', {b'\nloading:0': b'\nloading:1'}, 'role', 'warning', 'is loading its data')


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


@case('a quorum that is not founded is told once')
def _(quorum):
    quorum.env.pop('REDLOCK_NO_QUARANTINE')
    result = ended(quorum.run('doctor', '--clock-time', '20ms'), BROKEN)
    names = ', '.join(master.name for master in quorum.masters)
    contains(result.stdout, f'broken [vote] {names} do not vote: the quorum is not founded yet', 'redlock members found')
    equal(result.stdout.count('not founded yet'), 1)
    equal(quorum.keys(), [])


def not_voting(quorum, env=None):
    """What is found about masters that the library refuses, by master."""
    report = examine(quorum, env=env)
    assert all(any(word in one['change'] for word in ('errors.md', '--masters', 'members found')) and one['severity'] == 'broken'
               for one in report['findings'] if one['check'] == 'vote')
    return report, {one['master']: one['what'] for one in report['findings'] if one['check'] == 'vote'}


@case('vote: a list that is not that of the quorum, and a record that is damaged')
def _(quorum):
    founded(quorum)
    first = quorum.masters[0]
    report, refused = not_voting(quorum, listed(first))
    equal((report['admitted'], report['verdict'], set(refused)), (0, 'broken', {first.name}))
    contains(refused[first.name], 'does not vote: not a member', *(master.name for master in quorum.masters))
    first.ask('SET', 'redlock::epoch', first.ask('GET', 'redlock::epoch')[:-2])
    report, refused = not_voting(quorum)
    equal((report['verdict'], report['admitted'], set(refused)), ('degraded', 2, {first.name}))


def cluster_node(quorum):
    return quorum.add('--cluster-enabled', 'yes', '--cluster-config-file', 'nodes',
                      '--cluster-port', str(free_port()))  # else 10,000 more, free or not


@case('slots: a node of a cluster')
def _(quorum):
    node = cluster_node(quorum)
    env = through(quorum, node)
    node.ask('CLUSTER', 'ADDSLOTSRANGE', 0, 16383)
    until(lambda: 'cluster_state:ok' in node.ask('CLUSTER', 'INFO'), 'a cluster')
    mistaken(quorum, listed(node), 'CROSSSLOT', 'cluster-enabled no')
    found(quorum, 'slots', 'broken', 'CROSSSLOT', master=node, env=env, alone=False)


def sentinel(quorum):
    """The URL of a new one."""
    config = quorum.path('sentinel.conf')
    port = free_port()
    config.write_text(f'port {port}\nbind 127.0.0.1\n')
    process = subprocess.Popen([Master.program, str(config), '--sentinel'], stdout=subprocess.DEVNULL)
    quorum.stack.callback(process.wait)
    quorum.stack.callback(process.kill)
    until(lambda: not socket.socket().connect_ex(('127.0.0.1', port)), 'a sentinel')
    return f'redis://127.0.0.1:{port}'


@case('clock: masters that are apart, and one that runs at another speed')
def _(quorum):
    file = quorum.path('clock')
    file.write_bytes(struct.pack('q', 0))
    with open(file, 'r+b') as opened, mmap.mmap(opened.fileno(), 8) as offset:
        off = quorum.add(env=with_module('STEPPED_CLOCK') | {'REDLOCK_CLOCK_FILE': str(file)})
        env = through(quorum, off)
        founded(quorum, env=env)
        offset[:] = struct.pack('q', 700_000)
        found(quorum, 'clock', 'warning', 'more than half', env=env)
        offset[:] = struct.pack('q', -1_500_000)
        found(quorum, 'clock', 'broken', 'more than clock_offset_bound', env=env)
        offset[:] = struct.pack('q', 0)
        began, stop = time.monotonic(), threading.Event()

        def drift():
            while not stop.wait(0.002):
                offset[:] = struct.pack('q', int((time.monotonic() - began) * 0.2e6))
        thread = threading.Thread(target=drift)
        thread.start()
        try:
            found(quorum, 'clock', 'broken', 'its clock drifted by', '--clock-time', '500ms', master=off, env=env)
        finally:
            stop.set()
            thread.join()


def tls_masters(quorum, certificate, clients='no'):
    """The URLs of three masters with a certificate for localhost, which is its own authority."""
    key = quorum.path('server.key')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', certificate, '-days', '7',
                    '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'], check=True, capture_output=True)
    ports = [free_port() for _ in range(3)]
    try:
        for port in ports:
            quorum.add('--tls-port', str(port), '--tls-auth-clients', clients, '--tls-cert-file', certificate,
                       '--tls-key-file', key, '--tls-ca-cert-file', certificate)
    except RuntimeError as error:
        raise Skip('this server has no TLS') from error
    return [f'rediss://localhost:{port}' for port in ports]


@case('tls: verified, unknown authority, wrong name, nearly over, not verified, no TLS there')
def _(quorum):
    urls = tls_masters(quorum, quorum.path('server.crt'))
    trusted = listed(*urls) | {'REDLOCK_TLS_CA_FILE': str(quorum.path('server.crt'))}
    mistaken(quorum, listed(*(url.replace('rediss:', 'redis:') for url in urls)), 'a TLS port needs rediss://')
    mistaken(quorum, listed(*urls), 'certificate verify failed', '--tls-ca-file')
    mistaken(quorum, trusted | listed(*(url.replace('localhost', '127.0.0.1') for url in urls)),
             "it does not name '127.0.0.1'", '--tls-server-name')
    mistaken(quorum, listed(*(master.url.replace('redis:', 'rediss:') for master in quorum.masters)), 'without TLS', 'redis://')
    strict = quorum.path('strict.crt')
    env = listed(*tls_masters(quorum, strict, 'yes')) | {'REDLOCK_TLS_CA_FILE': str(strict)}
    said = mistaken(quorum, env, 'may require a certificate', '--tls-private-key-file')
    assert '--tls-ca-file' not in said and '--tls-server-name' not in said, said
    founded(quorum, env=trusted)
    report = examine(quorum, env=trusted)
    equal({one['check'] for one in report['findings'] if one['severity'] != 'note'}, {'tls', 'quarantine'})
    found(quorum, 'tls', 'warning', 'its certificate expires in', env=trusted)
    found(quorum, 'reachable', 'broken', 'certificate verify failed', '--tls-server-name', 'other', env=trusted, alone=False)
    found(quorum, 'tls', 'warning', 'is not verified', '--tls-insecure', env=listed(*urls), alone=False)


@case('tls: a password that travels in the clear')
def _(quorum):
    env = from_outside(quorum, ':sesame@')
    quorum.everywhere('ask', 'CONFIG', 'SET', 'protected-mode', 'no')
    quorum.everywhere('ask', 'CONFIG', 'SET', 'requirepass', 'sesame')
    founded(quorum, env=env)
    report = found(quorum, 'tls', 'warning', 'in clear text', env=env)
    assert 'sesame' not in json.dumps(report)


if __name__ == '__main__':
    main()
