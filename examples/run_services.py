#!/usr/bin/env python3
"""Runs an example of several processes end to end: run_services.py PROGRAM [MIGRATION_GUARD]

Starts the masters, PostgreSQL where the example needs it, and as many instances as the story has;
stops, kills and continues them, and checks what they print and what they leave behind. It waits for
what happens and not for a time. Ends with 77, for "skipped", when PostgreSQL is needed and not here.
"""

import contextlib
import http.client
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import run_examples
from instances import Site, alive, until

LIMIT_S = 100


# --- migration_guard ------------------------------------------------------------------------------


class InTheWay:
    """An open transaction, which others wait for."""

    def __init__(self, site, statement):
        self.process = subprocess.Popen(
            [site.psql, site.postgres.url, '-XAtq'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, preexec_fn=run_examples.die_with_parent)
        site.ending.callback(self.process.stdout.close)
        site.ending.callback(self.process.wait)
        site.ending.callback(self.process.kill)
        self.tell(f"BEGIN; {statement}; SELECT 'is there';")
        assert self.process.stdout.readline() == 'is there\n'

    def tell(self, statements):
        self.process.stdin.write(statements + '\n')
        self.process.stdin.flush()

    def leave(self):
        self.tell('ROLLBACK;')
        self.process.stdin.close()


def start_guards(site, program, count):
    return [site.start(program, site.postgres.url, *site.urls) for _ in range(count)]


def waiting(site, statement):
    """Whether PostgreSQL keeps somebody waiting who has begun that."""
    return site.query("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                      f" AND query LIKE '{statement}%'") != '0'


def migrates_once(site, program):
    guards = start_guards(site, program, 5)
    said = [one.ends_with(0) for one in guards]
    assert sum('migrated from version 0 to 3' in text for text in said) == 1, said
    assert sum('found version 3' in text for text in said) == 4, said
    assert sum(text.count('migrates to version') for text in said) == 3, said


def next_after(site, program, harm):
    """One is harmed amid its migration; another one migrates, with a larger token."""
    site.query('DROP TABLE IF EXISTS documents; DROP TABLE IF EXISTS schema_record')
    obstacle = InTheWay(site, 'CREATE TABLE documents (x int)')
    first, = start_guards(site, program, 1)
    old = int(first.says(r'has the lock, with token (\d+)')[1])
    first.says('migrates to version 1')
    until(lambda: waiting(site, 'CREATE TABLE documents'), 'it is in its transaction', 0.2)
    first.send(harm)
    others = start_guards(site, program, 2)
    # The lease has ended when one of them has the lock.
    until(lambda: waiting(site, '%schema_record'), 'the next one is at the record', 0.2)
    obstacle.leave()
    said = [one.ends_with(0) for one in others]
    assert sum('migrated from version 0 to 3' in text for text in said) == 1, said
    assert sum('found version 3' in text for text in said) == 1, said
    new = [int(token) for text in said for token in re.findall(r'with token (\d+)', text)]
    assert all(token > old for token in new), (old, new)
    assert site.query('SELECT version, fencing_token >= '
                      f'{min(new)} FROM schema_record') == '3|t'
    return first


def migration_guard(site, program):
    site.start_postgres()
    migrates_once(site, program)
    assert next_after(site, program, signal.SIGKILL).process.wait() == -signal.SIGKILL
    paused = next_after(site, program, signal.SIGSTOP)
    paused.send(signal.SIGCONT)
    # PostgreSQL has ended its transaction: it tells so, and has changed nothing.
    assert 'migrated' not in paused.ends_with(2)
    assert site.query('SELECT version FROM schema_record') == '3'

    # Paused before its transaction, it is refused by the token.
    obstacle = InTheWay(site, 'LOCK TABLE schema_record')
    late, = start_guards(site, program, 1)
    until(lambda: waiting(site, '%schema_record'), 'it is at the record', 0.2)
    late.send(signal.SIGSTOP)
    obstacle.leave()
    assert 'found version 3' in start_guards(site, program, 1)[0].ends_with(0)
    late.send(signal.SIGCONT)
    assert 'stale fencing token' in late.ends_with(2)


# --- document_service -----------------------------------------------------------------------------


class Upload:
    """A PUT that stops before the body: by then the service has the lock."""

    def __init__(self, port, name, text):
        self.text = text.encode()
        self.link = http.client.HTTPConnection('127.0.0.1', port, timeout=LIMIT_S)
        self.link.putrequest('PUT', f'/documents/{name}')
        self.link.putheader('Content-Length', str(len(self.text)))
        self.link.putheader('Expect', '100-continue')
        self.link.endheaders()
        assert self.link.sock.recv(4096).startswith(b'HTTP/1.1 100'), 'no 100'

    def finish(self):
        self.link.send(self.text)
        answer = self.link.getresponse()
        return answer.status, answer.read().decode()


def ask(port, how, path, body=None):
    link = http.client.HTTPConnection('127.0.0.1', port, timeout=LIMIT_S)
    link.request(how, path, body)
    answer = link.getresponse()
    text = answer.read().decode()
    link.close()
    return answer.status, text


def document_service(site, program, guard):
    site.start_postgres()
    start_guards(site, guard, 1)[0].ends_with(0)
    a, b = (site.start(program, 0, site.postgres.url, *site.urls) for _ in range(2))
    at_a, at_b = (int(one.says(r'listens on 127.0.0.1:(\d+)')[1]) for one in (a, b))
    for port in (at_a, at_b):
        until(lambda port=port: ask(port, 'GET', '/health')[0] == 200, 'the service is ready')

    assert ask(at_a, 'GET', '/documents/letter')[0] == 404
    assert ask(at_a, 'PUT', '/documents/letter', 'first')[0] == 200
    assert ask(at_b, 'GET', '/documents/letter') == (200, 'first\n')

    # A has the lock and stands still for longer than its lease.
    late = Upload(at_a, 'letter', 'too late')
    a.send(signal.SIGSTOP)
    status, text = ask(at_b, 'PUT', '/documents/letter', 'by the next owner')
    assert status == 200, text
    new = int(re.search(r'with token (\d+)', text)[1])
    a.send(signal.SIGCONT)
    status, text = late.finish()
    print(f'the late write: {status} {text}', end='')
    assert status == 409, text
    assert int(re.search(r'stale fencing token (\d+)', text)[1]) < new
    assert ask(at_a, 'GET', '/documents/letter') == (200, 'by the next owner\n')
    assert site.query("SELECT body, fencing_token FROM documents") == f'by the next owner|{new}'

    # Told to stop it accepts nobody, and finishes what it has begun.
    last = Upload(at_a, 'letter', 'on the way out')
    a.send(signal.SIGTERM)
    a.says('stops')
    assert last.finish()[0] == 200
    assert 'has stopped' in a.ends_with(0)
    # Its lock is free at once, and B serves on.
    assert ask(at_b, 'GET', '/documents/letter') == (200, 'on the way out\n')
    assert ask(at_b, 'PUT', '/documents/letter', 'end')[0] == 200

    for master in site.masters[:2]:
        master.end()
    until(lambda: ask(at_b, 'GET', '/health')[0] == 503, 'the service is not ready')
    assert ask(at_b, 'GET', '/documents/letter') == (200, 'end\n')
    b.send(signal.SIGTERM)
    b.ends_with(0)


# --- hot_standby ----------------------------------------------------------------------------------


def hot_standby(site, program):
    path = site.directory / 'journal'
    both = {name: site.start(program, name, path, *site.urls) for name in ('host-1', 'host-2')}

    def entries():
        return [line.split() for line in path.read_text().splitlines()]

    until(lambda: path.exists() and len(entries()) >= 3, 'entries')
    leader = entries()[0][2]
    standby, = set(both) - {leader}
    old = int(both[leader].says(r'host-\d leads with token (\d+)')[1])
    both[standby].says('host-. stands by')
    both[leader].send(signal.SIGKILL)
    new = int(both[standby].says(r'host-\d leads with token (\d+)')[1])
    assert new > old, (old, new)
    until(lambda: entries()[-1][2] == standby, 'entries of the standby')

    # It resigns, so that a third one has it at once; and one that is paused is refused afterwards.
    third = site.start(program, 'host-3', path, *site.urls)
    third.says('host-3 stands by')
    both[standby].send(signal.SIGTERM)
    both[standby].ends_with(0)
    third.says('host-3 leads')
    third.send(signal.SIGSTOP)
    fourth = site.start(program, 'host-4', path, *site.urls)
    fourth.says('host-4 leads')
    third.send(signal.SIGCONT)
    third.says('host-3 leads no more')

    # No entry is missing or twice, and no token is smaller than one before.
    fourth.says('entry')
    fourth.send(signal.SIGTERM)
    fourth.ends_with(0)
    third.send(signal.SIGTERM)
    third.ends_with(0)
    numbers = [int(number) for number, _, _ in entries()]
    tokens = [int(token) for _, token, _ in entries()]
    assert numbers == list(range(1, len(numbers) + 1)), numbers
    assert tokens == sorted(tokens), tokens


# --- job_runner -----------------------------------------------------------------------------------

# Notes who is at work beside it.
JOB = '''
mine={site}/at-work/$JOB_SLOT.$JOB_FENCING_TOKEN
mkdir $mine
{work}
echo $(ls {site}/at-work) >> {site}/seen
rmdir $mine
'''
# Waits for ever the first time, and tells its runner's process and its own.
HANGS = '[ -e {site}/victim ] || {{ echo $PPID $$ $(basename $mine) > {site}/victim; exec sleep 600; }}'


def job_runner(site, program):
    jobs = site.directory / 'jobs'
    jobs.mkdir()
    (site.directory / 'at-work').mkdir()
    names = [f'job-{number}' for number in range(10)]
    for name in names:
        work = HANGS.format(site=site.directory) if name == 'job-0' else 'sleep 0.02'
        (jobs / name).write_text(JOB.format(site=site.directory, work=work))
    (jobs / 'job-bad').write_text('exit 3')

    runners = [site.start(program, 2, jobs, *site.urls) for _ in range(4)]
    path = site.directory / 'victim'
    runner, job, mark = until(lambda: path.exists() and path.read_text().split(), 'job-0 is begun')
    victim, = (one for one in runners if one.process.pid == int(runner))
    victim.send(signal.SIGKILL)
    until(lambda: not alive(int(job)), 'its job is ended with it')
    said = ''.join(one.ends_with(0) for one in runners if one is not victim)
    assert 'has done job-0' in said, said
    assert sorted(path.name for path in (jobs / 'done').iterdir()) == names
    assert [path.name for path in (jobs / 'failed').iterdir()] == ['job-bad']
    for line in (site.directory / 'seen').read_text().splitlines():
        slots = [name.split('.')[0] for name in line.split() if name != mark]
        assert len(slots) <= 2 and len(set(slots)) == len(slots), line


# --- rate_limited_batch ---------------------------------------------------------------------------


def connections_of(master):
    with socket.create_connection(('127.0.0.1', master.port)) as connection:
        connection.sendall(b'INFO clients\r\n')
        with connection.makefile('rb') as answer:
            text = answer.read(int(answer.readline()[1:])).decode()
    return int(re.search(r'connected_clients:(\d+)', text)[1])


def rate_limited_batch(site, program):
    accounts, at_once, per_second = 40, 3, 10
    bills = site.directory / 'bills'
    bills.mkdir()
    begin = time.monotonic_ns()
    instances = [site.start(program, accounts, at_once, per_second, bills, *site.urls)
                 for _ in range(2)]
    until(lambda: len(list(bills.iterdir())) > accounts // 2, 'half of the bills')
    for master in site.masters:
        others = connections_of(master) - 1
        assert 0 < others <= len(instances), f'{others} connections to one master'
    said = [one.ends_with(0) for one in instances]
    counts = [list(map(int, re.search(r'billed (\d+), skipped (\d+), left (\d+)', text).groups()))
              for text in said]
    assert sum(billed for billed, _, _ in counts) == accounts, counts

    lines = [path.read_text().splitlines() for path in bills.iterdir()]
    assert len(lines) == accounts and all(len(one) == 1 for one in lines), 'a bill is missing or twice'
    spans = sorted(tuple(map(int, one[0].split())) for one in lines)
    for start, _ in spans:
        at_work = sum(other <= start < end for other, end in spans)
        assert at_work <= at_once, f'{at_work} at once'
    # The turns last a second each, so the k-th begins no sooner than this after all began.
    for number, (start, _) in enumerate(spans):
        assert start - begin >= (number // per_second) * 0.98e9, (number, start - begin)


STORIES = {story.__name__: story for story in (
    migration_guard, document_service, hot_standby, job_runner, rate_limited_batch)}


def timed_out(*_):
    raise TimeoutError(f'the story did not end in {LIMIT_S} s')


def main():
    program, *more = sys.argv[1:]
    signal.signal(signal.SIGALRM, timed_out)
    signal.alarm(LIMIT_S)
    with contextlib.ExitStack() as ending:
        STORIES[pathlib.Path(program).name](Site(ending), program, *more)
    print('passed')


if __name__ == '__main__':
    main()
