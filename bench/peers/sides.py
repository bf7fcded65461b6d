"""The clients that are measured, ours and the peers, each in rounds that a process of its own runs."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SMALLEST_NODE = 18
METRICS = ['acquire_p50_us', 'acquire_p99_us', 'pairs_per_second', 'client_cpu_us_per_pair']


class Trouble(Exception):
    """Ends the program with a sentence."""


class Missing(Exception):
    """A peer that cannot be measured here, and why."""


def note(text):
    print(text, file=sys.stderr, flush=True)


def output_of(words, limit, accepted=(0,), **more):
    """What the program printed; its last words of complaint are in the exception."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit, **more)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Trouble(str(error)) from error
    if done.returncode not in accepted:
        said = (done.stderr or done.stdout).strip()[-500:]
        raise Trouble(f'{words[0]} ended with {done.returncode}: {said}')
    return done.stdout


class Ours:
    masters_used = None  # all

    def __init__(self, asked, way):
        self.label, self.way, self.asked = f'redlock, {way}', way, asked
        self.about = {}

    def round(self, masters, in_flight):
        text = output_of(
            [str(self.asked.program), '--masters', ','.join(masters), '--only', self.way,
             '--in-flight', str(in_flight), '--rounds', '1',
             '--seconds-per-round', str(self.asked.seconds), '--ttl', str(self.asked.ttl),
             '--json', '-'],
            limit=self.asked.seconds + 60, accepted=(0, 1))  # 1: measured, with failures
        report = json.loads(text)
        self.asked.failures += report.get('failures', [])
        self.about = {'redlock': report.get('redlock'), 'machine': report.get('machine', {})}
        for table in report['tables']:
            for row in table['rows']:
                at = row['at']
                if (at.get('K') == in_flight and at.get('side') == self.way
                        and all(name in row['metrics'] for name in METRICS)):
                    return {name: row['metrics'][name]['median'] for name in METRICS}
        raise Trouble(f'{self.asked.program} did not report {self.way} at K = {in_flight}')


class Worker:
    """A peer that runs in a process of its own, and tells what it measured in a line of JSON."""

    def __init__(self, asked, label, words, masters_used, more):
        self.asked, self.label, self.words = asked, label, words
        self.masters_used, self.more = masters_used, more

    def round(self, masters, in_flight):
        what = {
            'masters': masters[:self.masters_used],
            'in_flight': in_flight,
            'seconds': self.asked.seconds,
            'warm_up': self.asked.warm_up,
            'ttl_ms': round(self.asked.ttl * 1000),
            # A side must not meet keys that another one left, as redsync does if it fails fast.
            'prefix': f'bench-peers-{os.getpid()}-{self.label}-',
            **self.more,
        }
        text = output_of([*self.words, json.dumps(what)],
                         limit=self.asked.seconds + self.asked.warm_up + 60)
        seen = json.loads(text)
        if seen['failures']:
            self.asked.failures.append(
                f'{self.label}, K = {in_flight}: {seen["failures"]} failures, the first: '
                f'{seen["first_failure"]}')
        return {name: seen[name] for name in METRICS}


def find_node(asked):
    node, npm = shutil.which('node'), shutil.which('npm')
    if not node or not npm:
        raise Missing('no node or no npm in the path')
    version = output_of([node, '--version'], 30).strip()
    if int(version.lstrip('v').split('.')[0]) < SMALLEST_NODE:
        raise Missing(f'node {version} is older than {SMALLEST_NODE}')
    scratch = asked.scratch
    scratch.mkdir(parents=True, exist_ok=True)
    lock = (HERE / 'package-lock.json').read_text()
    done = scratch / 'installed'
    if not done.exists() or done.read_text() != lock:
        for name in ['package.json', 'package-lock.json']:
            shutil.copy(HERE / name, scratch)
        note(f'npm ci in {scratch}')
        try:
            output_of([npm, 'ci', '--no-audit', '--no-fund', '--ignore-scripts'], 300, cwd=scratch)
        except Trouble as trouble:
            raise Missing(f'npm: {trouble}') from trouble
        done.write_text(lock)
    return node, version


