#!/usr/bin/env python3
"""Checks the protocol's models with spin: check.py GROUP... | --all | --large | --self-test

Each run is a model at some scope. The protocol must hold: no error, and the search was complete.
Each wrong variant, and each claim that something cannot be reached, must have a counterexample;
it is searched breadth first, so that the shortest is found. Steps are those of the longest path,
or of the counterexample.

--trail MODEL NAME prints that counterexample, step by step.
Exit status 77, which meson takes for a skip, where spin or a C compiler is missing.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

from cases import GROUPS, LARGE, SELF_TEST

HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77
MEMORY_MB = 1900
LARGE_MEMORY_MB = 16000
DEPTH = 100000

INCOMPLETE = (
    'max search depth too small', 'Search not completed', 'reached -DMEMLIM', 'out of memory',
    'hash-compact', 'Bit statespace', 'Hash-Compact', 'resize',
)


@dataclass
class Outcome:
    errors: int
    states: int
    depth: int
    problems: list = field(default_factory=list)


def figure(pattern, text):
    found = re.search(pattern, text)
    return int(float(found.group(1))) if found else None


def build(case, directory, memory):
    """Makes a checker. Fails loudly: a model that does not compile has shown nothing."""
    model = HERE / f'{case.model}.pml'
    # Sorting the masters saves most states; without it a trail keeps their names.
    symmetry = ['-DSYMMETRY'] * case.sorted + ['-DTRAIL'] * case.trail
    subprocess.run(['spin', '-a', *case.defines, *symmetry, model], cwd=directory, check=True, stdout=subprocess.DEVNULL)
    # What must be complete does without partial order reduction, the rest is served by it.
    level = max(0, (2 if case.holds else 1 if case.deep else 0) - case.long)
    options = [f'-O{level}', '-DNOREDUCE' if case.holds else '-DBFS']
    subprocess.run(
        ['gcc', '-w', *options, '-DSAFETY', f'-DMEMLIM={memory}', '-o', 'pan', 'pan.c'],
        cwd=directory, check=True,
    )


def search(case, directory, memory=MEMORY_MB):
    build(case, directory, memory)
    ran = subprocess.run(
        ['./pan', f'-m{DEPTH}', '-w22'], cwd=directory, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    text = ran.stdout
    outcome = Outcome(
        figure(r'errors: (\d+)', text), figure(r'(\S+) states, stored', text), figure(r'depth reached (\d+)', text),
    )
    if outcome.errors is None or outcome.states is None:
        outcome.problems.append('pan gave no result:\n' + text)
    elif case.holds:
        outcome.problems += [f'incomplete: {sign}' for sign in INCOMPLETE if sign in text]
        if outcome.errors:
            outcome.problems.append(next((line for line in text.splitlines() if line.startswith('pan:1:')), text))
        if ran.returncode != 0:
            outcome.problems.append(f'pan: exit status {ran.returncode}')
    elif not outcome.errors:
        outcome.problems.append('no counterexample')
    elif case.expect not in text:
        # Another error than the expected one would hide that this rule was not seen to be broken.
        outcome.problems.append(f'not the error that was expected ({case.expect}):\n' + text[:1000])
    else:
        outcome.depth = steps_of_trail(directory / f'{case.model}.pml.trail')
    return outcome


def steps_of_trail(trail):
    """The steps of a counterexample, without those in which the processes are set up."""
    lines = [line.split(':') for line in trail.read_text().splitlines()]
    first = next(int(step) for step, process, _ in lines if int(step) > 0 and process != '0')
    return int(lines[-1][0]) - first + 1


def replay(case, directory):
    """The counterexample, in the words of the model."""
    ran = subprocess.run(
        ['spin', '-t', '-k', f'{case.model}.pml.trail', *case.defines, '-DTRAIL', HERE / f'{case.model}.pml'],
        cwd=directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    return ran.stdout.split('spin: trail ends')[0]


def run(cases, memory=MEMORY_MB):
    """Prints a line for each; returns how many were not as they must be."""
    failed = 0
    print(f'{"":44}{"states":>12}{"steps":>7}')
    for case in cases:
        with tempfile.TemporaryDirectory() as directory:
            outcome = search(case, pathlib.Path(directory), memory)
        failed += bool(outcome.problems)
        title = f'{case.model}: {"holds, " if case.holds else ""}{case.name}'
        print(f'{title:44}{outcome.states or 0:12}{outcome.depth or 0:7}')
        for problem in outcome.problems:
            print(f'FAILED: {title}: {problem}')
        sys.stdout.flush()
    print(f'{len(cases)} runs, {failed} failed')
    return failed


def self_test():
    """Each way in which a run can fail to show anything must be seen as a failure."""
    unseen = [case.name for case in SELF_TEST if run([case], case.memory or MEMORY_MB) == 0]
    for name in unseen:
        print(f'FAILED: not noticed: {name}')
    print(f'{len(SELF_TEST)} broken runs, {len(unseen)} not noticed')
    return len(unseen)


def trail(model, name):
    for case in (case for cases in [*GROUPS.values(), LARGE] for case in cases):
        if case.model == model and case.name == name and not case.holds:
            with tempfile.TemporaryDirectory() as directory:
                # Masters that change places could not be followed.
                case.deep, case.trail = False, True
                search(case, pathlib.Path(directory), LARGE_MEMORY_MB)
                print(replay(case, directory))
            return 0
    sys.exit(f'no such variant: {model} {name}')


def main(arguments):
    if arguments[:1] == ['--listed']:
        # The build's list of groups and ours are the same, or a group is never run.
        differ = set(arguments[1:]) ^ set(GROUPS)
        print('\n'.join(f'FAILED: only on one side: {name}' for name in sorted(differ)) or 'the same')
        return 1 if differ else 0
    missing = [tool for tool in ('spin', 'gcc') if not shutil.which(tool)]
    if missing:
        print(f'skipped: no {", ".join(missing)}')
        return SKIP
    if arguments == ['--self-test']:
        return 1 if self_test() else 0
    if len(arguments) == 3 and arguments[0] == '--trail':
        return trail(*arguments[1:])
    if arguments == ['--large']:
        return 1 if run(LARGE, LARGE_MEMORY_MB) else 0
    names = list(GROUPS) if arguments == ['--all'] else arguments
    if not names or any(name not in GROUPS for name in names):
        sys.exit(__doc__)
    return 1 if run([case for name in names for case in GROUPS[name]]) else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
