"""What is checked by reading: origins of blocks, quotations, links, navigation."""

import json
import pathlib
import re

from pages import CPP, PLAIN, SHELL, dedent

LEFT_OUT = re.compile(r'\s*(//|#|--|;)\s*\.\.\.\s*')


def compiled_files(build, root):
    """The source files that Meson compiles; the parts of a target's unity included."""
    targets = json.loads((pathlib.Path(build) / 'meson-info' / 'intro-targets.json').read_text())
    groups = [group for target in targets for group in target['target_sources']]
    files = {pathlib.Path(source).resolve() for group in groups for source in group.get('sources', ())}
    # What several files are compiled as, in a unity build, has one line for each.
    for unity in {source for group in groups for source in group.get('generated_sources', ())}:
        if re.search(r'-unity\d+\.\w+$', unity) and pathlib.Path(unity).exists():
            text = pathlib.Path(unity).read_text()
            files.update(pathlib.Path(name).resolve() for name in re.findall(r'^#include *[<"](.+)[>"]', text, re.M))
    # The headers are compiled by the suite of that name; projects that depend on us, by the suite `consumer`.
    files.update((root / 'include').resolve().rglob('*.hpp'))
    files.update((root / 'test' / 'consumer').resolve().rglob('*.cpp'))
    return files


def is_compiled(source, compiled):
    """Itself, or as a header by a file of its folder."""
    if source in compiled:
        return True
    include = f'#include "{source.name}"'
    return source.suffix == '.hpp' and any(
        file.parent == source.parent and include in file.read_text() for file in compiled)


def segments(lines):
    """The runs of lines between those that say `...`."""
    run = []
    for line in lines:
        if LEFT_OUT.fullmatch(line):
            yield dedent(run)
            run = []
        else:
            run.append(line)
    yield dedent(run)


def quotation_error(lines, source):
    """Why these lines are not an excerpt of the source, or None."""
    position, something = 0, False
    for wanted in segments(lines):
        if not wanted:
            continue
        something = True
        while dedent(source[position:position + len(wanted)]) != wanted:
            position += 1
            if position + len(wanted) > len(source):
                return f'has not, in one piece and in this place: {closest(wanted, source)}'
        position += len(wanted)
    return None if something else 'nothing is quoted'


def closest(wanted, source):
    """The first line that is nowhere, or else the first of all."""
    there = {line.strip() for line in source}
    return repr(next((line for line in wanted if line.strip() not in there), wanted[0]))


def section_before(page, line):
    """The prose between the heading and this line."""
    prose = [(number, text) for number, text in page.prose if number < line - 1]
    begin = max((number for number, text in prose if re.match(r'#{1,6} ', text)), default=0)
    return '\n'.join(text for number, text in prose if number > begin)


def programs_errors(page, programs):
    """The examples that a page runs without a word about where they are from."""
    text = '\n'.join(line for _, line in page.prose)
    run = {word for block in page.blocks if block.kind == 'run'
           for line in block.lines for word in re.findall(r'(?:^|[;&|({]) *([\w-]+)', line)}
    if 'build/examples' in text or '1_one_lock.md' in text or 'build/examples' in '\n'.join(page.lines):
        return []
    return [f'{name} is an example: say how it is built, and that build/examples is in the path'
            for name in sorted(run & set(programs))]


def block_error(page, index, root, compiled):
    """What is wrong with one block without running it, or None."""
    block = page.blocks[index]
    if not block.closed:
        return 'the block has no end'
    if not block.language:
        return 'the block names no language (text, if it is none)'
    kind, match = block.origin
    if kind is None:
        if block.language in PLAIN and not block.comment:
            return None
        return ('no origin: the line before has to be <!-- from FILE -->, <!-- run -->, <!-- file NAME -->, '
                '<!-- output of the above --> or <!-- not run: REASON -->'
                + (f', not {block.comment!r}' if block.comment else ''))
    if block.language in CPP and kind != 'from':
        return 'C++ is quoted from a compiled file'
    if kind == 'run' and block.language not in SHELL:
        return f'{block.language} cannot be run'
    if kind == 'run' and match['clone'] and 'clone' not in section_before(page, block.line):
        return 'the page does not say that this is run in a clone'
    if kind == 'run' and any(line.lstrip().startswith('until ') for line in block.lines):
        return 'this loop may never end: timeout 60 sh -c "until ..."'
    if kind == 'output':
        before = page.blocks[index - 1] if index > 0 else None
        if before is None or before.kind != 'run':
            return 'the block above is not run'
        if not any(line.replace('...', '').strip() for line in block.lines):
            return 'this output is any output'
    if kind == 'file':
        name = match['path']
        if name.startswith('/') or '..' in pathlib.PurePath(name).parts:
            return f'{name} is not in the scratch directory'
        uses = (line for later in page.blocks[index + 1:] if later.kind == 'run'
                for line in [*later.lines, later.comment])
        if not any(name in line for line in uses):
            return f'no block below that is run mentions {name}'
    if kind == 'from':
        source = (root / match['path']).resolve()
        if not source.is_relative_to(root.resolve()) or not source.is_file():
            return f'there is no {match["path"]}'
        if block.language in CPP and not is_compiled(source, compiled):
            return f'{match["path"]} is not compiled'
        error = quotation_error(block.lines, source.read_text().splitlines())
        return error and f'{match["path"]} {error}'
    return None


