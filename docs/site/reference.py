#!/usr/bin/env python3
"""Makes the reference of the public headers with Doxygen: reference.py SOURCE_ROOT VERSION [DIRECTORY]

Without a directory it only looks. A public name without a comment is an error, as is everything else
that Doxygen warns of.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

# What we specialize is not ours to describe; and what users must not name stays out, undescribed.
NOT_OURS = re.compile(r'scope for class boost::\S+.* not found|of namespace redlock::detail is not documented')


def main(root, version, directory=None):
    with tempfile.TemporaryDirectory() as scratch:
        options = {'PROJECT_NUMBER': version, 'OUTPUT_DIRECTORY': directory or scratch,
                   'GENERATE_HTML' if directory else 'GENERATE_XML': 'YES', 'HTML_OUTPUT': '.'}
        config = pathlib.Path(root, 'docs', 'site', 'Doxyfile').read_text()
        config += ''.join(f'{name} = {value}\n' for name, value in options.items())
        done = subprocess.run(['doxygen', '-'], input=config, cwd=root, text=True, check=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    warnings = [line for line in done.stderr.splitlines() if line.strip() and not NOT_OURS.search(line)]
    if warnings:
        sys.exit('\n'.join(warnings))


main(*sys.argv[1:])
