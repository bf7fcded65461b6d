#!/usr/bin/env python3
"""`redlock local` and `metrics`: local_test.py REDLOCK [CASE...]"""

import re
import signal
import urllib.error
import urllib.request

import harness
from harness import (
    CONFIGURATION, WARNINGS, alive, ask, case, contains, ended, equal, main, until, with_module)
from terminals import Terminal


def masters_of(line):
    """Their ports, of the export line."""
    contains(line, 'export REDLOCK_MASTERS=')
    return [int(port) for port in re.findall(r'127\.0\.0\.1:(\d+)', line)]


def pid_of(port):
    return int(re.search(r'process_id:(\d+)', ask(port, 'INFO', 'server'))[1])


@case('local writes the records for the prefix that is configured, and none for a restarted master', 0)
def _(quorum):
    quorum.env.pop('REDLOCK_NO_QUARANTINE', None)
    quorum.env['REDLOCK_PREFIX'] = 'app:'
    process = quorum.start('local', '--max-ttl', '5s')
    line = process.stdout.readline()
    env = {'REDLOCK_MASTERS': line.strip().partition('=')[2]}
    contains(ended(quorum.run('members', env=env), 0).stdout, 'max_ttl 5s')
    contains(ended(quorum.run('doctor', env=env), 0).stdout, 'healthy')
    equal(ended(quorum.run('run', '--wait', 'none', 'a', '--', 'echo', 'ran', env=env), 0).stdout, 'ran\n')
    ports = masters_of(line)
    equal(len(ports), 5)
    record = ask(ports[0], 'GET', 'app::epoch')
    assert re.fullmatch(r'4 [0-9a-f]{40} - 0 \d+ [0-9a-f]+', record), record
    ended(quorum.run('run', '--wait', 'none', 'a', '--', 'true', env=env | {'REDLOCK_PREFIX': 'other:'}), 201)
    process.send_signal(signal.SIGINT)
    equal(process.wait(), 0)


@case('local leaves nothing behind, whatever signal ends it or kills it, and whenever', 0)
def _(quorum):
    files = quorum.path('files')
    files.mkdir()
    for name in ('TERM', 'HUP', 'INT', 'QUIT', 'USR1', 'USR2', 'ALRM', 'PIPE', 'XCPU'):
        process = quorum.start('local', '1', env={'TMPDIR': str(files)})
        pid = pid_of(masters_of(process.stdout.readline())[0])
        equal(len(list(files.iterdir())), 1)
        process.send_signal(getattr(signal, f'SIG{name}'))
        equal((process.wait(), list(files.iterdir()), alive(pid)), (0, [], False), name)
    process = quorum.start('local', '32', env={'TMPDIR': str(files)})
    until(lambda: list(files.iterdir()), 'the begin')
    process.terminate()
    equal((process.wait(), process.stdout.read(), list(files.iterdir())), (0, '', []))
    process = quorum.start('local', '3', env={'TMPDIR': str(files)})
    pids = [pid_of(port) for port in masters_of(process.stdout.readline())]
    process.kill()
    until(lambda: not any(map(alive, pids)), 'the death of the masters')
    until(lambda: not list(files.iterdir()), 'the removal of their files')


@case('local --faults keys: kill, restart, hang and continue, on a terminal', 0)
def _(quorum):
    quorum.env['NO_COLOR'] = '1'
    tool = Terminal(quorum, harness.TOOL, 'local', '3', '--faults', 'keys')
    for key, what in (('2', 'up'), ('k', 'down'), ('r', 'up'), ('h', 'hung'), ('c', 'up')):
        tool.type(key)
        until(lambda: re.search(rf'>2  redis://127\.0\.0\.1:\d+  {what}\r', tool.reads('\x1b[J')), what)
    tool.type('q')
    equal(tool.ends()[1], 0)


@case('local --faults random leaves a majority', 0)
def _(quorum):
    process = quorum.start('local', '3', '--faults', 'random', '--every', '50ms')
    ports = masters_of(process.stdout.readline())
    equal(len(ports), 3)
    changes = 0
    while changes < 3:
        line = process.stdout.readline()
        changes += ' down' in line or ' hung' in line
    process.terminate()
    equal(process.wait(), 0)


@case('metrics --listen serves them, until a signal comes')
def _(quorum):
    process = quorum.start('metrics', '--listen', '0')
    url = process.stderr.readline().split()[-1]

    def page():
        with urllib.request.urlopen(url) as answer:
            contains(answer.headers['Content-Type'], 'version=0.0.4')
            return answer.read().decode()

    until(lambda: 'redlock_masters_admitted{quorum="default"} 3' in page(), 'three masters')
    with urllib.request.urlopen(urllib.request.Request(url, method='HEAD')) as head:
        contains(head.headers['Content-Type'], 'version=0.0.4')
    try:
        urllib.request.urlopen(url + '-not')
        raise AssertionError('a page that is not there')
    except urllib.error.HTTPError as error:
        equal(error.code, 404)
    quorum.masters[0].kill()
    until(lambda: 'redlock_masters_admitted{quorum="default"} 2' in page(), 'two masters')
    process.terminate()
    equal(process.wait(), 0)
    for address in ('nowhere', ''):
        contains(ended(quorum.run('metrics', '--listen', address), CONFIGURATION).stderr, 'invalid address')


@case('a process that is started while the tool makes a descriptor inherits none')
def _(quorum):
    notes = quorum.path('inherited')
    quorum.env |= with_module('INHERITED') | {'INHERITED_NOTES': str(notes)}
    ended(quorum.run('run', 'a', '--', 'sh', '-c', 'sleep 60 & exec true'), 0)
    ended(quorum.run('acquire', 'b'), 0)
    ended(quorum.run('list'), 0)
    ended(quorum.run('doctor', '--clock-time', '20ms'), WARNINGS)
    metrics = quorum.start('metrics', '--listen', '127.0.0.1:0', stderr=-1)
    urllib.request.urlopen(metrics.stderr.readline().split()[-1]).close()
    local = quorum.start('local', '1')
    masters_of(local.stdout.readline())
    for process in (metrics, local):
        process.send_signal(signal.SIGINT)
        equal(process.wait(), 0)
    noted = notes.read_text().splitlines() if notes.exists() else []
    signals = 6  # Asio's own pipe, once in each process, while it has no other thread
    equal([line for line in noted if line != 'pipe '], [])
    assert noted.count('pipe ') <= signals, noted


if __name__ == '__main__':
    main()