def link_error(page, target, pages):
    """Why the link leads nowhere, or None. The net is not asked."""
    if re.match(r'[a-z][a-z0-9+.-]*:', target):
        return None
    path, _, anchor = target.partition('#')
    if path.startswith('/'):
        return f'{target}: an absolute path means nothing on the forge'
    there = (page.path.parent / path).resolve() if path else page.path.resolve()
    if not there.is_relative_to(page.root.resolve()) or not there.exists():
        return f'{target}: there is no such file'
    if not anchor:
        return None
    if there not in pages:
        return f'{target}: only pages that are checked have anchors'
    forge, site = pages[there].anchors
    if anchor not in forge:
        return f'{target}: no such heading; there are {", ".join(sorted(forge))}'
    if anchor not in site:
        return f'{target}: the site names this heading otherwise, {", ".join(sorted(site - forge))}: reword it'
    return None


def navigation(mkdocs):
    """The pages that mkdocs.yml lists, relative to docs/. Read without a parser, which nothing else needs."""
    listed, inside = [], False
    for line in mkdocs.read_text().splitlines():
        if re.match(r'\S', line):
            inside = line.startswith('nav:')
        elif inside and (match := re.match(r'\s+- (?:.*?: )?[\'"]?([\w./-]+\.md)[\'"]?\s*(?:#.*)?$', line)):
            listed.append(match[1])
    return listed


def navigation_errors(root):
    """Pages without an entry, entries without a page, and pages that are listed twice."""
    docs = root / 'docs'
    listed = navigation(root / 'mkdocs.yml')
    there = {str(path.relative_to(docs)) for path in docs.rglob('*.md')}
    # The site's build puts these next to the pages.
    outside = {'CONTRIBUTING.md', 'CHANGELOG.md', 'index.md', 'reference/index.md'}
    errors = [f'docs/{name} is not in the navigation of mkdocs.yml' for name in sorted(there - set(listed))]
    errors += [f'mkdocs.yml lists {name}, which is not there' for name in sorted(set(listed) - there - outside)]
    errors += [f'mkdocs.yml lists {name} twice' for name in sorted({n for n in listed if listed.count(n) > 1})]
    return errors


def comment_errors(text):
    """(line, command) of each command of Doxygen that should begin a line of a comment, but does not: a formatter has
    filled the lines. Its argument then ends elsewhere than its author meant."""
    inline = {'a', 'b', 'c', 'e', 'em', 'n', 'p', 'ref'}
    return [(number, command) for number, line in enumerate(text.splitlines(), 1)
            if (comment := re.search(r'//[/!]<? *\S+(.*)', line))
            for command in re.findall(r'\s[\\@]([a-z]+)', re.sub(r'`[^`]*`', '', comment[1])) if command not in inline]


def headers_errors(root):
    return [f'{path.relative_to(root)}:{line}: \\{command} within a line'
            for path in sorted((root / 'include').rglob('*.hpp'))
            for line, command in comment_errors(path.read_text())]


def hosts_errors(root):
    """What a script fetches, it fetches from where the machine it runs on is set up to."""
    named = re.compile(r'\bhttps?://(?!127\.0\.0\.1\b|localhost\b)[\w.-]+')
    return [f'scripts/{path.name} names {host}' for path in sorted((root / 'scripts').iterdir()) if path.is_file()
            for host in named.findall(path.read_text())]


def metrics_errors(root):
    """The table of the metrics against those that are on a page for Prometheus."""
    source = (root / 'lib' / 'primitives' / 'prometheus.cpp').read_text()
    exported = {(name, 'counter' if name.endswith('_total') else kind or 'gauge') for name, kind in
                re.findall(r'\{"(redlock_\w+)",[^}]*?(?:"(histogram)")?\}', source)}
    table = (root / 'docs' / 'operations.md').read_text()
    listed = set(re.findall(r'^\| `(redlock_\w+)` \| (\w+) \|', table, re.MULTILINE))
    if not exported:
        return ['lib/primitives/prometheus.cpp: no metrics found']
    return [f'{name}, a {kind}, is in one of docs/operations.md and lib/primitives/prometheus.cpp only'
            for name, kind in sorted(exported ^ listed)]
