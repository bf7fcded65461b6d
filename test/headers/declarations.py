"""Counts the public declarations: declarations.py SOURCE_ROOT

What the reference shows is counted: classes, members that are public or protected, enumerations,
enumerators, free functions, constants, aliases and macros; no friends, nothing of `detail`. Each of
them is something to learn and to keep, so a higher maximum needs a reason.
"""

import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

MAXIMUM = 481


def count(root):
    """The declarations of all headers."""
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
    found, seen = 0, set()
    for compound in compounds:
        kind = compound.get('kind')
        if compound.get('prot') == 'private':
            continue
        if kind in ('class', 'struct', 'union'):
            found += 1
        for member in compound.iter('memberdef'):
            # A file repeats what its namespaces have.
            if member.get('id') in seen or kind == 'file' and member.get('kind') != 'define':
                continue
            seen.add(member.get('id'))
            if member.get('prot') != 'private' and member.get('kind') != 'friend':
                found += 1 + len(member.findall('enumvalue'))
    return found


def main(root):
    found = count(root)
    # Far fewer would be those of a counter that Doxygen no longer fits.
    if not MAXIMUM - 25 <= found <= MAXIMUM:
        sys.exit(f'{found} public declarations; maximum: {MAXIMUM}, or lower that')


main(*sys.argv[1:])