def node_peers(asked):
    node, version = find_node(asked)
    installed = json.loads((HERE / 'package-lock.json').read_text())['packages']

    def version_of(package):
        return installed[f'node_modules/{package}']['version']

    for package in ['redlock', 'redlock-beta']:
        yield Worker(
            asked, f'npm redlock {version_of(package)}', [node, str(HERE / 'node_worker.cjs')], None,
            {'modules': str(asked.scratch), 'package': package})
    asked.versions['npm redlock'] = f'ioredis {version_of("ioredis")}, node {version}'


def python_peers(asked):
    found = {}
    for python in [sys.executable, shutil.which('python3'), '/usr/bin/python3']:
        with contextlib.suppress(Trouble):
            found['python'] = python
            found['versions'] = output_of(
                [python or '', '-c',
                 'import redis, platform; print(redis.__version__, platform.python_version())'],
                30).split()
            break
    if 'versions' not in found:
        raise Missing('no python3 that has redis-py (Debian: python3-redis)')
    library, language = found['versions']
    yield Worker(asked, f'redis-py {library}, one node',
                 [found['python'], str(HERE / 'python_worker.py')], 1, {})
    asked.versions['redis-py'] = f'python {language}'


def cpp_peers(asked):
    """redis-plus-plus, given as the prefix in which it is installed, or installed where pkg-config finds it."""
    prefix = asked.redis_plus_plus
    if prefix:
        libraries = [path for name in ['lib', 'lib64'] for path in sorted((prefix / name).glob('libredis++.*'))
                     if path.suffix in ('.a', '.so')]
        if not libraries:
            raise Missing(f'no libredis++ in {prefix}')
        flags = [f'-I{prefix / "include"}', str(libraries[0]), f'-Wl,-rpath,{libraries[0].parent}', '-lhiredis']
        version = f'in {prefix.name}'
    else:
        try:
            flags = output_of(['pkg-config', '--cflags', '--libs', 'redis++', 'hiredis'], 30).split()
            version = output_of(['pkg-config', '--modversion', 'redis++'], 30).strip()
        except Trouble:
            raise Missing('pkg-config finds no redis++; build it, and give its prefix to --redis-plus-plus') from None
    asked.scratch.mkdir(parents=True, exist_ok=True)
    program = asked.scratch / 'redis_plus_plus'
    source = HERE / 'redis_plus_plus.cpp'
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        note(f'compiling {program}')
        try:
            output_of(['g++', '-std=c++20', '-O2', str(source), '-o', str(program), *flags, '-pthread'], 300)
        except Trouble as trouble:
            raise Missing(str(trouble)) from trouble
    yield Worker(asked, 'redis-plus-plus', [str(program)], None, {})
    asked.versions['redis-plus-plus'] = version


def go_peers(asked):
    """redsync and rueidislock, of a program that was built elsewhere from go_worker.go."""
    if not asked.go_worker:
        raise Missing(f'build {HERE / "go_worker.go"} with Go, and give the program to --go-worker')
    words = [str(asked.go_worker)]
    try:
        built = json.loads(output_of(words, 30))
        redsync, rueidis, go_redis = (
            built[f'github.com/{name}'].lstrip('v')
            for name in ['go-redsync/redsync/v4', 'redis/rueidis', 'redis/go-redis/v9'])
        language = built['go']
    except (Trouble, ValueError, KeyError) as problem:
        raise Missing(f'{words[0]} does not tell its versions: {problem}') from problem
    for way, fail_fast in [('', False), (', fail fast', True)]:
        yield Worker(asked, f'redsync {redsync}{way}', words, None,
                     {'client': 'redsync', 'fail_fast': fail_fast})
    yield Worker(asked, f'rueidislock {rueidis}, one node', words, 1, {'client': 'rueidislock'})
    asked.versions['redsync, rueidislock'] = f'go-redis {go_redis}, {language}'
