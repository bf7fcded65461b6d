#!/usr/bin/env python3
"""Shows that the verdict of a soak can be bad: can_be_bad.py commands REDLOCK, can_be_bad.py workers SOAK

Each wrong way to run must be found out by the count that is meant for it, with status 1. The counts
of what is right must be 0 in it.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OVERLAPS, TOKENS, KEYS = 'OVERLAPS', 'TOKENS OUT OF ORDER', 'KEYS BEYOND THEIR BOUND'
LEFT, STUCK, UPDATES = 'PROCESSES LEFT', 'NO PROGRESS', 'LOST UPDATES'

# How it runs, what it is found out by, and what must be 0.
COMMANDS = [
    (['--unsafe', 'no-lock'], {OVERLAPS}, {KEYS}),
    (['--unsafe', 'one-token'], {TOKENS}, {OVERLAPS, KEYS, LEFT, STUCK}),
    (['--unsafe', 'old-key'], {KEYS}, {OVERLAPS, TOKENS, LEFT, STUCK}),
    (['--unsafe', 'left-process'], {LEFT}, {OVERLAPS, TOKENS, KEYS, STUCK}),
    (['--unsafe', 'dead-end'], {STUCK}, {OVERLAPS, TOKENS, KEYS, LEFT}),
]
WORKERS = [
    (['--unlocked', '--seconds', '2'], {OVERLAPS, 'HOLDERS REFUSED'}, {UPDATES}),
    (['--unsafe', 'one-token', '--seconds', '10'], {UPDATES, TOKENS}, {OVERLAPS}),
    (['--unsafe', 'dead-end', '--seconds', '1'], {STUCK}, {OVERLAPS}),
    (['--screen', '--unlocked', '--seconds', '10'], {OVERLAPS}, {'PLANNED AND NOT DONE'}),
]


def judged(words, must, zero):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    counts = {'PLANNED AND NOT DONE': 0}  # printed if there are any
    counts |= {what: int(count) for what, count in re.findall(r'^([A-Z]+(?: [A-Z]+)*) +(\d+)', done.stdout, re.MULTILINE)}
    if re.search(r'^progress at the end +NO$', done.stdout, re.MULTILINE):
        counts[STUCK] = 1
    wrong = [f'{what} is not found' for what in must if not counts.get(what)]
    wrong += [f'{what}: {counts.get(what)} and not 0' for what in zero if counts.get(what) != 0]
    wrong += [f'status {done.returncode} and not 1'] if done.returncode != 1 else []
    return wrong, done.stdout


def main():
    kind, program = sys.argv[1:]
    begin, rows, at_once = {
        'commands': ([sys.executable, HERE / 'commands.py', program, '--calm', '--seconds', '4', '--seed', '7'], COMMANDS, 2),
        'workers': ([program, '--workers', '4', '--seed', '7', '--patience', '8'], WORKERS, 1),
    }[kind]
    bad = False
    with concurrent.futures.ThreadPoolExecutor(at_once) as some:
        for (words, _, _), (wrong, output) in zip(rows, some.map(lambda row: judged([*begin, *row[0]], *row[1:]), rows)):
            print(f'{" ".join(words)}: {"; ".join(wrong) or "found out"}\n{output}', flush=True)
            bad = bad or bool(wrong)
    return 1 if bad else 0


sys.exit(main())
