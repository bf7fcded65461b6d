#!/usr/bin/env python3
"""Shows that the soak's verdict can be bad: verdict_can_be_bad.py SOAK

Each wrong way to run must be found out, by the count that is meant for it and with status 1, and
the other counts must not cry out with it where nothing is wrong.
"""

import re
import subprocess
import sys


def run(soak, *words):
    words = [soak, '--workers', '4', '--seed', '7', '--patience', '8', *words]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, flush=True)
    counts = {'status': done.returncode}
    for line in done.stdout.splitlines():
        found = re.match(r'([A-Z]+( [A-Z]+)*) +(\d+)', line)
        if found:
            counts[found.group(1)] = int(found.group(3))
        found = re.match(r'progress at the end +(\w+)', line)
        if found:
            counts['progress'] = found.group(1)
    return counts


def main():
    soak = sys.argv[1]
    failures = []

    def expect(what, holds):
        if not holds:
            failures.append(what)

    counts = run(soak, '--unsafe', 'no-lock', '--seconds', '2')
    expect('nobody locks: status 1', counts['status'] == 1)
    expect('nobody locks: overlaps', counts.get('OVERLAPS', 0) > 0)
    expect('nobody locks: holders refused', counts.get('HOLDERS REFUSED', 0) > 0)
    expect('nobody locks, but good tokens: nothing lost', counts.get('LOST UPDATES', -1) == 0)

    counts = run(soak, '--unsafe', 'one-token', '--seconds', '10')
    expect('one token for all: status 1', counts['status'] == 1)
    expect('one token for all: lost updates', counts.get('LOST UPDATES', 0) > 0)
    expect('one token for all: out of order', counts.get('TOKENS OUT OF ORDER', 0) > 0)
    expect('one token for all, but they lock: no overlaps', counts.get('OVERLAPS', -1) == 0)

    counts = run(soak, '--unsafe', 'dead-end', '--seconds', '1')
    expect('no masters at the end: status 1', counts['status'] == 1)
    expect('no masters at the end: no progress', counts.get('progress') == 'NO')
    expect('no masters at the end, but safe: no overlaps', counts.get('OVERLAPS', -1) == 0)

    counts = run(soak, '--screen', '--unlocked', '--seconds', '10')
    expect('a demo without locks: status 1', counts['status'] == 1)
    expect('a demo without locks: overlaps', counts.get('OVERLAPS', 0) > 0)
    expect('a demo without locks: all of its faults', 'PLANNED AND NOT DONE' not in counts)

    for one in failures:
        print('NOT SO:', one)
    return 1 if failures else 0


sys.exit(main())
