#!/usr/bin/env python3
"""Makes a copy of lib/core in which every known-bad variant of the protocol can be switched on.

generate.py --list CORE     the names of the files that it makes
generate.py CORE OUT        makes them
generate.py --self-test     shows that a table that does not fit is found

All edits of all variants are in the copy at once, each as a choice at run time; with no variant on
it behaves as the original does, which a test compares.
"""

import hashlib
import pathlib
import re
import sys
import tempfile

import deadlines
import extensions
import fencing
import forms
import memory
import outside
import voting
import waiting
from edits import Edit, Script, Variant, either, when

KNOWN_BUGS = 69

# These live in an edit of another variant, where both are written at one place.
SHARED = {'release-without-compare'}

VARIANTS = sorted(
    voting.VARIANTS
    + deadlines.VARIANTS
    + fencing.VARIANTS
    + memory.VARIANTS
    + extensions.VARIANTS
    + waiting.VARIANTS
    + forms.VARIANTS
    + outside.VARIANTS,
    key=lambda one: one.number,
)

HEADER = 'variant.hpp'
SCRIPTS = 'variant_scripts.hpp'
MADE = '// Made by test/simulation/variants/generate.py.\n\n#pragma once\n\n'
TEXTS = ('scripts.hpp', 'guarded_scripts.hpp', 'form_scripts.hpp', 'heal_scripts.hpp')  # where the scripts are
SPEAKERS = ('command.cpp', 'form_command.cpp')  # where they are used


class Misfit(Exception):
    """The table and the code have parted."""


def identifier(variant):
    return variant.name.replace('-', '_')


def place(where, text, wanted):
    """Where in `text` the one occurrence of `wanted` begins."""
    count = text.count(wanted)
    if count != 1:
        raise Misfit(f'{where}: this must occur once, and occurs {count} times:\n{wanted}')
    return text.index(wanted)


def apply(name, original, edits):
    """`original` with all edits (variant, Edit), which must not touch each other."""
    spans = []
    for variant, edit in edits:
        where = f'{name}, variant {variant.name}'
        start = place(where, original, edit.before + edit.old + edit.after) + len(edit.before)
        new = edit.new.replace('%ON', f'variant::on(variant::{identifier(variant)})')
        spans.append((start, start + len(edit.old), new, variant.name))
    spans.sort(key=lambda span: span[:2])
    text, done = '', 0
    for start, end, new, variant in spans:
        if start < done:
            raise Misfit(f'{name}: {variant} touches another edit; combine them by hand')
        text += original[done:start] + new
        done = end
    return text + original[done:]


def include(header, text, is_header):
    line = f'#include "{header}"\n'
    if is_header:
        return text.replace('#pragma once\n', '#pragma once\n\n' + line, 1)
    return line + text


def scripts_in(core):
    """Name -> text of every script."""
    found = {}
    for name in TEXTS:
        source = (core / name).read_text()
        for match in re.finditer(r'inline constexpr script (\w+)\{\s*R"\((.*?)\)"', source, re.S):
            found[match[1]] = match[2]
    return found


def wrong_scripts(core, variants):
    """(variant, name of the script, its wrong text)"""
    known = scripts_in(core)
    out = []
    for variant in variants:
        for one in variant.scripts:
            if one.name not in known:
                raise Misfit(f'{variant.name}: no script is called {one.name}')
            text = known[one.name]
            for old, new in one.changes:
                start = place(f'{one.name}, variant {variant.name}', text, old)
                text = text[:start] + new + text[start + len(old) :]
            out.append((variant, one.name, text))
    return out


def use_of(core, name):
    """The edit that has the script chosen where it is used."""
    uses = [
        (speaker, line)
        for speaker in SPEAKERS
        for line in re.findall(rf'(?m)^.*\b{name}\b.*\n', (core / speaker).read_text())
    ]
    if len(uses) != 1:
        raise Misfit(f'{" and ".join(SPEAKERS)} must use {name} once, and do so {len(uses)} times')
    speaker, line = uses[0]
    before, after = re.split(rf'\b{name}\b', line)
    return Edit(speaker, name, before, after, f'variant::spoken({name})')


def variant_header(variants):
    names = ',\n'.join(f'    {identifier(one)}' for one in variants)
    rows = ',\n'.join(
        f'    known{{{identifier(one)}, {one.number}, "{one.name}", "{one.sentence}",'
        f' {str(one.misuse).lower()}, "{one.profile}", {one.first}, {one.seeds}}}'
        for one in variants
    )
    return f'''{MADE}#include <cstdint>
#include <string_view>

namespace redlock::core::variant {{

enum name : std::uint8_t {{
    none,
{names}
}};

/// Which one is on. Set before a run begins; runs in several threads share it.
inline name chosen_one = none;

inline bool on(name which) noexcept {{
    return chosen_one == which;
}}

/// One of the protocol's known bugs, and where it is known to die.
struct known {{
    name id;
    unsigned number;
    std::string_view text;
    std::string_view sentence;
    bool misuse; // a mistake of the simulated client, not an edit of the engine
    std::string_view profile;
    std::uint64_t first; // seed
    std::uint64_t seeds; // within so many it must die
}};

inline constexpr known all[] = {{
{rows}
}};

}} // namespace redlock::core::variant
'''


