#!/usr/bin/env python3
"""The command that the soak runs under the lock: a process and its child, which say that they live.

    command.py DIRECTORY RUN SECONDS HEEDS

Each process has a file of its own in DIRECTORY: the run, the resource, the fencing token, the
lock's token, and its role. The moments at which it began and last lived follow, by CLOCK_BOOTTIME in
ns. The last is written in its place, so what a killed process wrote is all there.
With HEEDS 0 it ignores TERM. Its child is in a session of its own and ignores it always: it lives
until it is killed.
"""

import os
import signal
import sys
import time

BEAT_S = 0.003


def live(role, seconds):
    began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    end = began + int(seconds * 1e9)
    path = f'{directory}/{os.getpid()}-{began}'
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    head = ' '.join((run, os.environ['REDLOCK_RESOURCE'], os.environ['REDLOCK_FENCING_TOKEN'],
                     os.environ['REDLOCK_TOKEN'], role, f'{began:020} ')).encode()
    os.write(file, head + f'{began:020}\n'.encode())
    while (now := time.clock_gettime_ns(time.CLOCK_BOOTTIME)) < end:
        os.pwrite(file, f'{now:020}'.encode(), len(head))
        time.sleep(BEAT_S)


directory, run, lasts, heeds = sys.argv[1:]
if heeds == '0':
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.setsid()
    live('child', 3600)
    os._exit(0)
live('command', float(lasts))
