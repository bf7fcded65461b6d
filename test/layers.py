#!/usr/bin/env python3
"""Checks the layers: layers.py SOURCE_ROOT | --self-test

The protocol is plain code: lib/core includes neither Asio nor a socket nor a clock, and time comes
in as a parameter. Only then can a simulation drive the very objects that production runs. And a
lower layer never includes a higher one. Within the core the same holds for its folders; there is no
cycle, and only the glue includes the engine. The tables below are the rules.
"""

import pathlib
import re
import sys
import tempfile

# lib/core: a folder includes itself and those before it. What lives where: lib/core/*/README.md.
CORE_FOLDERS = ('base', 'bytes', 'masters', 'locks', 'waiting', 'engine')

# Public headers without Asio, which core shares with the callers.
PLAIN_PUBLIC = {
    f'redlock/{stem}.hpp'
    for stem in (
        'version', 'clock', 'errc', 'outcome', 'options', 'diagnostics', 'logger', 'metrics', 'names',
        'protocol', 'placement',
    )
}

# What else core may see: a number, of which version.hpp makes the name of the ABI.
PLAIN_FOREIGN = {'boost/asio/version.hpp'}

# Layer -> what it may include of the project. The longest directory that fits a file is its layer.
LAYERS = {
    'include': {'include'},
    'lib/core': {'lib/core', 'include'},
    'lib/net': {'lib/net', 'include'},
    'lib/config': {'lib/config', 'lib/core', 'include'},
    'lib/manager': {'lib/manager', 'lib/config', 'lib/net', 'lib/core', 'include'},
    'lib/admin': {'lib/admin', 'lib/config', 'lib/net', 'lib/core', 'include'},
    # Primitives use the library as its users do.
    'lib/primitives': {'lib/primitives', 'include'},
    'testing/process': {'testing/process', 'include'},
    'testing': {'testing', 'testing/process', 'lib/manager', 'lib/net', 'lib/core', 'include'},
    'tools': {'tools', 'testing/process', 'include'},
    'examples': {'examples', 'include'},
    'bench': {'bench', 'testing/process', 'include'},
}

# Internal headers that a layer may include although not their layer.
INTERNAL = {
    'tools': {
        'lib/admin/connection.hpp', 'lib/config/invalid_value.hpp', 'lib/config/sizing.hpp',
        'lib/manager/member_change.hpp',
    },
    'testing': {'lib/primitives/virtual_thread.hpp'},
}

# No other library has names without a folder and a suffix.
STANDARD = re.compile(r'[a-z_]+')

# Of the standard library: what reads a clock, waits, shares memory between threads or does I/O.
IMPURE_STANDARD = set('''
    barrier condition_variable csignal cstdio ctime filesystem fstream future iostream istream latch
    mutex ostream random semaphore shared_mutex stop_token syncstream thread
'''.split())

# What headers that core may include declare all the same, as those of libstdc++ do. Sockets, threads, streams and random
# devices need another header.
IMPURE_CODE = [
    (re.compile(pattern), what)
    for pattern, what in (
        (r'::\s*now\s*\(', 'reads a clock'),
        (r'\b(clock_gettime|gettimeofday|timespec_get)\b', 'reads a clock'),
        (r'\bstd::(time|clock)\s*\(', 'reads a clock'),
        (r'(?<![\w.>:])(::)?time\s*\(\s*(nullptr|NULL|0|&\w+)\s*\)', 'reads a clock'),
        (r'\b(getentropy|arc4random\w*|s?rand|s?rand_r|[delmn]rand48)\s*\(|(?<!\w)::s?random\s*\(', 'takes randomness'),
        (r'\b(secure_)?getenv\s*\(', 'reads the environment'),
        (r'\b(nano|u)?sleep\s*\(', 'sleeps'),
        (r'\bstd::\w*mutex\b', 'uses threads'),
        (r'(?<![\w.>:])::(read|write|select)\s*\(|\bf?printf\s*\(', 'does I/O'),
    )
]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)

# Comments, and literals, which may contain what looks like a comment, in one pass.
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)


