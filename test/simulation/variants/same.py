#!/usr/bin/env python3
"""Compares the copy of lib/core with the original: same.py SIMULATE SIMULATE_VARIANTS

With no variant on, both must tell the same story of the same seeds, byte by byte. With one on they
must not, or the comparison would show nothing.
"""

import subprocess
import sys

PROFILES = ('all', 'guarded-all', 'mixed-all', 'guarded-flushes', 'extensions', 'guarded-lines')
SEEDS = range(1, 11)


def story(program, profile, seed, *more):
    command = [program, '--profile', profile, '--seed', str(seed), '--trace', *more]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    # 1: a promise was broken, which is for others to judge.
    if ended.returncode not in (0, 1) or not ended.stdout:
        sys.exit(f'{" ".join(command)} ended with {ended.returncode}: {ended.stderr}')
    return ended.stdout


def main(real, copy):
    different = []
    for profile in PROFILES:
        for seed in SEEDS:
            if story(real, profile, seed) != story(copy, profile, seed):
                different.append(f'{profile} {seed}')
    if different:
        sys.exit(f'the copy does not behave as the original does: {", ".join(different)}')
    if story(copy, 'calm', 1) == story(copy, 'calm', 1, '--variant', 'busy-counted'):
        sys.exit('a variant changes nothing: the comparison is blind')
    print(f'{len(PROFILES) * len(SEEDS)} stories are the same')


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
