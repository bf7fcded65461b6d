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
MAXIMUM_WITHOUT_LARGE = 425
LARGE = ('config', 'metrics', 'observer')

# 12: the macro, the alias, the constant, the function, the enumeration and both enumerators, the
# class with two functions and a field, the class that is a member.
EXAMPLE = '''
#define REDLOCK_MACRO 1
namespace redlock {
using number = int;
inline constexpr int one = 1;
int f(int);
enum class kind { a, b };
class c {
public:
    c();
    int g() const;
    struct inner;
    friend bool operator==(const c&, const c&) = default;
protected:
    int field = 0;
private:
    int hidden() const;
};
struct c::inner {};
namespace detail { struct internal { int field; }; }
}
'''


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


def count_example(root):
    with tempfile.TemporaryDirectory() as tree:
        shutil.copytree(pathlib.Path(root, 'docs', 'site'), pathlib.Path(tree, 'docs', 'site'))
        header = pathlib.Path(tree, 'include', 'redlock', 'example.hpp')
        header.parent.mkdir(parents=True)
        header.write_text(EXAMPLE)
        return sum(count(tree).values())


def main(root):
    if not shutil.which('doxygen'):
        print('1..0 # SKIP Doxygen is not installed')
        return
    found = count(root)
    total = sum(found.values())
    rest = sum(n for file, n in found.items() if pathlib.Path(file).stem not in LARGE)
    results = [
        (count_example(root) == 12, 'an example of each kind is counted'),
        (total <= MAXIMUM, f'{total} public declarations; maximum: {MAXIMUM}'),
        (rest <= MAXIMUM_WITHOUT_LARGE,
         f'{rest} of them outside of {", ".join(LARGE)}; maximum: {MAXIMUM_WITHOUT_LARGE}'),
    ]
    print(f'1..{len(results)}')
    for number, (fine, text) in enumerate(results, 1):
        print(f'{"ok" if fine else "not ok"} {number} - {text}')
    if not all(fine for fine, _ in results):
        for file, n in found.most_common():
            print(f'# {n:4} {file}')


main(*sys.argv[1:])
