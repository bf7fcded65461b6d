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


def layout(path):
    """Doxygen's own, with a way back to the prose."""
    subprocess.run(['doxygen', '-l', str(path)], check=True, stdout=subprocess.DEVNULL)
    text = re.sub('<navindex>', r'\g<0><tab type="user" url="../index.html" title="Documentation"/>', path.read_text())
    path.write_text(text)


def main(root, version, directory=None):
    with tempfile.TemporaryDirectory() as scratch:
        layout(pathlib.Path(scratch, 'layout.xml'))
        options = {'PROJECT_NUMBER': version, 'OUTPUT_DIRECTORY': directory or scratch,
                   'GENERATE_HTML' if directory else 'GENERATE_XML': 'YES', 'HTML_OUTPUT': '.',
                   'LAYOUT_FILE': f'{scratch}/layout.xml', 'HTML_EXTRA_STYLESHEET': 'docs/site/reference.css'}
        release = subprocess.run(['doxygen', '-v'], check=True, stdout=subprocess.PIPE, text=True).stdout
        if [int(number) for number in re.findall(r'\d+', release)[:3]] >= [1, 9, 5]:
            options['HTML_COLORSTYLE'] = 'LIGHT'  # else it follows the system; so does our style sheet
        config = pathlib.Path(root, 'docs', 'site', 'Doxyfile').read_text()
        config += ''.join(f'{name} = {value}\n' for name, value in options.items())
        done = subprocess.run(['doxygen', '-'], input=config, cwd=root, text=True, check=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    # The line number is that of the output of filter.py, and would mislead.
    warnings = [re.sub(r'(\.\w+):\d+:', r'\1:', line) for line in done.stderr.splitlines() if line.strip() and not NOT_OURS.search(line)]
    if warnings:
        sys.exit('\n'.join(warnings))


main(*sys.argv[1:])
