#!/usr/bin/env python3
"""`redlock bench`: bench_test.py REDLOCK [CASE...]. REDLOCK_QUORUM_BENCH names the benchmark."""

import json
import os
import pathlib
import shutil

import harness
from harness import CONFIGURATION, NOT_FOUND, Skip, case, contains, ended, equal, main

BENCHMARK = os.environ.get('REDLOCK_QUORUM_BENCH')
SHORT = ['--workload', 'latency', '--master-timeout', '2s', '--', '--rounds', '1', '--seconds-per-round', '0.05']


def needs_benchmark(quorum):
    if not BENCHMARK:
        raise Skip('quorum_bench is not built')
    quorum.env['REDLOCK_QUORUM_BENCH'] = BENCHMARK


@case('bench --local starts masters, measures and writes a page')
def _(quorum):
    needs_benchmark(quorum)
    page = quorum.path('report.html')
    ended(quorum.run('bench', '--local', '3', '--html', page, *SHORT), 0)
    contains(page.read_text().lower(), '<html', 'latency')
    equal(sum(int(master.ask('DBSIZE')) for master in quorum.masters), 0)


@case('bench measures the masters that are given, with their passwords')
def _(quorum):
    needs_benchmark(quorum)
    quorum.masters[0].ask('ACL', 'SETUSER', 'me', 'on', '>ses#me', '~*', '&*', '+@all')
    quorum.everywhere('ask', 'CONFIG', 'SET', 'requirepass', 'all@them')
    first = quorum.masters[0]
    quorum.env['REDLOCK_MASTERS'] = quorum.env['REDLOCK_MASTERS'].replace(
        first.url, f'redis://me:ses%23me@{first.name}')
    quorum.env['REDLOCK_PASSWORD'] = 'all@them'
    report = json.loads(ended(quorum.run('bench', '--json', *SHORT), 0).stdout)
    equal((report['failures'], [table['id'] for table in report['tables']]), ([], ['latency']))
    quorum.env['REDLOCK_PASSWORD'] = 'none@them'
    result = ended(quorum.run('bench', *SHORT), 2)
    ended(quorum.run('bench', '--workload', 'none'), 2)
    contains(result.stderr, 'AUTH to 127.0.0.1')
    assert 'them' not in result.stderr and 'ses' not in result.stderr, result.stderr


@case('bench hands passwords over where no process list shows them')
def _(quorum):
    # In the benchmark's place: what it is started with.
    shown = quorum.path('shown')
    shown.write_text('#!/bin/sh\ntr "\\0" " " < /proc/$$/cmdline; echo; echo "$QUORUM_BENCH_MASTERS"\n')
    shown.chmod(0o755)
    env = {'REDLOCK_QUORUM_BENCH': str(shown), 'REDLOCK_PASSWORD': 'a b%'}
    seen = ended(quorum.run('bench', '--full', '--', '--rate', '9', env=env), 0).stdout.splitlines()
    contains(seen[0], '--full', '--rate 9')
    assert 'a b' not in seen[0] and 'redis:' not in seen[0], seen
    equal(seen[1], ','.join(f'redis://:a%20b%25@{master.name}' for master in quorum.masters))


@case('bench on masters that are not there, or not to be had')
def _(quorum):
    needs_benchmark(quorum)
    quorum.masters[1].kill()
    contains(ended(quorum.run('bench', *SHORT), 2).stderr, quorum.masters[1].name)
    contains(ended(quorum.run('bench', env={'REDLOCK_MASTERS': ''}), CONFIGURATION).stderr, 'no masters')
    contains(ended(quorum.run('bench', '--masters', 'rediss://a,rediss://b,rediss://c'), CONFIGURATION).stderr,
             'plain TCP')
    env = {'REDLOCK_QUORUM_BENCH': str(quorum.path('nothing'))}
    contains(ended(quorum.run('bench', '--local', env=env), NOT_FOUND).stderr, 'cannot be run')


@case('bench finds its program beside the tool')
def _(quorum):
    needs_benchmark(quorum)
    quorum.env.pop('REDLOCK_QUORUM_BENCH')
    directory = pathlib.Path(harness.TOOL).parent
    copy = quorum.path('redlock')
    shutil.copy(harness.TOOL, copy)
    quorum.path('quorum_bench').symlink_to(BENCHMARK)
    libraries = directory.parent / 'lib'
    env = {'LD_LIBRARY_PATH': str(libraries)}
    contains(ended(quorum.run('bench', '--local', '--', '--help', env=env, tool=copy), 0).stdout, '--seconds-per-round')


if __name__ == '__main__':
    main()
