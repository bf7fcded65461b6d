"""A command that shows when it lived, and the process between it and the tool."""

import sys
import time

from harness import children_of, until

# A heart that beats into a file, on the clock that leases are measured with, and does not listen.
HEART = '''
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
with open(sys.argv[1], 'a') as out:
    while True:
        print(time.clock_gettime(time.CLOCK_BOOTTIME), os.getpid(), file=out, flush=True)
        time.sleep(0.005)
'''


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def heart(path):
    return [sys.executable, '-c', HEART, str(path)]


def beats(path):
    """(time, process) of each whole line."""
    text = path.read_text() if path.exists() else ''
    return [(float(line.split()[0]), int(line.split()[1]))
            for line in text.splitlines(keepends=True) if line.endswith('\n')]


def beating(path):
    return until(lambda: beats(path), 'the first beat of a heart')[-1][1]


def supervisor_of(process):
    supervisor, = children_of(process.pid)
    return supervisor
