#!/usr/bin/env python3
"""The last released version of the library and this one on the same masters: versions_test.py REDLOCK

The other version is the tool that REDLOCK_OTHER names. Otherwise it is built from the last tag, once.
"""

import contextlib
import functools
import os
import pathlib
import signal
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'cli'))
# pylint: disable=wrong-import-position
from harness import HELD, Quorum, Skip, case, ended, equal, main, until

ROUNDS = 10  # of each process of the contest


def git(*words, **how):
    return subprocess.run(['git', '-C', HERE, *words], capture_output=True, check=False, **how)


@functools.cache
def other_version():
    """The tool of the other version."""
    if given := os.environ.get('REDLOCK_OTHER'):
        return given
    tag = git('describe', '--tags', '--abbrev=0', text=True).stdout.strip()
    if not tag:
        raise Skip('no version is tagged, and REDLOCK_OTHER names no redlock tool of another version')
    root = git('rev-parse', '--show-toplevel', text=True).stdout.strip()
    place = pathlib.Path(os.environ['INTEROP_SCRATCH']).parent / tag
    tool = place / 'build/tools/redlock'
    if not tool.exists():
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(['tar', '-x', '-C', place], check=True, input=subprocess.run(
            ['git', '-C', root, 'archive', tag], check=True, capture_output=True).stdout)
        subprocess.run(['meson', 'setup', 'build', '-Dtests=disabled', '-Dexamples=disabled', '-Dbench=disabled',
                        '-Dunity=on', '-Ddefault_library=static', '-Doptimization=1'],
                       cwd=place, check=True, stdout=sys.stderr)
        subprocess.run(['ninja', '-C', 'build', '-j1', 'tools/redlock'], cwd=place, check=True, stdout=sys.stderr)
    return tool


class Version:
    """Runs commands of one version on a quorum."""

    def __init__(self, quorum, tool):
        self.quorum, self.tool = quorum, tool

    def start(self, *words, **how):
        return self.quorum.start(*words, tool=self.tool, **how)

    def run(self, *words, **how):
        return self.quorum.run(*words, tool=self.tool, **how)

    def try_once(self, *options):
        return self.run('run', '--wait', 'none', *options, 'r', '--', 'true')


def in_both_directions(sentence):
    """A case for each protocol and direction: (quorum, first version, second version)."""
    def add(function):
        def both(protocol, swapped):
            pair = [None, other_version()]
            with Quorum(3) as quorum:
                quorum.env |= {'REDLOCK_PROTOCOL': protocol}
                function(quorum, *(Version(quorum, tool) for tool in (pair[::-1] if swapped else pair)))
        for protocol in ('plain', 'guarded'):
            for swapped in (False, True):
                first, second = ('the other version', 'this one')[::1 if swapped else -1]
                case(f'{protocol}: {sentence.format(first=first, second=second)}')(
                    functools.partial(both, protocol, swapped))
        return function
    return add


@in_both_directions('a lock of {first} is refused to {second}, which can release it')
def _(quorum, first, second):
    token = first.run('acquire', '--ttl', '10m', 'r', env={'REDLOCK_MAX_TTL': '10m'}).stdout.strip()
    quorum.env |= {'REDLOCK_MAX_TTL': '10m'}
    ended(second.try_once(), HELD)
    ended(second.run('extend', '--ttl', '10m', 'r', env={'REDLOCK_TOKEN': token}), 0)
    ended(first.try_once(), HELD)
    ended(second.run('release', 'r', env={'REDLOCK_TOKEN': token}), 0)
    until(lambda: not quorum.keys(), 'the keys are removed')
    ended(first.try_once(), 0)


@in_both_directions('a waiter of {second} is notified of the release by {first}')
def _(quorum, first, second):
    holder = first.start('run', '--ttl', '20s', 'r', '--', 'sh', '-c', 'echo held; exec sleep 600')
    equal(holder.stdout.readline(), 'held\n')
    waiter = second.start('run', '--wait', 'forever', 'r', '--', 'true')
    for master in quorum.masters:
        until(lambda master=master: master.ask('PUBSUB', 'NUMSUB', 'redlock:{r}:free')[1] == 1, 'it has subscribed')
    holder.send_signal(signal.SIGTERM)
    equal(waiter.wait(60), 0)


@case('guarded: fencing tokens increase over the owners of both versions')
def _(quorum):
    pair = [None, other_version()] * 3
    seen = [int(Version(quorum, tool).run(
        'run', '--fencing', 'r', '--', 'sh', '-c', 'echo $REDLOCK_FENCING_TOKEN').stdout) for tool in pair]
    equal(seen, sorted(set(seen)))


@case('guarded: readers of both versions share, and exclude a writer of each')
def _(quorum):
    both = [Version(quorum, tool) for tool in (None, other_version())]
    for version in both:
        reader = version.start('run', '--shared', 'r', '--', 'sh', '-c', 'echo held; exec sleep 600')
        equal(reader.stdout.readline(), 'held\n')
    for version in both:
        ended(version.try_once(), HELD)


@case('two processes of each version contend, and never two hold the lock')
def _(quorum):
    inside = ('mkdir inside || echo overlap >> overlaps; n=$(cat counter); echo $((n + 1)) > counter; rmdir inside')
    tools = [None, other_version()] * 2
    quorum.path('counter').write_text('0')
    results = []

    def contend(tool):
        for _ in range(ROUNDS):
            results.append(Version(quorum, tool).run(
                'run', '--wait', '60s', 'r', '--', 'sh', '-c', inside, cwd=quorum.directory).returncode)

    crowd = [threading.Thread(target=contend, args=(tool,)) for tool in tools]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    equal(results, [0] * ROUNDS * len(tools))
    equal(quorum.path('overlaps').exists(), False, 'two held it at once')
    equal(quorum.path('counter').read_text(), f'{ROUNDS * len(tools)}\n')


if __name__ == '__main__':
    with contextlib.suppress(Skip):
        other_version()  # a case may not last as long as its build
    main()