def blank(match):
    """Keeps the lines, so that a finding has the right number."""
    return '\n' * match.group().count('\n') or ' '


class Checker:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.findings = []
        self.includes = {}  # path -> [(line, name, path in the project or None)]

    def layer_of(self, path):
        fitting = [layer for layer in LAYERS if path.startswith(layer + '/')]
        return max(fitting, key=len, default=None)

    def fail(self, path, line, text):
        self.findings.append(f'{path}:{line}: {text}')

    def resolve(self, path, name):
        """A project file that an include names, as the compiler would look for it."""
        for directory in (pathlib.PurePosixPath(path).parent, 'lib', 'include', 'testing'):
            absolute = (self.root / directory / name).resolve()
            if absolute.is_file() and absolute.is_relative_to(self.root.resolve()):
                return absolute.relative_to(self.root.resolve()).as_posix()
        return None

    def read(self, path):
        text = NOT_CODE.sub(lambda m: blank(m) if m.group().startswith('/') else m.group(),
                            (self.root / path).read_text(encoding='utf-8'))
        self.includes[path] = [
            (text.count('\n', 0, match.start()) + 1, match[2], self.resolve(path, match[2]))
            for match in INCLUDE.finditer(text)
        ]

    def run(self):
        for layer in LAYERS:
            for file in sorted((self.root / layer).rglob('*')):
                path = file.relative_to(self.root).as_posix()
                if file.suffix in ('.hpp', '.cpp', '.ipp', '.h') and path not in self.includes:
                    self.read(path)
        for path in self.includes:
            self.check_layer(path)
            if self.layer_of(path) == 'lib/core':
                self.check_core(path)
            elif self.layer_of(path) == 'include':
                self.check_public(path)
        return sorted(set(self.findings))

    def check_layer(self, path):
        layer = self.layer_of(path)
        for line, name, target in self.includes[path]:
            other = self.layer_of(target) if target else None
            if other and other not in LAYERS[layer] and target not in INTERNAL.get(layer, ()):
                self.fail(path, line, f'{layer} includes {target}, which is {other}')
            elif target == 'lib/core/engine/engine.hpp' and not self.may_see_engine(path):
                self.fail(path, line, 'only the engine and the glue include engine.hpp')

    def may_see_engine(self, path):
        # Its own files are those without a header of their own.
        own = path == 'lib/core/engine/engine.cpp' or (
            re.fullmatch(r'lib/core/engine/\w+\.cpp', path)
            and not (self.root / path).with_suffix('.hpp').exists())
        return self.layer_of(path) == 'lib/manager' or own

    def check_public(self, path):
        for line, name, target in self.includes[path]:
            # That one is for programs which have opentelemetry-cpp; no other header includes it.
            third = ('boost/', 'opentelemetry/' if path.endswith('/opentelemetry.hpp') else 'boost/')
            if target is None and not STANDARD.fullmatch(name) and not name.startswith(third):
                self.fail(path, line, f'a public header includes {name}; only Boost and std')

    def check_core(self, path):
        place = self.place_of(path)
        if place is None:
            self.fail(path, 1, f'is in none of the folders of lib/core: {", ".join(CORE_FOLDERS)}')

        for line, _, target in self.includes[path]:
            above = self.place_of(target) if target else None
            if place is not None and above is not None and above > place:
                self.fail(path, line, f'{CORE_FOLDERS[place]} includes {CORE_FOLDERS[above]}: {target}')

        for reached, chain in self.core_headers(path):
            if reached == path:
                way = ' -> '.join(pathlib.PurePosixPath(one).name for one in (path, *chain, reached))
                self.fail(path, 1, f'includes itself: {way}')

        # What arrives through a public header arrives all the same.
        for line, reached, chain in self.reach(path):
            via = f' through {" -> ".join(chain)}' if chain else ''
            if reached in IMPURE_STANDARD:
                self.fail(path, line, f'core includes <{reached}>{via}')
            elif reached.startswith('redlock/'):
                if reached not in PLAIN_PUBLIC:
                    self.fail(path, line, f'core includes {reached}{via}, which is not plain')
            elif re.match(r'hiredis(/|$)', reached):
                if not path.startswith('lib/core/bytes/resp.') and not chain:
                    self.fail(path, line, f'only resp may include {reached}')
            elif not STANDARD.fullmatch(reached) and reached not in PLAIN_FOREIGN:
                self.fail(path, line, f'core includes {reached}{via}; only the standard library')

        code = NOT_CODE.sub(blank, (self.root / path).read_text(encoding='utf-8'))
        if self.may_see_engine(path) and (found := re.search(r'\bvotes\.of\b', code)):
            line = code.count('\n', 0, found.start()) + 1
            self.fail(path, line, 'the engine executes steps; a claim looks at its votes itself')
        for pattern, what in IMPURE_CODE:
            for match in pattern.finditer(code):
                line = code.count('\n', 0, match.start()) + 1
                self.fail(path, line, f'core {what}: {match.group().strip()}')

    @staticmethod
    def place_of(path):
        """The place of its folder among those of lib/core, if it is in one."""
        folder = re.match('|'.join(rf'lib/core/({one})/' for one in CORE_FOLDERS), path)
        return CORE_FOLDERS.index(path.split('/')[2]) if folder else None

    def core_headers(self, path):
        """(header, headers in between) of all of lib/core that it includes, directly or not."""
        pending = [(path, ())]
        seen = set()
        while pending:
            at, chain = pending.pop()
            for _, _, target in self.includes[at]:
                if target and self.layer_of(target) == 'lib/core' and target not in seen:
                    seen.add(target)
                    yield target, chain
                    pending.append((target, (*chain, target)))

    def reach(self, path):
        """(line in path, name, public headers in between) of all that it includes from outside."""
        pending = [(line, name, target, ()) for line, name, target in self.includes[path]]
        seen = set()
        while pending:
            line, name, target, chain = pending.pop()
            layer = self.layer_of(target) if target else None
            if layer == 'lib/core':
                continue  # answers for itself
            if layer == 'include':
                name = target.removeprefix('include/')
            if (name, target) in seen:
                continue
            seen.add((name, target))
            yield line, name, chain
            if layer == 'include' and name in PLAIN_PUBLIC:
                pending += [(line, n, t, (*chain, name)) for _, n, t in self.includes[target]]


