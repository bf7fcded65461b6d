"""Counts the public declarations: declarations.py SOURCE_ROOT

What the reference shows is counted: classes, members that are public or protected, enumerations,
enumerators, free functions, constants, aliases and macros; no friends, nothing of `detail`. Each of
them is something to learn and to keep, so a higher maximum needs a reason.
"""

import collections
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

MAXIMUM = 613


def count(root):
    """The declarations of each header."""
    with tempfile.TemporaryDirectory() as scratch:
        config = pathlib.Path(root, 'docs', 'site', 'Doxyfile').read_text()
        config += f'OUTPUT_DIRECTORY = {scratch}\nGENERATE_XML = YES\n'
        subprocess.run(['doxygen', '-'], input=config, cwd=root, text=True, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        compounds = [
            compound
            for file in pathlib.Path(scratch, 'xml').glob('*.xml')
            for compound in xml.etree.ElementTree.parse(file).getroot().iter('compounddef')
        ]
    found = collections.Counter()
    seen = set()
    for compound in compounds:
        kind = compound.get('kind')
        if kind in ('class', 'struct', 'union') and compound.get('prot') != 'private':
            found[compound.find('location').get('file')] += 1
        for member in compound.iter('memberdef'):
            # A file repeats what its namespaces have.
            if member.get('id') in seen or kind == 'file' and member.get('kind') != 'define':
                continue
            seen.add(member.get('id'))
            if member.get('prot') != 'private' and member.get('kind') != 'friend':
                found[member.find('location').get('file')] += 1 + len(member.findall('enumvalue'))
    return found


def main(root):
    if not shutil.which('doxygen'):
        print('1..0 # SKIP Doxygen is not installed')
        return
    found = count(root)
    total = sum(found.values())
    # Far fewer would be those of a counter that Doxygen no longer fits.
    fine = MAXIMUM - 25 <= total <= MAXIMUM
    print('1..1')
    print(f'{"ok" if fine else "not ok"} 1 - {total} public declarations; maximum: {MAXIMUM}, or lower that')
    if not fine:
        for file, n in found.most_common():
            print(f'# {n:4} {file}')


main(*sys.argv[1:])
