#!/usr/bin/env python3
"""Wrong pages, each of which the checks must refuse. Right ones are those of the project. In TAP."""

import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'site'))

from pages import Page
import commands
import quotes
import runs
import stage
import tap

SOURCE = '''\
#include "a.hpp"
int main() {
    one();
    two();
    three();
}
'''

# The fence is written ~~~ here. What the error has to say.
BLOCKS = [
    ('a clone that the page does not mention', '<!-- run in a clone -->\n~~~sh\ntrue\n~~~', 'is run in a clone'),
    ('... or in another section', 'A clone.\n\n## B\n\n<!-- run in a clone -->\n~~~sh\ntrue\n~~~', 'is run in a clone'),
    ('sh from nowhere', '~~~sh\ntrue\n~~~', 'no origin'),
    ('a comment that is not directly before', '<!-- run -->\n\n~~~sh\ntrue\n~~~', 'no origin'),
    ('an unknown comment', '<!-- runs -->\n~~~sh\ntrue\n~~~', "not 'runs'"),
    ('no language', '~~~\nACL SETUSER\n~~~', 'names no language'),
    ('no end', '<!-- run -->\n~~~sh\ntrue', 'no end'),
    ('another word', '<!-- from a.cpp -->\n~~~cpp\none(1);\n~~~', "has not, in one piece and in this place: 'one(1);'"),
    ('another order', '<!-- from a.cpp -->\n~~~cpp\ntwo();\n// ...\none();\n~~~', "in this place: 'one();'"),
    ('a line left out in silence', '<!-- from a.cpp -->\n~~~cpp\none();\nthree();\n~~~', 'in one piece'),
    ('nothing but dots', '<!-- from a.cpp -->\n~~~cpp\n// ...\n~~~', 'nothing is quoted'),
    ('a file that is not there', '<!-- from b.cpp -->\n~~~cpp\none();\n~~~', 'there is no b.cpp'),
    ('a file outside', '<!-- from ../../etc/passwd -->\n~~~cpp\none();\n~~~', 'there is no'),
    ('C++ that nobody compiles', '<!-- from c.cpp -->\n~~~cpp\none();\n~~~', 'is not compiled'),
    ('a header that is not', '<!-- from c.hpp -->\n~~~cpp\none();\n~~~', 'is not compiled'),
    ('C++ that is said not to run', '<!-- not run: why -->\n~~~cpp\none();\n~~~', 'quoted from a compiled'),
    ('a program in YAML', '<!-- run -->\n~~~yaml\na: b\n~~~', 'cannot be run'),
    ('a loop without an end', '<!-- run -->\n~~~sh\nuntil grep -qs a b; do sleep 0.1; done\n~~~', 'may never end'),
    ('output of nothing', '<!-- output of the above -->\n~~~text\na\n~~~', 'block above is not run'),
    ('any output', '<!-- run -->\n~~~sh\ntrue\n~~~\n<!-- output of the above -->\n~~~text\n...\n~~~', 'any output'),
    ('a file for nobody', '<!-- file a.conf -->\n~~~ini\na\n~~~\n<!-- run -->\n~~~sh\ntrue\n~~~', 'mentions a.conf'),
    ('a file elsewhere', '<!-- file ../a -->\n~~~ini\na\n~~~', 'not in the scratch'),
]

RUNS = [
    ('more output', 'echo one; echo two', 'one', 'the output is another'),
    ('less output', 'echo one', 'one\n...\ntwo', 'the output is another'),
    ('a failure', 'echo about to; false; true', None, 'about to'),
    ('a failure that ends the shell', 'exit 3', None, 'exit status 3'),
    ('an end in the middle of the page', 'exit 0', None, 'the page ended here'),
]

LINKS = [
    ('the second of two', 'other.md#there-1', 'the site names this heading otherwise'),
    ('no page', 'none.md', 'there is no such file'),
    ('no heading', 'other.md#none', 'no such heading'),
    ('outside', '../../../etc/passwd', 'there is no such file'),
    ('absolute', '/docs/other.md', 'absolute'),
]

REPORT = tap.Report()


def point(name, found, expected):
    holds = found == expected if expected in (None, True) else found is not None and expected in found
    REPORT.point(name, None if holds else f'found {found!r}\nexpected {expected!r}')


