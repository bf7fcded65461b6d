#!/usr/bin/env python3
"""Runs the statements of a file with psql, on a server of its own: sql.py EXAMPLES_DIR FILE

A line `EXECUTE ...; -- TAG` says what PostgreSQL has to answer. Ends with 77 where there is no PostgreSQL.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import run_fenced  # pylint: disable=wrong-import-position


def main():
    programs = run_fenced.postgres_directory()
    if programs is None:
        print('skipped: there is no PostgreSQL')
        sys.exit(run_fenced.SKIPPED)
    psql = os.path.join(programs, 'psql')
    text = pathlib.Path(sys.argv[2]).read_text()
    expected = re.findall(r'^EXECUTE .*; *-- (.+)$', text, re.MULTILINE)
    assert expected, 'the file expects nothing'
    with tempfile.TemporaryDirectory() as directory:
        server = run_fenced.Postgres(programs, directory)
        try:
            done = subprocess.run([psql, '-X', '-v', 'ON_ERROR_STOP=1', '-f', sys.argv[2], server.url],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
        finally:
            server.end()
    found = [line for line in done.stdout.splitlines() if re.match(r'(INSERT|UPDATE) \d', line)]
    if found != expected:
        sys.exit(f'answered was\n  {found}\nexpected\n  {expected}')


main()
