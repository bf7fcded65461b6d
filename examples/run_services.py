#!/usr/bin/env python3
"""Runs an example of several processes end to end: run_services.py PROGRAM

Starts the masters, PostgreSQL if the example needs it, and the instances. Stops, kills and continues
them, and checks what they print and what they leave. It waits for events and not for a time. Ends with 77, for "skipped", when PostgreSQL is needed and not here.
"""

import contextlib
import http.client
import pathlib
import re
import signal
import sys

from instances import Site, until

LIMIT_S = 100
SERVICE = pathlib.Path(__file__).with_name('document_service.cpp')


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


def document_service(site, program):
    site.start_postgres()
    site.query(re.search(r'CREATE TABLE documents [^\n]*', SERVICE.read_text())[0])
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
        master.kill()
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


STORIES = {story.__name__: story for story in (document_service, hot_standby)}


def timed_out(*_):
    raise TimeoutError(f'the story did not end in {LIMIT_S} s')


def main():
    program, = sys.argv[1:]
    signal.signal(signal.SIGALRM, timed_out)
    signal.alarm(LIMIT_S)
    with contextlib.ExitStack() as ending:
        STORIES[pathlib.Path(program).name](Site(ending), program)
    print('passed')


if __name__ == '__main__':
    main()
