"""Lock clients in processes of their own, ours and others', which are controlled by lines:

    acquire NAME TTL_MS [WAIT_MS]          takes the lock, and does not renew it; WAIT_MS: ours only
    extend NAME TTL_MS                     from now on
    release NAME
    contend NAME TTL_MS ROUNDS DIRECTORY   takes and releases it until it has been in ROUNDS times;
                                           inside it counts in a file that only the lock protects

Each answers a line with `yes ...` or `no REASON`; to acquire with the lock's value.
"""

import functools
import os
import pathlib
import shutil
import subprocess
import sys

from harness import Skip, end, leashed

HERE = pathlib.Path(__file__).resolve().parent
SMALLEST_NODE = 18
INSTALL_LIMIT_S = 120


def said(words, limit=30):
    """What the program prints; None if it cannot be run, or fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@functools.cache
def python_with_redis():
    for python in (sys.executable, shutil.which('python3'), '/usr/bin/python3'):
        if python and said([python, '-c', 'import redis; redis.Redis.lock']) is not None:
            return python
    return None


@functools.cache
def node_modules():
    """Where npm has put the package, by package-lock.json; or a sentence why not."""
    node, npm = shutil.which('node'), shutil.which('npm')
    if not node or not npm:
        return None, 'no node and npm in the path (scripts/setup --interop installs them)'
    version = said([node, '--version']) or 'v0'
    if int(version.lstrip('v').split('.')[0]) < SMALLEST_NODE:
        return None, f'node {version} is older than {SMALLEST_NODE}'
    place = pathlib.Path(os.environ['INTEROP_SCRATCH'])
    place.mkdir(parents=True, exist_ok=True)
    locked = (HERE / 'package-lock.json').read_text()
    complete = place / 'complete'  # of which lock file it is
    if not complete.exists() or complete.read_text() != locked:
        for name in ('package.json', 'package-lock.json'):
            shutil.copy(HERE / name, place)
        words = [npm, 'ci', '--ignore-scripts', '--no-audit', '--no-fund',
                 '--fetch-retry-mintimeout', '1000', '--fetch-retry-maxtimeout', '5000']
        try:
            done = subprocess.run(words, cwd=place, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=INSTALL_LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return None, f'npm ci took longer than {INSTALL_LIMIT_S} s'
        if done.returncode != 0:
            # EINTEGRITY is an error and never skipped: what came is not what was locked.
            if 'EINTEGRITY' in done.stderr:
                raise AssertionError(done.stderr)
            lines = [line for line in done.stderr.splitlines() if 'error' in line] or ['?']
            return None, f'npm ci failed: {lines[0]}'
        complete.write_text(locked)
    return place, None


class Client:
    """One process. A client that is not installed is a Skip."""

    def __init__(self, kind, masters, prefix='redlock:'):
        self.kind, self.prefix = kind, prefix
        addresses = [master.name for master in masters]
        if kind == 'npm redlock':
            modules, missing = node_modules()
            if missing:
                raise Skip(missing)
            words = ['node', HERE / 'node_client.cjs', modules, *addresses]
        elif kind == 'redis-py':
            python = python_with_redis()
            if python is None:
                raise Skip('no python3 here has redis-py (Debian: python3-redis)')
            words = [python, HERE / 'python_client.py', *addresses]
        else:
            urls = [master.url for master in masters]
            words = [os.environ['INTEROP_CLIENT'], kind, prefix, *urls]
        self.process = subprocess.Popen(leashed(words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @property
    def ours(self):
        return self.kind in ('plain', 'guarded')

    def name(self, resource):
        """The others know only of keys."""
        return resource if self.ours or not self.prefix else f'{self.prefix}{{{resource}}}'

    def tell(self, order, resource, *words):
        """The answer is for `answer`."""
        line = ' '.join([order, self.name(resource), *map(str, words)])
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        verdict, _, rest = line.rstrip('\n').partition(' ')
        if verdict not in ('yes', 'no'):
            raise AssertionError(f'{self.kind} ended: {line!r}')
        return verdict == 'yes', rest

    def does(self, order, resource, *words):
        """Whether it could."""
        self.tell(order, resource, *words)
        return self.answer()[0]

    def kill(self):
        end(self.process)
