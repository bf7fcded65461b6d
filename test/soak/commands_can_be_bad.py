#!/usr/bin/env python3
"""Shows that the verdict on commands can be bad: commands_can_be_bad.py REDLOCK

Each wrong way to run must be found out by the count that is meant for it, and with status 1; the
other counts must be 0 where nothing is wrong.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys

SOAK = pathlib.Path(__file__).resolve().parent / 'commands.py'
COUNTS = ('OVERLAPS', 'TOKENS OUT OF ORDER', 'KEYS BEYOND THEIR BOUND', 'PROCESSES LEFT', 'NO PROGRESS')
# What each way is found out by; the others, where they may come along with it.
WRONG = {
    'no-lock': ({'OVERLAPS'}, {'TOKENS OUT OF ORDER', 'PROCESSES LEFT', 'NO PROGRESS'}),
    # The masters refuse the second list, so nothing overlaps.
    'two-quorums': ({'NO PROGRESS'}, {'PROCESSES LEFT'}),
    'one-token': ({'TOKENS OUT OF ORDER'}, set()),
    'old-key': ({'KEYS BEYOND THEIR BOUND'}, set()),
    'left-process': ({'PROCESSES LEFT'}, set()),
    'dead-end': ({'NO PROGRESS'}, set()),
}


def run(wrong):
    done = subprocess.run(
        [sys.executable, SOAK, sys.argv[1], '--calm', '--seconds', '4', '--seed', '7', '--unsafe', wrong],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = {line.group(1): int(line.group(2))
             for line in re.finditer(r'^([A-Z]+(?: [A-Z]+)*) +(\d+)$', done.stdout, re.MULTILINE)}
    failures = []
    if done.returncode != 1:
        failures.append(f'status {done.returncode} and not 1')
    must, may = WRONG[wrong]
    for what in COUNTS:
        if what in must and found.get(what, 0) == 0:
            failures.append(f'{what} is not found')
        if what not in must | may and found.get(what, -1) != 0:
            failures.append(f'{what}: {found.get(what)} and not 0')
    return wrong, failures, done.stdout


def main():
    bad = False
    with concurrent.futures.ThreadPoolExecutor(2) as some:
        for wrong, failures, output in some.map(run, WRONG):
            print(f'{wrong}: {"; ".join(failures) or "found out"}\n{output}', flush=True)
            bad = bad or bool(failures)
    return 1 if bad else 0


sys.exit(main())
