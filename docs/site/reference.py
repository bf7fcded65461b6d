#!/usr/bin/env python3
"""Makes the reference of the public headers: reference.py SOURCE_ROOT [STAGE]

Doxygen reads the headers. The pages are Markdown, so that they have the look and the search of the site: one for each
header, and one for each of its types that would make it long. They go into the pages that stage.py has prepared.
Without STAGE it only looks. A public name without a comment is an error, as is everything else that Doxygen warns of.
"""

import collections
import html
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

# What we specialize is not ours to describe; and what users must not name stays out, undescribed.
NOT_OURS = re.compile(r'scope for class boost::\S+.* not found|of namespace redlock::detail is not documented')
LONG = 9_000  # characters of a page
WIDE = 88  # characters of a line of code


def read(root):
    """All that Doxygen finds."""
    with tempfile.TemporaryDirectory() as scratch:
        config = pathlib.Path(root, 'docs', 'site', 'Doxyfile').read_text() + f'OUTPUT_DIRECTORY = {scratch}\n'
        done = subprocess.run(['doxygen', '-'], input=config, cwd=root, text=True, check=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        # The line number is that of the output of filter.py, and would mislead.
        warnings = [re.sub(r'(\.\w+):\d+:', r'\1:', line) for line in done.stderr.splitlines()
                    if line.strip() and not NOT_OURS.search(line)]
        if warnings:
            sys.exit('\n'.join(warnings))
        return [one for path in sorted(pathlib.Path(scratch, 'xml').glob('*.xml'))
                for one in ElementTree.parse(path).getroot().iter('compounddef')]


def plain(element):
    return '' if element is None else re.sub(r'\s+', ' ', ''.join(element.itertext())).strip()


def parameters_of(text):
    """The parameters of a function, apart."""
    parts, depth = [''], 0
    for c in text:
        depth += (c in '(<{') - (c in ')>}')
        parts[-1] += c
        if c == ',' and depth == 0:
            parts.append('')
    return [part.strip() for part in parts]


def list_of(items):
    return ('\n\n' if any('\n' in item for item in items) else '\n').join(items)


class Reference:
    def __init__(self, root, compounds):
        self.docs = pathlib.Path(root, 'docs')
        self.pages = {}  # by name: the entries of its header or its type
        self.places = {}  # by Doxygen's id: the page and the anchor
        self.compounds = compounds
        self.headers = sorted((one for one in compounds if one.get('kind') == 'file' and self.entries(one)),
                              key=lambda one: one.findtext('compoundname'))

    # --- What is where

    @staticmethod
    def name(one):
        return (one.findtext('compoundname') or one.findtext('name')).removeprefix('redlock::').replace('::', '-')

    def entries(self, header):
        """The public names of a header, in its order."""
        file = header.find('location').get('file')
        found = [one for one in self.compounds if one.get('kind') in ('class', 'struct')
                 and one.get('prot') != 'private' and one.find('location').get('file') == file]
        found += [one for of in self.compounds if of.get('kind') == 'namespace' or of is header
                  for one in of.iter('memberdef') if one.find('location').get('file') == file
                  and (of is not header or one.get('kind') == 'define')]
        return sorted(found, key=lambda one: int(one.find('location').get('line')))

    def put(self, page, entries):
        self.pages[page] = entries
        taken = collections.Counter()
        for entry in entries:
            for one in dict.fromkeys([entry, *entry.iter('memberdef'), *entry.iter('enumvalue')]):
                anchor = re.sub('[^\\w-]', '', self.name(entry) + ('' if one is entry else '-' + self.name(one)))
                taken[anchor] += 1
                self.places[one.get('id')] = page, anchor + (f'-{taken[anchor]}' if taken[anchor] > 1 else '')

    def arrange(self):
        for header in self.headers:
            page = pathlib.Path(header.findtext('compoundname')).stem
            entries = self.entries(header)
            self.places[header.get('id')] = page, ''
            self.put(page, entries)
            sizes = {one: len(self.entry(one, 2)) for one in entries}
            moved = []
            for one in sorted(entries, key=sizes.get, reverse=True):
                left = [other for other in entries if other not in moved]
                if one.tag == 'compounddef' and len(left) > 1 and sum(map(sizes.get, left)) > LONG:
                    moved.append(one)
            self.put(page, [one for one in entries if one not in moved])
            for one in moved:
                self.put(self.name(one) + '-type', [one])

    # --- Sentences

    def text(self, text):
        """As it is, but for the name of a page of the prose, which becomes a link with its title."""
        def title(match):
            return f'[{(self.docs / match[1]).read_text().split(chr(10))[0].lstrip("# ")}](../{match[1]})'
        return re.sub(r'docs/([\w/]+\.md)', title, html.escape(text or '', quote=False))

    def link(self, refid, text):
        page, anchor = self.places.get(refid, ('', ''))
        return f'[{text}]({page}.md{"#" + anchor if anchor else ""})' if page else text

    def span(self, child):
        if child.tag in ('computeroutput', 'ref'):
            refs = [child] if child.tag == 'ref' else child.findall('ref')
            code = f'`{plain(child)}`'
            return self.link(refs[0].get('refid'), code) if len(refs) == 1 and plain(refs[0]) == plain(child) else code
        mark = {'bold': '**', 'emphasis': '*'}[child.tag]
        return mark + self.text(child.text) + ''.join(self.span(one) + self.text(one.tail) for one in child) + mark

    def code(self, node):
        own = ' ' if node.tag == 'sp' else node.text or ''
        return own + ''.join(self.code(one) + (one.tail or '') for one in node)

    def blocks(self, element):
        """The paragraphs, lists, tables and code of a description."""
        out = ['']

        def add(*blocks):
            out[-1:] = [out[-1], *blocks, '']

        out[-1] += self.text(element.text)
        for child in element:
            if child.tag == 'para':
                add(*self.blocks(child))
            elif child.tag in ('itemizedlist', 'parameterlist'):
                add(list_of([self.item(one, child.get('kind')) for one in child]))
            elif child.tag == 'simplesect':
                title = f'*{child.findtext("title") or child.get("kind").capitalize() + "s"}:*'
                text = [part for para in child.findall('para') for part in self.blocks(para)]
                add(*([title] if text[0].startswith(('- ', '```')) else [f'{title} {text.pop(0)}']), *text)
            elif child.tag == 'programlisting':
                add('\n'.join(['```cpp', *(self.code(line).rstrip() for line in child), '```']))
            elif child.tag == 'table':
                rows = [' | '.join(' '.join(self.blocks(cell)) for cell in row) for row in child]
                add('\n'.join(f'| {row} |' for row in [rows[0], ' | '.join('---' for _ in child[0]), *rows[1:]]))
            else:
                out[-1] += self.span(child)
            out[-1] += self.text(child.tail)
        apart = (one if one.startswith(('```', '- ', '|')) else re.sub(r'\s+', ' ', one).strip() for one in out)
        return [text for text in apart if text]

    def brief(self, element):
        return ' '.join(self.blocks(element.find('briefdescription')))

    def item(self, one, kind):
        names = ''.join(f'`{plain(name)}`: ' for name in one.iter('parametername'))
        text = self.blocks(one if kind is None else one.find('parameterdescription'))
        return '- ' + ('throws ' if kind == 'exception' else '') + names + '\n\n'.join(text).replace('\n', '\n    ')

    def describe(self, element):
        return self.blocks(element.find('briefdescription')) + self.blocks(element.find('detaileddescription'))

    # --- Names

    def heading(self, element, text, level):
        return f'{"#" * level} `{text}` {{ #{self.places[element.get("id")][1]} }}'

    def value(self, member):
        """A data member, a type, a constant or an enumerator: its default, its type, and what it is for."""
        given = re.sub(r'^= ?|^\{|\}$', '', plain(member.find('initializer')))
        is_default = given and member.tag == 'memberdef' and len(given) < WIDE / 2 and not given.endswith('::min()')
        given = f' = `{given}`' if is_default else ''
        kind = plain(member.find('type'))
        first, *rest = self.describe(member) or ['']
        text = f'<a id="{self.places[member.get("id")][1]}"></a>**`{member.findtext("name")}`**{given}'
        text += f' (`{kind}`)' if kind and kind != 'using' else ''
        return '- ' + '\n\n'.join([f'{text}: {first}' if first else text, *rest]).replace('\n', '\n    ')

    def function(self, member, level):
        code = f'{plain(member.find("type"))} {member.findtext("name")}{plain(member.find("argsstring"))}'.strip()
        code = re.sub(r'(?<!operator)(?<=\w)=(?=[\w:{(])', ' = ', code)
        if len(code) > WIDE and '(' in code:
            begin, end = code.index('('), code.rindex(')')
            code = '\n    '.join([code[:begin + 1], *parameters_of(code[begin + 1:end])]) + code[end:]
        needs = []
        for one in member.findall('templateparamlist/param'):
            kind, name, usual = (plain(one.find(tag)) for tag in ('type', 'declname', 'defval'))
            needs.append(kind + (f' {name}' if name and not kind.endswith(name) else '') + (f' = {usual}' if usual else ''))
        code = re.sub('< (.*?) >', r'<\1>', f'template <{", ".join(needs)}>\n{code}' if needs else code)
        return '\n\n'.join([self.heading(member, member.findtext('name'), level), f'```cpp\n{code};\n```',
                            *self.describe(member)])

    @staticmethod
    def is_value(member):
        return member.get('kind') in ('typedef', 'variable', 'define')

    def options(self, values):
        """The range and the default of each, as its comment states them; nothing where few have a default."""
        rows = []
        for one in values:
            text = ' '.join(self.describe(one))
            limits = [re.search(rf'\b{word}: (.+?)[.;](?: |$)', text) for word in ('Default', 'Range')]
            name = self.link(one.get('id'), f'`{one.findtext("name")}`')
            rows.append([name, *(each[1] if each else '' for each in limits)])
        if sum(1 for row in rows if row[1]) < 4:
            return []
        return ['\n'.join(f'| {" | ".join(row)} |' for row in [['option', 'default', 'range'], ['---'] * 3, *rows])]

    def members(self, found, level):
        values = [one for one in found if self.is_value(one)]
        rest = sorted((one for one in found if not self.is_value(one)), key=lambda one: one.get('kind'))
        lists = self.options(values) + [list_of([*map(self.value, values)])] if values else []
        return lists + [self.entry(one, level) for one in rest]

    def entry(self, one, level):
        if one.tag == 'memberdef' and one.get('kind') == 'function':
            return self.function(one, level)
        if one.tag == 'memberdef' and one.get('kind') != 'enum':
            return self.value(one)
        if one.tag == 'memberdef':
            name, rest = f'enum {one.findtext("name")}', [list_of([*map(self.value, one.findall('enumvalue'))])]
        else:
            name = f'{one.get("kind")} {one.findtext("compoundname").removeprefix("redlock::")}'
            rest = self.members([each for each in one.iter('memberdef') if each.get('prot') != 'private'
                                 and each.get('kind') != 'friend'], level + 1)
        return '\n\n'.join([self.heading(one, name, level), *self.describe(one), *rest])

    # --- Pages

    def summary(self, entries):
        """One line for each name: what it is, and a link."""
        rows = []
        for one in entries:
            name = (one.findtext('compoundname') or one.findtext('name')).removeprefix('redlock::')
            rows.append(f'- {self.link(one.get("id"), f"`{name}`")}: {self.brief(one)}')
        return '\n'.join(dict.fromkeys(rows))

    def write(self, stage):
        out = pathlib.Path(stage, 'docs', 'reference')
        out.mkdir(parents=True, exist_ok=True)
        overview = next(one for one in self.compounds if one.get('id') == 'indexpage')
        lines, nav = [], ['      - API:', '          - Overview: reference/index.md']
        for header in self.headers:
            page, file = self.places[header.get('id')][0], header.find('location').get('file')
            everything = self.entries(header)
            free = [one for one in self.pages[page] if one.tag == 'memberdef']
            here = ['## Constants and types'] if any(self.is_value(one) for one in free) else []
            here += self.members(free, 2)
            here += [self.entry(one, 2) for one in self.pages[page] if one.tag == 'compounddef']
            contents = [self.summary(everything)] if len(everything) > 1 else []
            (out / f'{page}.md').write_text('\n\n'.join([f'# {file}', *self.describe(header), *contents, *here]) + '\n')
            lines.append(f'- [{file}]({page}.md): {self.brief(header)}')
            nav.append(f'          - {pathlib.Path(file).name}: reference/{page}.md')
            for one in everything:
                own = self.places[one.get('id')][0]
                if own != page:
                    (out / f'{own}.md').write_text(f'*Of [{file}]({page}.md)*\n\n{self.entry(one, 1)}\n')
                    nav.append(f'          - {own.removesuffix("-type").replace("-", "::")}: reference/{own}.md')
        index = ['# The API', *self.describe(overview), '## All headers', '\n'.join(lines)]
        (out / 'index.md').write_text('\n\n'.join(index) + '\n')
        config = pathlib.Path(stage, 'mkdocs.yml')
        config.write_text(re.sub('^ *- API: .*', '\n'.join(nav), config.read_text(), flags=re.MULTILINE))


def main(root, stage=None):
    compounds = read(root)
    if stage:
        found = Reference(root, compounds)
        found.arrange()
        found.write(stage)


main(*sys.argv[1:])
