#!/usr/bin/env python3
"""Checks the protocol's models with spin: check.py (MODEL | GROUP)... | --all | --large | --self-test

Each run is a model at some scope. The protocol must hold: no error, and the search was complete.
Each wrong variant, and each claim that something cannot be reached, must have a counterexample;
it is searched breadth first, so that the shortest is found. Steps are those of the longest path,
or of the counterexample.

--trail MODEL NAME prints that counterexample, step by step.
Exit status 77, which meson takes for a skip, where spin or a C compiler is missing.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

from cases import GROUPS, HERE, LARGE, LENGTHS, SELF_TEST

SKIP = 77
MEMORY_MB = 1900
LARGE_MEMORY_MB = 16000
DEPTH = 100000
# The checks of spin's own of the bounds of arrays take half of the time; those of the compiler take little.
OPTIONS = ('-w', '-Og', '-DSAFETY', '-DVECTORSZ=512', '-DNOBOUNDCHECK', '-fsanitize=bounds', '-fsanitize-undefined-trap-on-error')

INCOMPLETE = (
    'max search depth too small', 'Search not completed', 'reached -DMEMLIM', 'out of memory',
    'hash-compact', 'Bit statespace', 'Hash-Compact', 'resize',
)
ALL = [case for cases in GROUPS.values() for case in cases]


@dataclass
class Outcome:
    errors: int
    states: int
    depth: int
    problems: list = field(default_factory=list)


def figure(pattern, text):
    found = re.search(pattern, text)
    return int(float(found.group(1))) if found else None


def preface(case, fixed):
    """What stands before a model: its scope."""
    given = [name for name in case.scope() if name not in fixed]
    lines = [f'#define {name} {number}' for name, number in fixed.items()]
    if given:
        read = ' '.join(f'given_{name} = atoi(getenv("{name}"));' for name in given)
        lines += [
            *(f'c_decl {{ static int given_{name}; }};' for name in given),
            f'c_decl {{ __attribute__((constructor)) static void read_scope(void) {{ {read} }} }};',
            # They are first, as other variables begin with what they say.
            *(f'byte {name} = c_expr {{ given_{name} }};' for name in given),
        ]
    return '\n'.join([*lines, f'#include "{HERE}/{case.model}.pml"', ''])


def build(case, directory, memory):
    """Makes a search, unless one of another case does. Fails loudly: a model that does not compile has shown nothing."""
    scope = case.scope()
    fixed = {name: number for name, number in scope.items() if name in LENGTHS or case.trail}
    # Sorting the masters saves most states; without it a trail keeps their names.
    how = '-DTRAIL' if case.trail else '-DSYMMETRY'
    # What must be complete does without partial order reduction, the rest is served by it.
    options = ['-DNOREDUCE' if case.holds else '-DBFS', f'-DMEMLIM={memory}']
    place = directory / ' '.join([case.model, *(f'{name}={number}' for name, number in fixed.items()), *options])
    if not (place / 'pan').exists():
        place.mkdir()
        (place / 'model.pml').write_text(preface(case, fixed))
        subprocess.run(['spin', '-a', how, 'model.pml'], cwd=place, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(['gcc', *OPTIONS, *options, '-o', 'pan', 'pan.c'], cwd=place, check=True)
    return place


def search(case, directory, memory=MEMORY_MB):
    place = build(case, directory, memory)
    ran = subprocess.run(
        ['./pan', f'-m{DEPTH}', '-w24' if memory > MEMORY_MB else '-w20'], cwd=place, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, **{name: str(number) for name, number in case.scope().items()}},
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
        outcome.depth = steps_of_trail(place / 'model.pml.trail')
    return outcome


def steps_of_trail(trail):
    """The steps of a counterexample, without those in which the processes are set up."""
    lines = [line.split(':') for line in trail.read_text().splitlines()]
    first = next(int(step) for step, process, _ in lines if int(step) > 0 and process != '0')
    return int(lines[-1][0]) - first + 1


def replay(case, directory):
    """The counterexample, in the words of the model."""
    ran = subprocess.run(
        ['spin', '-t', '-DTRAIL', 'model.pml'], cwd=build(case, directory, LARGE_MEMORY_MB), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    return ran.stdout.split('spin: trail ends')[0]


def run(cases, memory=MEMORY_MB):
    """Prints a line for each; returns how many were not as they must be."""
    failed = 0
    print(f'{"":44}{"states":>12}{"steps":>7}')
    with tempfile.TemporaryDirectory() as directory:
        for case in cases:
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
    for case in [*ALL, *LARGE]:
        if case.model == model and case.name == name and not case.holds:
            with tempfile.TemporaryDirectory() as directory:
                # Masters that change places could not be followed.
                case.trail = True
                search(case, pathlib.Path(directory), LARGE_MEMORY_MB)
                print(replay(case, pathlib.Path(directory)))
            return 0
    sys.exit(f'no such variant: {model} {name}')


def main(arguments):
    if arguments[:1] == ['--listed']:
        # The build's list of models and ours are the same, or a model is never searched.
        differ = set(arguments[1:]) ^ {case.model for case in ALL}
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
    if arguments == ['--all']:
        return 1 if run(ALL) else 0
    cases = [case for name in arguments for case in GROUPS.get(name) or [case for case in ALL if case.model == name]]
    unknown = [name for name in arguments if name not in GROUPS and name not in {case.model for case in ALL}]
    if not cases or unknown:
        sys.exit(__doc__)
    return 1 if run(cases) else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