def page_of(root, text):
    path = root / 'docs' / 'page.md'
    path.write_text(text.replace('~~~', '```') + '\n')
    return Page(root, path)


def check_blocks(root):
    compiled = {(root / 'a.cpp').resolve()}
    for name, text, expected in BLOCKS:
        page = page_of(root, 'Text.\n\n' + text)
        errors = [quotes.block_error(page, index, root, compiled) for index in range(len(page.blocks))]
        point(f'block: {name}', next((error for error in errors if error), None), expected)


def check_runs(root):
    alone = runs.isolation()
    env = runs.environment([], root, root)
    for name, command, output, expected in RUNS:
        text = f'<!-- run -->\n~~~sh\n{command}\n~~~\n'
        if output is not None:
            text += f'<!-- output of the above -->\n~~~text\n{output}\n~~~\n'
        found = [error for _, error in runs.run(page_of(root, text), env, alone)]
        assert len(found) == 1
        point(f'run: {name}', found[0], expected)

    page = page_of(root, '<!-- file in/a -->\n~~~ini\nmine\n~~~\n<!-- run -->\n~~~sh\nb=$(cat in/a)\n~~~\n'
                         'Then\n\n<!-- run -->\n~~~sh\necho "$b"\n~~~\n<!-- output of the above -->\n~~~text\nmine\n~~~\n'
                         '<!-- run -->\n~~~sh\nfalse\n~~~\n<!-- run -->\n~~~sh\ntrue\n~~~')
    first, second, failed, last = (error for _, error in runs.run(page, env, alone))
    point('run: blocks share a shell and a directory', first or second, None)
    point('run: the block that fails is named', failed, 'exit status 1')
    point('run: what comes behind it has not run', last, 'was not reached')
    page = page_of(root, '<!-- run -->\n~~~sh\ntrue\n~~~\nIn a clone:\n\n<!-- run in a clone -->\n~~~sh\ntrue\n~~~')
    good, unprepared = (error for _, error in runs.run(page, env, alone))
    point('run: what is run before one is not blamed on the one above', good, None)
    point('run: ... but named', unprepared, 'in what is run before it: cp -r')
    page = page_of(root, '<!-- run -->\n~~~sh\nx=1; one a | two\n~~~')
    point('run: an example from nowhere', str(quotes.programs_errors(page, ['one', 'a'])), "['one is an example")

    for kind in [[], alone] if alone else [[]]:
        page = page_of(root, '<!-- run -->\n~~~sh\nsetsid -f sleep 98765\n(sleep 98765 &)\necho up\n~~~')
        point('run: one that leaves something behind', next(runs.run(page, env, kind))[1], None)
        point('run: ... which is ended', next((path for path in pathlib.Path('/proc').glob('[0-9]*/cmdline')
                                                if b'98765' in runs_of(path)), None), None)


def runs_of(path):
    try:
        return path.read_bytes()
    except OSError:
        return b''


# What is given to the tool of a page's command.
COMMANDS = [
    ('a block that is not run', '<!-- not run: why -->\n~~~sh\nredlock run --x a -- true    # why\n~~~', 'run --x a -- true'),
    ('a unit', '<!-- not run: why -->\n~~~ini\nExecStart=/usr/bin/redlock elect --x a -- true\n~~~', 'elect --x a -- true'),
    ('a line that goes on', '<!-- not run: why -->\n~~~sh\nredlock list \\\n  --x\n~~~', 'list --x'),
    ('after another program', '<!-- not run: why -->\n~~~sh\nkubectl exec w -- redlock doctor --x | tail\n~~~', 'doctor --x'),
    ('the prose', 'Use `redlock status --x NAME` there.', 'status --x NAME'),
]


def check_commands(root):
    tool = root / 'tool'
    tool.write_text('#!/bin/sh\necho "redlock: unknown option: $*" >&2\n')
    tool.chmod(0o755)
    for name, text, expected in COMMANDS:
        found = commands.errors(page_of(root, text), str(tool))
        point(f'commands: {name}', '\n'.join(found) or None, expected)


