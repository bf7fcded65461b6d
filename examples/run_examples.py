#!/usr/bin/env python3
"""Runs one example against three real masters: run_examples.py PROGRAM

Starts redis-servers of its own on free ports, passes their URLs, and checks what the example prints
and how it ends. Another server than the redis-server in the path: REDLOCK_REDIS_SERVER.
"""

import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'test' / 'cli'))
from harness import Master, die_with_parent  # pylint: disable=wrong-import-position

MASTERS = 3
LIMIT_S = 30

# What each example must print, in this order.
EXPECTED = {
    'first_lock': ['got it: '],
    'callbacks': ['waiting for the lock', 'done, and the lock was released'],
    'blocking': ['worked, with ', 'the lock was released', 'both are locked', 'locked within 100 ms', 'two read', 'one writes', 'now it is free'],
    'reentrant': [
        'booked -100 at depth 2', 'booked 100 at depth 2', 'booked 5 at depth 1',
        'took the lock 2 times',
    ],
    'with_lock': ['step 5', 'all steps done', 'step 1', 'stopped: '],
    'prometheus_endpoint': [
        'HTTP/1.1 200 OK', 'Content-Type: text/plain; version=0.0.4',
        'redlock_acquires_total{quorum="example",outcome="acquired"} 1',
        'redlock_hold_seconds_count{quorum="example"} 1',
        'redlock_ready{quorum="example"} 1',
        'HTTP/1.1 404 Not Found',
    ],
    'tracing': ['{"resourceSpans":'],
    'slots': [
        'worker ', 'no slot had two holders', 'the slot of the killed worker came back',
        '0 of 3 slots are taken at the end',
    ],
    'leader': ['host-', 'host-', 'host-', 'host-'],
    'multi_lock': ['locked account/alice, account/bob', 'together they have 200'],
    'shared_mutex': ['two read', 'one writes, with token ', 'it reads on, together with another one'],
    'several_quorums': ['orders/1 is locked in quorum-', 'orders/4 is locked in', 'quorum-3: ready'],
}

# What comes before the masters on the command line.
OPTIONS = {'prometheus_endpoint': ['--check'], 'slots': ['--seconds', '6']}


def run(program, masters):
    """Returns the lines that the example printed, and its exit status."""
    example = subprocess.Popen(
        [program] + OPTIONS.get(pathlib.Path(program).name, []) + [master.url for master in masters],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=die_with_parent)
    signal.alarm(LIMIT_S)
    lines = []
    try:
        for line in example.stdout:
            print(line, end='')
            lines.append(line.rstrip('\n'))
        return lines, example.wait()
    finally:
        signal.alarm(0)
        example.kill()
        example.wait()


def missing(expected, lines):
    """The first of the expected beginnings of lines that does not come, in order."""
    left = iter(lines)
    for text in expected:
        if not any(line.startswith(text) for line in left):
            return text
    return None


def check_spans(lines):
    """One lock is one trace, and a client that came too late has another."""
    request = json.loads(lines[-1])
    spans = request['resourceSpans'][0]['scopeSpans'][0]['spans']
    for span in spans:
        assert re.fullmatch('[0-9a-f]{32}', span['traceId']), span
        assert re.fullmatch('[0-9a-f]{16}', span['spanId']), span
        assert int(span['startTimeUnixNano']) <= int(span['endTimeUnixNano']), span
    acquired, extended, late, release, hold = spans
    assert [span['name'] for span in spans] == [
        'redlock.acquire', 'redlock.extend', 'redlock.acquire', 'redlock.release', 'redlock.hold']
    assert acquired['parentSpanId'] == late['parentSpanId'] == ''
    assert hold['parentSpanId'] == acquired['spanId']
    assert extended['parentSpanId'] == release['parentSpanId'] == hold['spanId']
    assert len({span['traceId'] for span in (acquired, extended, release, hold)}) == 1
    assert late['traceId'] != acquired['traceId']
    assert late['status']['code'] == 2 and 'contended' in late['status']['message']
    assert [event['name'] for event in acquired['events']] == MASTERS * ['redlock.vote']


CHECKS = {'tracing': check_spans}


def timed_out(*_):
    raise TimeoutError(f'the example did not end in {LIMIT_S} s')


def main():
    program = sys.argv[1]
    signal.signal(signal.SIGALRM, timed_out)
    masters = []
    with tempfile.TemporaryDirectory() as directory:
        try:
            masters += [Master(directory) for _ in range(MASTERS)]
            lines, status = run(program, masters)
        finally:
            for master in masters:
                master.kill()
    absent = missing(EXPECTED[pathlib.Path(program).name], lines)
    if absent is not None:
        sys.exit(f'FAILED: no line that begins with {absent!r}')
    if status != 0:
        sys.exit(f'FAILED: exit status {status}')
    CHECKS.get(pathlib.Path(program).name, lambda _: None)(lines)
    print('passed')


if __name__ == '__main__':
    main()