def scripts_header(wrong):
    rows = ',\n'.join(
        f'    replacement{{{identifier(variant)}, &{name}, {{R"({text})",'
        f' "{hashlib.sha1(text.encode()).hexdigest()}"}}}}'
        for variant, name, text in wrong
    )
    return f'''{MADE}#include "{HEADER}"
#include "form_scripts.hpp"
#include "guarded_scripts.hpp"
#include "heal_scripts.hpp"
#include "scripts.hpp"

namespace redlock::core::variant {{

struct replacement {{
    name when;
    const script* of;
    script by;
}};

inline constexpr replacement replacements[] = {{
{rows}
}};

/// The text that the variant which is on has in place of this one.
inline const script& spoken(const script& real) noexcept {{
    for (const replacement& one : replacements) {{
        if (on(one.when) && one.of == &real) {{
            return one.by;
        }}
    }}
    return real;
}}

}} // namespace redlock::core::variant
'''


def core_files(core):
    return sorted(path.name for path in core.glob('*.?pp'))


def generate(core, out, variants):
    edits = {}
    for variant in variants:
        changes = variant.edits or variant.scripts or variant.misuse
        if not changes and variant.name not in SHARED:
            raise Misfit(f'{variant.name} changes nothing')
        for edit in variant.edits:
            edits.setdefault(edit.file, []).append((variant, edit))
    wrong = wrong_scripts(core, variants)
    speaks = {name: variant for variant, name, _ in wrong}
    for name, variant in speaks.items():
        use = use_of(core, name)
        edits.setdefault(use.file, []).append((variant, use))
    unknown = set(edits) - set(core_files(core))
    if unknown:
        raise Misfit(f'lib/core has no {", ".join(sorted(unknown))}')
    out.mkdir(parents=True, exist_ok=True)
    for name in core_files(core):
        text = (core / name).read_text()
        if name in edits:
            text = apply(name, text, edits[name])
            header = SCRIPTS if name in SPEAKERS else HEADER
            text = include(header, text, name.endswith('.hpp'))
        (out / name).write_text(text)
    (out / HEADER).write_text(variant_header(variants))
    (out / SCRIPTS).write_text(scripts_header(wrong))


def check(variants):
    numbers = [one.number for one in variants]
    if numbers != list(range(1, KNOWN_BUGS + 1)):
        raise Misfit(f'the known bugs are 1 to {KNOWN_BUGS}, and the table has {numbers}')
    if len({one.name for one in variants}) != len(variants):
        raise Misfit('two variants have one name')


def self_test():
    """Each kind of misfit is found."""

    def variant(name='a', number=1, **more):
        return Variant(number, name, 'wrong', profile='calm', first=1, seeds=1, **more)

    source = 'int f() { return 1 + g(); }\n'
    scripts = 'inline constexpr script s{\n    R"(return 1)", "x"};\n'
    cases = {
        'good': ([variant(edits=(either('a.cpp', 'g()', '2'),))], None),
        'gone': ([variant(edits=(either('a.cpp', 'h()', '2'),))], 'occurs 0 times'),
        'twice': ([variant(edits=(either('a.cpp', ' ', '2'),))], 'occurs 7 times'),
        'overlap': (
            [
                variant(edits=(either('a.cpp', '1 + g()', '2'),)),
                variant('b', 2, edits=(either('a.cpp', 'g()', '2'),)),
            ],
            'combine them',
        ),
        'inside': (
            [
                variant(edits=(either('a.cpp', '1 + g()', '2'),)),
                variant('b', 2, edits=(when('a.cpp', 'h();', before='1 + '),)),
            ],
            'combine them',
        ),
        'no file': ([variant(edits=(either('b.cpp', 'g()', '2'),))], 'has no b.cpp'),
        'nothing': ([variant()], 'changes nothing'),
        'no script': ([variant(scripts=(Script('t', (('1', '2'),)),))], 'no script is called t'),
        'script': ([variant(scripts=(Script('s', (('3', '2'),)),))], 'occurs 0 times'),
        'unspoken': ([variant(scripts=(Script('s', (('1', '2'),)),))], 'must use s once'),
    }
    for name, (variants, expected) in cases.items():
        with tempfile.TemporaryDirectory() as scratch:
            core = pathlib.Path(scratch) / 'core'
            core.mkdir()
            (core / 'a.cpp').write_text(source)
            for speaker in SPEAKERS:
                (core / speaker).write_text('')
            (core / 'scripts.hpp').write_text(scripts)
            for other in TEXTS[1:]:
                (core / other).write_text('')
            found = None
            try:
                generate(core, pathlib.Path(scratch) / 'out', variants)
            except Misfit as misfit:
                found = str(misfit)
            wrong = found is not None if expected is None else expected not in (found or '')
            if wrong:
                sys.exit(f'{name}: expected {expected}, found {found}')
    try:
        check(VARIANTS[:-1])
    except Misfit:
        pass
    else:
        sys.exit('a variant may be missing')


def main(arguments):
    if arguments == ['--self-test']:
        self_test()
    elif len(arguments) == 2 and arguments[0] == '--list':
        print('\n'.join(core_files(pathlib.Path(arguments[1])) + [HEADER, SCRIPTS]))
    elif len(arguments) == 2:
        try:
            check(VARIANTS)
            generate(pathlib.Path(arguments[0]), pathlib.Path(arguments[1]), VARIANTS)
        except Misfit as misfit:
            sys.exit(f'{misfit}\nMend the tables in test/simulation/variants.')
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main(sys.argv[1:])
