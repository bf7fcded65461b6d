#!/usr/bin/env python3
"""Runs an example of a fenced resource: run_fenced.py PROGRAM | --find-postgres

Starts the masters, and the resource: one more redis-server, or a PostgreSQL of its own on a Unix
socket in a temporary directory. Its programs are looked for in REDLOCK_POSTGRES_BIN, then where
pg_config and Debian have them, then in the path; --find-postgres prints the directory. Ends with
77, for "skipped", when PostgreSQL is needed and there is none.
"""

import contextlib
import ctypes
import glob
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import run_examples

SKIPPED = 77
START_LIMIT_S = 30

TOKEN = r'\d{10,16}'
BY_TOKEN = [
    rf'A has written with token {TOKEN}, and is paused',
    rf'B has written with token {TOKEN}',
    rf'A was refused: stale fencing token {TOKEN}: the resource has seen {TOKEN}',
    'the report is finished by B',
]

# All lines that each example prints.
EXPECTED = {
    'fenced_redis': BY_TOKEN,
    'fenced_postgres': BY_TOKEN + [
        "D's write over version 0 counts, C's over 0 is void",
        'the report is by D and C',
    ],
}


def postgres_directory():
    """Where initdb and postgres are, or None."""
    candidates = [os.environ.get('REDLOCK_POSTGRES_BIN')]
    if shutil.which('pg_config'):
        asked = subprocess.run(
            ['pg_config', '--bindir'], stdout=subprocess.PIPE, text=True, check=True)
        candidates.append(asked.stdout.strip())
    candidates += sorted(
        glob.glob('/usr/lib/postgresql/*/bin'),
        key=lambda path: [int(number) for number in re.findall(r'\d+', path)],
        reverse=True)
    candidates += os.get_exec_path()
    for directory in filter(None, candidates):
        programs = [os.path.join(directory, name) for name in ('initdb', 'postgres')]
        if all(os.access(program, os.X_OK) for program in programs):
            return directory
    return None


def end_with_parent():
    """In the server: an immediate shutdown when this script ends, however it does."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


class Postgres:
    """A server that nobody but its user, and root, can reach."""

    def __init__(self, programs, directory):
        self.directory = directory
        # It refuses to run as root.
        self.identity = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam('nobody')
            os.chown(directory, nobody.pw_uid, nobody.pw_gid)
            self.identity = {'user': nobody.pw_uid, 'group': nobody.pw_gid, 'extra_groups': []}
        data = os.path.join(directory, 'data')
        self.log = os.path.join(directory, 'log')
        with open(self.log, 'wb') as log:
            try:
                subprocess.run(
                    [os.path.join(programs, 'initdb'), '--pgdata', data, '--username', 'redlock',
                     '--auth', 'trust', '--no-sync', '--locale', 'C', '--encoding', 'UTF8'],
                    **self.streams(log), check=True, timeout=START_LIMIT_S)
            except subprocess.SubprocessError as error:
                raise RuntimeError(f'{error}\n{self.log_text()}') from error
            self.process = subprocess.Popen(
                [os.path.join(programs, 'postgres'), '-D', data, '-k', directory,
                 '-c', 'listen_addresses=', '-c', 'fsync=off'],
                **self.streams(log), preexec_fn=end_with_parent)
        try:
            self.wait_until_ready(os.path.join(data, 'postmaster.pid'))
        except BaseException:
            self.end()
            raise

    def streams(self, log):
        return {'stdin': subprocess.DEVNULL, 'stdout': log, 'stderr': log, 'cwd': self.directory,
                **self.identity}

    def log_text(self):
        return pathlib.Path(self.log).read_text(errors='replace')[-2000:]

    def wait_until_ready(self, status_file):
        """The last line of its status file says so."""
        limit = time.monotonic() + START_LIMIT_S
        while self.process.poll() is None and time.monotonic() < limit:
            with contextlib.suppress(FileNotFoundError):
                lines = pathlib.Path(status_file).read_text().split('\n')
                if len(lines) > 7 and lines[7].strip() == 'ready':
                    return
            time.sleep(0.01)
        raise RuntimeError(f'PostgreSQL does not start\n{self.log_text()}')

    @property
    def url(self):
        return f'host={self.directory} user=redlock dbname=postgres'

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(START_LIMIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()


def difference(expected, lines):
    """What is wrong with the lines, or None."""
    for number, (pattern, line) in enumerate(zip(expected, lines), 1):
        if not re.fullmatch(pattern, line):
            return f'line {number} is {line!r}, expected {pattern!r}'
    if len(lines) != len(expected):
        return f'{len(lines)} lines, expected {len(expected)}'
    old, new, refused = (re.findall(TOKEN, line) for line in lines[:3])
    if not int(old[0]) < int(new[0]):
        return "the second owner's token is not the larger one"
    if refused != old + new:
        return 'the refusal names other tokens than those of the two owners'
    return None


def main():
    if sys.argv[1:] == ['--find-postgres']:
        print(postgres_directory() or '')
        return
    program = sys.argv[1]
    name = pathlib.Path(program).name
    programs = postgres_directory()
    if name == 'fenced_postgres' and programs is None:
        print('SKIPPED: no PostgreSQL server here (initdb and postgres)')
        sys.exit(SKIPPED)
    signal.signal(signal.SIGALRM, run_examples.timed_out)
    with contextlib.ExitStack() as ending:
        directory = ending.enter_context(tempfile.TemporaryDirectory())
        servers = []
        if name == 'fenced_postgres':
            place = ending.enter_context(tempfile.TemporaryDirectory(prefix='redlock-postgres-'))
            servers.append(Postgres(programs, place))
            ending.callback(servers[-1].end)
        while len(servers) < 1 + run_examples.MASTERS:
            servers.append(run_examples.Master(directory))
            ending.callback(servers[-1].kill)
        lines, status = run_examples.run(program, servers)
    wrong = difference(EXPECTED[name], lines)
    if wrong is not None:
        sys.exit(f'FAILED: {wrong}')
    if status != 0:
        sys.exit(f'FAILED: exit status {status}')
    print('passed')


if __name__ == '__main__':
    main()
