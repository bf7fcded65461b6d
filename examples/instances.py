"""What run_services.py starts, and how it waits."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import run_examples
import run_fenced


class Instance:
    """A process whose lines are read."""

    def __init__(self, *words):
        self.name = f'{pathlib.Path(words[0]).name}'
        self.lines = []
        self.process = subprocess.Popen(
            run_examples.leashed(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def says(self, pattern):
        """Reads on to the first line that begins so."""
        for line in self.process.stdout:
            print(f'{self.process.pid}: {line}', end='', flush=True)
            self.lines.append(line.rstrip('\n'))
            found = re.match(pattern, line)
            if found:
                return found
        raise AssertionError(f'{self.name} has ended and not said {pattern!r}')

    def rest(self):
        """All that it says until it ends."""
        with contextlib.suppress(AssertionError):
            self.says('$^')
        return '\n'.join(self.lines)

    def ends_with(self, status):
        said = self.rest()
        assert self.process.wait() == status, f'status {self.process.returncode}: {said}'
        return said

    def send(self, number):
        self.process.send_signal(number)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Site:
    """What a story needs, and its end."""

    def __init__(self, ending):
        self.ending = ending
        self.directory = pathlib.Path(ending.enter_context(tempfile.TemporaryDirectory()))
        self.masters = []
        for _ in range(run_examples.MASTERS):
            self.masters.append(run_examples.Master(str(self.directory)))
            ending.callback(self.masters[-1].kill)
        self.urls = [master.url for master in self.masters]
        self.postgres = None

    def start_postgres(self):
        programs = run_fenced.postgres_directory()
        if programs is None:
            print('SKIPPED: no PostgreSQL server here (initdb and postgres)')
            sys.exit(run_fenced.SKIPPED)
        place = self.ending.enter_context(tempfile.TemporaryDirectory(prefix='redlock-postgres-'))
        self.postgres = run_fenced.Postgres(programs, place)
        self.ending.callback(self.postgres.end)
        self.psql = os.path.join(programs, 'psql')

    def start(self, *words):
        started = Instance(*words)
        self.ending.callback(started.end)
        return started

    def query(self, statement):
        return subprocess.run(
            [self.psql, self.postgres.url, '-XAtc', statement], check=True, text=True,
            stdout=subprocess.PIPE).stdout.strip()


def until(condition, what, pause=0.02):
    print(f'waits: {what}', flush=True)
    while True:  # the alarm ends it
        value = condition()
        if value:
            return value
        time.sleep(pause)
