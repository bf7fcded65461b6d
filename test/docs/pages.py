"""Markdown pages as the checks see them: their blocks with where they come from, links, headings."""

import dataclasses
import functools
import pathlib
import re
import textwrap

FENCE = re.compile(r'^(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<language>[^\s`]*)')
COMMENT = re.compile(r'<!--\s*(.*?)\s*-->', re.DOTALL)

# What needs no origin: it is neither code nor a command.
PLAIN = {'text'}
CPP = {'cpp', 'c++'}
SHELL = {'sh', 'bash'}

ORIGINS = {
    'from': re.compile(r'from (?P<path>\S+)'),
    'run': re.compile(r'run(?P<clone> in a clone)?(?P<redis> with redis-server)?'),
    'file': re.compile(r'file (?P<path>[\w./-]+)'),
    'output': re.compile(r'output of the above'),
    'not run': re.compile(r'not run: (?P<reason>\S.*)', re.DOTALL),
}


@dataclasses.dataclass
class Block:
    line: int  # of the fence, from 1
    language: str
    lines: list
    comment: str  # what stands directly before, or ''
    closed: bool = True

    @functools.cached_property
    def origin(self):
        """(kind, match), or (None, None)."""
        for kind, pattern in ORIGINS.items():
            match = pattern.fullmatch(self.comment)
            if match:
                return kind, match
        return None, None

    @property
    def kind(self):
        return self.origin[0]


def comment_before(lines, fence):
    """The comment that ends in the line before the fence."""
    text = ''
    for line in reversed(lines[:fence]):
        text = line + '\n' + text
        if '<!--' in line:
            break
        if not line.strip() or (text.count('\n') == 1 and not line.rstrip().endswith('-->')):
            return ''
    match = COMMENT.fullmatch(text.strip())
    return match[1] if match else ''


def dedent(lines):
    """Without the indentation that all have in common, and without empty lines at the ends."""
    return textwrap.dedent('\n'.join(line.rstrip() for line in lines)).strip('\n').splitlines()


class Page:
    def __init__(self, root, path):
        self.root, self.path = root, path
        self.name = str(path.relative_to(root))
        self.lines = path.read_text().splitlines()
        self.blocks, self.prose = [], []
        self.parse()

    def parse(self):
        block, fence = None, None
        for number, line in enumerate(self.lines, 1):
            match = FENCE.match(line)
            if block is None and match:
                fence = match
                block = Block(number, match['language'], [], comment_before(self.lines, number - 1))
                self.blocks.append(block)
            elif block is None:
                self.prose.append((number, line))
            elif match and match['fence'].startswith(fence['fence']) and not match['language']:
                block = None
            else:
                block.lines.append(line)
        if block is not None:
            block.closed = False

    @functools.cached_property
    def links(self):
        """(line, target) of each link and picture in the prose."""
        found = []
        for number, line in self.prose:
            line = re.sub(r'`[^`]*`', '', line)
            found += [(number, target) for target in re.findall(r'\]\(\s*<?([^)\s>]+)', line)]
            found += [(number, target) for target in re.findall(r'^\s*\[[^\]]+\]:\s*(\S+)', line)]
            found += [(number, target) for target in re.findall(r'(?:src|srcset|href)="([^"]+)"', line)]
        return found

    @functools.cached_property
    def anchors(self):
        """Heading -> anchor, as a forge makes it, and as the site's generator does."""
        forge, site = set(), set()
        for _, line in self.prose:
            match = re.match(r'#{1,6} +(.*?)(?: +#+)?$', line)
            if match:
                text = re.sub(r'!?\[([^\]]*)\]\([^)]*\)', r'\1', match[1])
                forge.add(unique(forge_anchor(text), forge, '-'))
                site.add(unique(site_anchor(text), site, '_'))
            found = re.findall(r'<a (?:id|name)="([^"]+)"', line)
            forge.update(found)
            site.update(found)
        return forge, site


def unique(anchor, taken, joint):
    number = 0
    while (tried := anchor if number == 0 else f'{anchor}{joint}{number}') in taken:
        number += 1
    return tried


def forge_anchor(text):
    text = re.sub(r'[^\w\- ]', '', text.strip().lower())
    return text.replace(' ', '-')


def site_anchor(text):
    text = re.sub(r'[^\w\s-]', '', text).strip().lower()
    return re.sub(r'[-\s]+', '-', text)


def all_pages(root):
    """README.md first: it is where a reader begins."""
    root = pathlib.Path(root)
    fixed = [root / name for name in ('README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CODE_OF_CONDUCT.md')]
    inside = [root / 'bench' / 'RESULTS.md', *sorted(root.glob('lib/**/README.md')), *sorted(root.glob('test/**/README.md'))]
    return [Page(root, path) for path in [*fixed, *sorted((root / 'docs').rglob('*.md')), *inside] if path.exists()]