# --- Self-test: each rule fails on a tree that breaks it. What it must not find is in the project -

TREE = {
    'include/redlock/version.hpp': '#include <boost/asio/version.hpp>\n',
    'include/redlock/clock.hpp': '#include <chrono>\n#include <redlock/version.hpp>\n',
    'include/redlock/lock.hpp': '#include <boost/asio/post.hpp>\n#include <redlock/clock.hpp>\n',
    'lib/core/bytes/resp.hpp': '#include <hiredis/read.h>\n#include <string>\n',
    'lib/core/bytes/command.hpp': '#include "core/bytes/resp.hpp"\n#include <redlock/clock.hpp>\n',
    'lib/core/engine/engine.hpp': '#include "core/bytes/command.hpp"\n',
    'lib/core/engine/engine.cpp': '#include "engine.hpp"\n',
    'lib/core/engine/queries.hpp': '',
    'lib/core/masters/masters.hpp': '#include "core/bytes/command.hpp"\n',
    'lib/net/socket.hpp': '',
    'lib/manager/home.hpp': '',
}

BAD = [
    # (file, its text, what the finding says)
    ('lib/core/bytes/command.cpp', '#include <boost/asio.hpp>\n', 'core includes boost/asio.hpp'),
    ('lib/core/bytes/command.cpp', '#include <fmt/format.h>\n', 'only the standard library'),
    ('lib/core/bytes/command.cpp', '#include <mutex>\n', 'core includes <mutex>'),
    ('lib/core/bytes/command.cpp', '#include <hiredis/hiredis.h>\n', 'only resp may include'),
    ('lib/core/bytes/command.cpp', '#include <redlock/lock.hpp>\n', 'which is not plain'),
    ('include/redlock/clock.hpp', '#include <boost/asio/post.hpp>\n', 'through redlock/clock.hpp'),
    ('include/redlock/version.hpp', '#include <thread>\n', 'clock.hpp -> redlock/version.hpp'),
    ('lib/core/bytes/command.cpp', '\n\nx = steady_clock::now();\n', 'command.cpp:3: core reads a clock'),
    ('lib/core/bytes/command.cpp', 'clock_gettime(CLOCK_BOOTTIME, &t);\n', 'core reads a clock'),
    ('lib/core/bytes/command.cpp', 'auto t = std::time(nullptr);\n', 'core reads a clock'),
    ('lib/core/bytes/command.cpp', 'auto t = time(nullptr);\n', 'core reads a clock'),
    ('lib/core/bytes/command.cpp', 'int x = rand();\n', 'core takes randomness'),
    ('lib/core/bytes/command.cpp', 'auto e = std::getenv("HOME");\n', 'core reads the environment'),
    ('lib/core/bytes/command.cpp', 'usleep(1);\n', 'core sleeps'),
    ('lib/core/bytes/command.cpp', 'std::recursive_mutex m;\n', 'core uses threads'),
    ('lib/core/bytes/command.cpp', '::write(1, text, 1);\n', 'core does I/O'),
    ('lib/core/bytes/command.cpp', 'std::printf("a");\n', 'core does I/O'),
    ('lib/core/masters/admission.hpp', '#include "core/engine/engine.hpp"\n', 'masters includes engine: lib/core/engine/engine.hpp'),
    ('lib/core/surprise.hpp', '', 'is in none of the folders'),
    ('lib/core/bytes/command.hpp', '#include "core/masters/masters.hpp"\n', 'itself: command.hpp -> masters.hpp -> command'),
    ('lib/core/bytes/command.cpp', '#include "core/masters/masters.hpp"\n', 'bytes includes masters: lib/core/masters/masters.hpp'),
    ('lib/core/engine/queries.cpp', '#include "engine.hpp"\n', 'only the engine and the glue'),
    ('lib/core/engine/engine.cpp', 'one.votes.of[0].said;\n', 'a claim looks at its votes itself'),
    ('lib/net/socket.cpp', '#include "core/engine/engine.hpp"\n', 'lib/net includes lib/core/engine/engine.hpp'),
    ('lib/core/engine/engine.hpp', '#include "net/socket.hpp"\n', 'lib/core includes lib/net/socket.hpp'),
    ('lib/net/socket.cpp', '#include "manager/home.hpp"\n', 'lib/net includes lib/manager/home.hpp'),
    ('lib/primitives/mutex.cpp', '#include "manager/home.hpp"\n', 'lib/primitives includes lib/manager'),
    ('include/redlock/lock.hpp', '#include "core/engine/engine.hpp"\n', 'include includes lib/core/'),
    ('include/redlock/lock.hpp', '#include <fmt/format.h>\n', 'public header includes fmt'),
    ('examples/one.cpp', '#include "core/engine/engine.hpp"\n', 'examples includes lib/core/engine/engine.hpp'),
]


def findings_of(tree):
    with tempfile.TemporaryDirectory() as root:
        for path, text in tree.items():
            file = pathlib.Path(root, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding='utf-8')
        return Checker(root).run()


def self_test():
    failures = [f'a good tree: {finding}' for finding in findings_of(TREE)]
    for path, text, expected in BAD:
        findings = findings_of(TREE | {path: text})
        if not any(expected in finding for finding in findings):
            failures.append(f'{path}: {text.strip()!r}: expected {expected!r}, found {findings}')
    return failures, len(BAD)


def main():
    if sys.argv[1:] == ['--self-test']:
        findings, count = self_test()
    elif len(sys.argv) == 2:
        checker = Checker(sys.argv[1])
        findings, count = checker.run(), len(checker.includes)
        if count == 0:
            findings = [f'no sources below {sys.argv[1]}']
    else:
        sys.exit(__doc__)
    print('\n'.join(findings) or f'{count} checked, all well')
    sys.exit(1 if findings else 0)


if __name__ == '__main__':
    main()