def check_links(root):
    other = root / 'docs' / 'other.md'
    other.write_text('# A heading, with `code`\n\n## There\n\n## There\n')
    page = page_of(root, '# Here\n')
    pages = {page.path.resolve(): page, other.resolve(): Page(root, other)}
    for name, target, expected in LINKS:
        point(f'link: {name}', quotes.link_error(page, target, pages), expected)
    page = page_of(root, '[a](one.md) and ![b](<two.svg>)\n\n[c]: three.md\n\n`[d](four.md)` <img src="five.svg">')
    point('link: each kind is found', str([target for _, target in page.links]),
          "['one.md', 'two.svg', 'three.md', 'five.svg']")


def check_navigation(root):
    def errors(text):
        (root / 'mkdocs.yml').write_text(text)
        return '; '.join(quotes.navigation_errors(root)) or None
    point('navigation: an orphan', errors('nav:\n  - Page: page.md\n'), 'docs/other.md is not in')
    point('navigation: no page', errors('nav:\n  - page.md\n  - other.md\n  - A: none.md\n'), 'lists none.md')
    point('navigation: twice', errors('nav:\n  - page.md\n  - other.md\n  - other.md\n'), 'other.md twice')

    (root / 'lib' / 'primitives').mkdir(parents=True)
    (root / 'lib' / 'primitives' / 'prometheus.cpp').write_text('{"redlock_a_total", counts, 1}')
    for name, table, expected in [('another type', '| `redlock_a_total` | gauge |', 'redlock_a_total, a gauge'),
                                  ('one is missing', '', 'redlock_a_total, a counter')]:
        (root / 'docs' / 'operations.md').write_text(table)
        point(f'metrics: {name}', '; '.join(quotes.metrics_errors(root)) or None, expected)


def check_sources(root):
    point('comment: one within a line', str(quotes.comment_errors('/// One. \\par Errors')), "[(1, 'par')]")
    (root / 'scripts').mkdir()
    (root / 'scripts' / 'a').write_text('a=http://deb.test/debian')
    point('hosts: one that is named', '; '.join(quotes.hosts_errors(root)), 'names http://deb.test')


SITE = [
    ('a script from the net', '<script src="https://cdn.example.org/a.js"></script>', '', 'loads https://cdn'),
    ('a font from the net', '', '@font-face { src: url("https://cdn.example.org/f") }', 'loads https://cdn'),
    ('a dead link', '<a class="x" href="none.html#c">n</a>', '', 'links to none.html'),
]


def check_site(root):
    page_of(root, 'text\n- item\n\n[a](../a.cpp)\n\n<!-- run -->\n~~~sh\ntrue\n~~~')
    (root / 'docs' / 'site').mkdir()
    for name in ('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'docs/site/extra.css',
                 'docs/site/extra.js'):
        (root / name).write_text('')
    site = root / 'site'
    site.mkdir()
    for name in ('b.html', 'own.js'):
        (site / name).write_text('')
    for name, page, style, expected in SITE:
        (site / 'a.html').write_text(page)
        (site / 'a.css').write_text(style)
        point(f'site: {name}', '; '.join(stage.errors_of(site)) or None, expected)

    (root / 'meson.build').write_text("project(\n    version: '1.2.3',\n)\n")
    (root / 'mkdocs.yml').write_text('copyright: @VERSION@\n')
    stage.Stage(root, root / 'staged').run()
    point('site: the version is filled in', (root / 'staged' / 'mkdocs.yml').read_text(), 'copyright: 1.2.3')
    page = (root / 'staged' / 'docs' / 'page.md').read_text()
    point('site: a link out of the pages leads to a page that shows the file', '(source/a.cpp.md)' in page or page, True)
    point('site: ... which is there', (root / 'staged' / 'docs' / 'source' / 'a.cpp.md').is_file(), True)
    point('site: a list stands apart from the text before it', 'text\n\n- item' in page or page, True)
    point('site: what only the checks read is gone', '<!--' not in page or page, True)


def main():
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        (root / 'docs').mkdir()
        for file in ('a.cpp', 'a.hpp', 'c.cpp', 'c.hpp'):
            (root / file).write_text(SOURCE)
        check_blocks(root)
        check_runs(root)
        check_commands(root)
        check_links(root)
        check_navigation(root)
        check_sources(root)
        check_site(root)
    REPORT.end()


if __name__ == '__main__':
    main()
