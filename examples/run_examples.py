#!/usr/bin/env python3
"""Runs one example against three real masters: run_examples.py PROGRAM

Starts redis-servers of its own on free ports, passes their URLs, and checks what the example prints
and how it ends. Another server than the redis-server in the path: REDLOCK_REDIS_SERVER.
"""

import collections
import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'test' / 'cli'))
from harness import Master, leashed  # pylint: disable=wrong-import-position

MASTERS = 3
LIMIT_S = 30

# What each example must print, in this order.
EXPECTED = {
    'first_lock': ['got it: '],
    'callbacks': ['waiting for the lock', 'done, and the lock was released'],
    'blocking': ['worked, and still has the lock', 'the lock was released', 'both are locked', 'locked within 100 ms', 'two read', 'one writes', 'now it is free'],
    'with_lock': ['step 5', 'all steps done', 'step 1', 'stopped: '],
    'prometheus_endpoint': [
        'HTTP/1.1 200 OK', 'Content-Type: text/plain; version=0.0.4',
        'redlock_acquires_total{quorum="example",outcome="acquired"} 1',
        'redlock_hold_seconds_count{quorum="example"} 1',
        'redlock_ready{quorum="example"} 1',
        'HTTP/1.1 404 Not Found',
    ],
    'opentelemetry': ["'report': contended"],
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
        leashed([program] + OPTIONS.get(pathlib.Path(program).name, []) + [master.url for master in masters]),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
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


class Collector(http.server.BaseHTTPRequestHandler):
    """Receives OTLP over HTTP, and keeps the requests by their path."""
    protocol_version = 'HTTP/1.1'

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.server.received[self.path].append(json.loads(body))
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', '2')
        self.end_headers()
        self.wfile.write(b'{}')

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def start_collector():
    collector = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Collector)
    collector.received = collections.defaultdict(list)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'] = f'http://127.0.0.1:{collector.server_port}'
    os.environ['OTEL_EXPORTER_OTLP_PROTOCOL'] = 'http/json'
    return collector.received


def all_of(requests, *path):
    """The elements of lists within lists, for example the spans of all requests."""
    for key in path:
        requests = [element for request in requests for element in request.get(key, [])]
    return requests


def check_telemetry(received):
    """One job is one trace, and each metric arrives."""
    spans = all_of(received['/v1/traces'], 'resourceSpans', 'scopeSpans', 'spans')
    assert sorted(span['name'] for span in spans) == [
        'redlock.acquire', 'redlock.acquire', 'redlock.extend', 'redlock.hold', 'redlock.release',
        'report'], spans
    named = {span['name']: span for span in spans}
    acquired, refused = sorted(
        (span for span in spans if span['name'] == 'redlock.acquire'),
        key=lambda span: int(span['startTimeUnixNano']))
    job, hold = named['report'], named['redlock.hold']
    assert len({span['traceId'] for span in spans}) == 1
    assert acquired['parentSpanId'] == refused['parentSpanId'] == job['spanId']
    assert hold['parentSpanId'] == acquired['spanId']
    assert named['redlock.extend']['parentSpanId'] == hold['spanId']
    assert named['redlock.release']['parentSpanId'] == hold['spanId']
    assert refused['status']['code'] in (2, 'STATUS_CODE_ERROR'), refused['status']
    assert 'contended' in refused['status']['message']
    assert [event['name'] for event in acquired['events']] == MASTERS * ['redlock.vote']
    metrics = {
        metric['name']: metric for metric in
        all_of(received['/v1/metrics'], 'resourceMetrics', 'scopeMetrics', 'metrics')}
    assert set(metrics) == {'redlock.operation.duration', 'redlock.hold.duration',
                            'redlock.lock.count', 'redlock.votes'}, metrics
    point = metrics['redlock.hold.duration']['histogram']['dataPoints'][0]
    assert point['explicitBounds'][0] < 0.001, point


def timed_out(*_):
    raise TimeoutError(f'the example did not end in {LIMIT_S} s')


def main():
    program = sys.argv[1]
    signal.signal(signal.SIGALRM, timed_out)
    masters = []
    received = start_collector() if pathlib.Path(program).name == 'opentelemetry' else None
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
    if received is not None:
        check_telemetry(received)
    print('passed')


if __name__ == '__main__':
    main()
