"""The copy of the project in which all mutants are, and its build.

Nothing is changed outside of the build directory: DIR/tree has the files, DIR/build what is made of
them.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import cpp
import lua
from mutant import give_names

HERE = pathlib.Path(__file__).resolve().parent
CORE = 'lib/core'
TABLE = 'mutant_scripts.hpp'
TABLE_IN = 'bytes/command.cpp'  # a file of lib/core that every program links
LUA_MACHINE = 'testing/memory/lua_machine.cpp'
LUA_RUN = re.compile(r'^answer lua_machine::run\([^{]*\{\n', re.M)
OPTIONS = (
    '-Ddefault_library=static -Dunity=on -Dunity_size=6 -Ddebug=false -Doptimization=1 -Dwerror=false'
    ' -Dtests=enabled -Db_sanitize=none -Dtools=disabled -Dexamples=disabled -Dbench=disabled'
    ' -Dcpp_args=-D_GLIBCXX_ASSERTIONS'  # an index past the end is noticed, as the sanitizers would
).split()
LIBRARY = 'lib/libredlock.a'
UNIT = 'test/unit_test'
HUNT = 'test/simulation/simulate'
NET = 'test/net_test'
PLACE = re.compile(r'^(\S+?):(\d+):(\d+):\s+(?:(?:fatal )?(error):|.*(required from here))', re.M)
COLOURS = re.compile('\x1b\\[[0-9;]*[mK]')
ROUNDS = 25  # of looking for what does not compile


class Broken(Exception):
    """Something that the user has to see."""


def write_if_new(path, text):
    data = text if isinstance(text, bytes) else text.encode()
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


class Tree:
    def __init__(self, root, place):
        self.root = root
        self.place = place
        self.copy = place / 'tree'
        self.build = place / 'build'
        self.sources = {}  # name -> cpp.Source
        self.scripts = []  # (name, text, mutants)
        self.where = {}  # name -> line -> mutants that are written there
        self.dropped = self.read_dropped()
        self.mutants = self.find()

    # --- What there is -------------------------------------------------------------------------

    def find(self):
        found = []
        paths = sorted((self.root / CORE).rglob('*.?pp'))
        shared = lua.shared_parts(path.read_text() for path in paths)
        for path in paths:
            name, text = path.relative_to(self.root / 'lib').as_posix(), path.read_text()
            source = self.sources[name] = cpp.Source(name, text)
            found += source.mutants
            for script in lua.find(name, text, shared):
                self.scripts.append(script)
                found += script[2]
        return give_names(found)

    def read_dropped(self):
        path = self.place / 'dropped.txt'
        return set(path.read_text().splitlines()) if path.exists() else set()

    def drop(self, mutants):
        new = {one.key for one in mutants} - self.dropped
        self.dropped |= new
        (self.place / 'dropped.txt').write_text(''.join(f'{key}\n' for key in sorted(self.dropped)))
        return new

    # --- The copy ------------------------------------------------------------------------------

    def make(self):
        self.place.mkdir(parents=True, exist_ok=True)
        listed = subprocess.run(
            ['git', 'ls-files', '-co', '--exclude-standard', '-z'],
            cwd=self.root, check=True, capture_output=True, text=True,
        ).stdout.split('\0')  # fmt: skip
        wanted = {name for name in listed if name and (self.root / name).is_file()}
        wanted |= {f'{CORE}/mutants.hpp', f'{CORE}/{TABLE}'}
        for path in [*self.copy.rglob('*')]:
            if path.is_file() and str(path.relative_to(self.copy)) not in wanted:
                path.unlink()
        for name in sorted(wanted):
            if name.startswith(f'{CORE}/'):
                continue
            target = self.copy / name
            write_if_new(target, (self.root / name).read_bytes())
            shutil.copymode(self.root / name, target)
        self.patch_lua_machine()
        write_if_new(self.copy / CORE / 'mutants.hpp', (HERE / 'mutants.hpp').read_text())
        write_if_new(self.copy / CORE / TABLE, self.table())
        self.write_core()

    def patch_lua_machine(self):
        """It notes which scripts it ran."""
        path = self.copy / LUA_MACHINE
        text = path.read_text()
        found = LUA_RUN.search(text)
        if not found:
            raise Broken(f'{LUA_MACHINE} has no lua_machine::run; mend LUA_RUN in {__file__}')
        line = '    mutants::note_script(what.sha1);\n'
        include = os.path.relpath(f'{CORE}/mutants.hpp', pathlib.Path(LUA_MACHINE).parent)
        text = f'#include "{include}"\n' + text[: found.end()] + line + text[found.end() :]
        write_if_new(path, text)

    def write_core(self):
        for name, source in self.sources.items():
            text, where = source.render(self.dropped)
            if where:
                include = '#include "core/mutants.hpp"'
                if '#pragma once\n' in text:
                    text = text.replace('#pragma once\n', f'#pragma once {include}\n'.replace(' #', '\n#', 1), 1)
                else:
                    text = f'{include}\n{text}'
                # All is a line further down.
                first = text[: text.index(include)].count('\n')
                where = {line + 1 if line > first else line: spans for line, spans in where.items()}
            text = lua.DECLARED.sub('inline constinit ', text)
            if name == f'core/{TABLE_IN}':
                text += f'#include "core/{TABLE}"\n'
            self.where[name] = where
            write_if_new(self.copy / 'lib' / name, text)

    def table(self):
        """Every changed text of a script, and the code that puts the chosen one in its place."""
        rows, headers = [], set()
        for name, _, mutants in self.scripts:
            for one in mutants:
                headers.add(one.file)
                rows.append(f'        case 0x{one.number:08x}U: put({name}, R"lua({one.text})lua"); break;\n')
        includes = ''.join(f'#include "{header}"\n' for header in sorted(headers | {'core/mutants.hpp'}))
        return f'''#pragma once

{includes}
#include <new>

namespace redlock::core {{

struct changed_script {{
    changed_script() {{
        switch (mutants::chosen.which) {{
{''.join(rows)}        }}
    }}
    static void put(script& one, const char* text) {{ ::new (&one) script{{text}}; }}
    static void put(std::string_view& one, const char* text) {{ one = text; }}
}};
[[gnu::init_priority(102), gnu::used]] static const changed_script change_it;

}} // namespace redlock::core
'''

    # --- The build -----------------------------------------------------------------------------

    def run(self, command, **more):
        ended = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, errors='replace', **more
        )
        return ended.returncode, COLOURS.sub('', ended.stdout)

    def compile(self, targets, jobs, say):
        if not (self.build / 'build.ninja').exists():
            say('configuring')
            status, output = self.run(['meson', 'setup', str(self.build), str(self.copy), *OPTIONS])
            if status != 0:
                shutil.rmtree(self.build, ignore_errors=True)
                raise Broken(output[-4000:])
        # The library first: what breaks in its headers would break each test as well.
        for some in ([LIBRARY], targets):
            self.compile_what_can(some, jobs, say)

    def compile_what_can(self, targets, jobs, say):
        for attempt in range(ROUNDS):
            say(f'building {" ".join(targets)}')
            status, output = self.run(['nice', 'ninja', '-k', '0', f'-j{jobs}', '-C', str(self.build), *targets])
            if status == 0:
                return
            new = self.drop_what_broke(output, attempt)
            if not new:
                raise Broken(output[-6000:])
            say(f'{len(new)} mutants do not compile and are left out')
            self.write_core()
        raise Broken('the copy does not compile')

    def drop_what_broke(self, output, attempt):
        """The mutants that are written where the compiler complains."""
        guilty = []
        for match in PLACE.finditer(output):
            path = os.path.realpath(os.path.join(self.build, match[1]))
            name = os.path.relpath(path, self.copy / 'lib')
            if name not in self.where:
                continue
            line, column = int(match[2]), int(match[3])
            spans = self.where[name].get(line, [])
            back = 0
            while not spans and back < 12:
                back += 1
                spans, column = self.where[name].get(line - back, []), 10_000
            spans = [span for span in spans if span[2].key not in self.dropped]
            if not spans:
                continue
            if attempt >= 6:
                guilty += [span[2] for span in spans]
                continue

            def distance(span, at=column):
                return 0 if span[0] <= at < span[1] else min(abs(span[0] - at), abs(span[1] - at)) + 1

            nearest = min(map(distance, spans))
            guilty += [span[2] for span in spans if distance(span) == nearest]
        return self.drop(guilty)

    def program(self, name):
        return self.build / name


def say(text):
    print(f'mutants: {text}', file=sys.stderr, flush=True)


def changed_lines(root, revision):
    """File under lib -> the numbers of lines that are new since the revision."""
    ended = subprocess.run(
        ['git', 'diff', '-U0', revision, '--', CORE], cwd=root, capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        sys.exit(ended.stderr.strip())
    lines, name = {}, None
    for line in ended.stdout.splitlines():
        if line.startswith('+++ '):
            name = line.removeprefix('+++ b/lib/')
        elif found := re.match(r'@@ -\S+ \+(\d+)(?:,(\d+))? @@', line):
            first, count = int(found[1]), int(found[2] or 1)
            lines.setdefault(name, set()).update(range(first, first + count))
    return lines
