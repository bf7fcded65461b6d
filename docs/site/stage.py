#!/usr/bin/env python3
"""What mkdocs does not do: stage.py stage SOURCE_ROOT DIRECTORY [REPOSITORY] | stage.py check SITE

stage: the pages as the generator takes them. A link out of docs/ to a public header becomes one to the
reference; any other becomes one to a page that shows the file. So the site needs no forge. Each page ends with the
version, and with a link to the REPOSITORY if its address is given.

check: nothing is loaded from the net, and every link within the site leads somewhere.
"""

import html
import os
import pathlib
import re
import shutil
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'test' / 'docs'))
from pages import Page  # pylint: disable=wrong-import-position

NOT_PAGES = {'site', 'snippets'}
TAKEN = {'.md', '.svg', '.png', '.css', '.js'}
LANGUAGES = {'.cpp': 'cpp', '.hpp': 'cpp', '.py': 'python', '.sh': 'sh', '.yml': 'yaml', '.yaml': 'yaml',
             '.json': 'json', '.build': 'meson', '.sql': 'sql', '.toml': 'toml', '.ini': 'ini', '.cjs': 'js',
             '.mjs': 'js', '.js': 'js', '.wrap': 'ini', '.conf': 'nginx', '.service': 'ini', '.timer': 'ini'}
LIST = re.compile(r'(\s*)([-*+]|\d+\.) +')


def cell(code):
    """Code in a table, where the generator would show the backslash of `\\|`."""
    if not code.startswith('`') or '\\|' not in code:
        return code
    return '<code>' + html.escape(code.strip('`').replace('\\|', '|')).replace('|', '&#124;') + '</code>'


class Stage:
    def __init__(self, root, out, repository=None):
        self.root, self.out, self.repository = root, out, repository
        self.shown = []  # files of the repository that a page links to

    def place(self, path):
        """Where a file of the repository is in the site, from its top."""
        inside = path.relative_to(self.root)
        if inside == pathlib.Path('README.md'):
            return pathlib.Path('index.md')
        if inside.parts[0] == 'docs' and inside.suffix in TAKEN and inside.parts[1] not in NOT_PAGES:
            return inside.relative_to('docs')
        if str(inside) in ('CONTRIBUTING.md', 'CHANGELOG.md'):
            return inside
        if inside.parts[0] == 'include' and inside.suffix == '.hpp':
            return pathlib.Path('reference', inside.stem + '.md')
        if path not in self.shown:
            self.shown.append(path)
        return pathlib.Path('source', f'{inside}.md')

    def link(self, target, page):
        """A link of the page, as it is in the site."""
        path, mark, anchor = target.partition('#')
        if not path or re.match(r'[a-z][a-z0-9+.-]*:', target):
            return target
        there = (page.path.parent / path).resolve()
        if not there.exists():
            sys.exit(f'{page.name} links to {path}, which is not there')
        here = self.place(page.path).parent
        return os.path.relpath(self.place(there), here) + mark + anchor

    def convert(self, page):
        """Its text: links lead into the site, the comments of test/docs are gone, lists stand apart."""
        text = '\n'.join(page.lines) + '\n'
        text = re.sub(r'<!--(?:(?!-->).)*-->\n(?=\s*```)', '', text, flags=re.DOTALL)
        lines, fenced = [], False
        for line in text.splitlines():
            if re.match(r'\s*(```|~~~)', line):
                fenced = not fenced
            elif not fenced:
                # The generator takes a list for text where no empty line is before it.
                item, before = LIST.match(line), lines[-1] if lines else ''
                if item and not item[1] and before.strip() and not LIST.match(before) and not before.startswith(' '):
                    lines.append('')
                # Each part outside of code.
                parts = re.split(r'(`[^`]*`)', line)
                parts[::2] = [re.sub(r'(\]\(\s*<?)([^)\s>]+)', lambda m: m[1] + self.link(m[2], page), part)
                              for part in parts[::2]]
                line = ''.join(cell(part) if line.lstrip().startswith('|') else part for part in parts)
                line = re.sub(r'(src|srcset|href)="([^"]+)"',
                              lambda m: f'{m[1]}="{self.html_link(m[2], page)}"', line)
            lines.append(line)
        return '\n'.join(lines) + '\n'

    def html_link(self, target, page):
        """In HTML nobody turns a page's name into that of its file."""
        return re.sub(r'\.md(?=#|$)', '.html', self.link(target, page))

    def write(self, place, text):
        path = self.out / 'docs' / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def show(self, path):
        """A file, or what is in a folder."""
        inside = path.relative_to(self.root)
        place = self.place(path)
        if path.is_dir():
            names = sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith('.'))
            lines = [f'- [{one.name}]({os.path.relpath(self.place(one), place.parent)})' for one in names]
            self.write(place, f'# {inside}/\n\n' + '\n'.join(lines) + '\n')
        elif path.suffix == '.md':
            self.write(place, self.convert(Page(self.root, path)))
        else:
            text = path.read_text()
            fence = max(re.findall('`{3,}', text) + ['``'], key=len) + '`'
            language = LANGUAGES.get(path.suffix, 'sh' if text.startswith('#!') and 'sh' in text.split('\n')[0] else 'text')
            self.write(place, f'# {inside}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n')

    def run(self):
        shutil.rmtree(self.out, ignore_errors=True)
        pages = [self.root / name for name in ('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md')]
        for path in sorted((self.root / 'docs').rglob('*')):
            inside = path.relative_to(self.root / 'docs')
            if path.suffix not in TAKEN or inside.parts[0] in NOT_PAGES:
                continue
            if path.suffix == '.md':
                pages.append(path)
            else:
                (self.out / 'docs' / inside).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, self.out / 'docs' / inside)
        for path in pages:
            self.write(self.place(path), self.convert(Page(self.root, path)))
        for path in self.shown:  # it grows in the loop
            self.show(path)
        for name in ('extra.css', 'extra.js'):
            shutil.copy(self.root / 'docs' / 'site' / name, self.out / 'docs' / name)
        version = re.search(r"^    version: '([0-9.]+)'", (self.root / 'meson.build').read_text(), re.MULTILINE)[1]
        text = (self.root / 'mkdocs.yml').read_text().replace('@VERSION@', version)
        # Not as repo_url: the theme would load the forge's figures from the net.
        link = f', <a href="{html.escape(self.repository)}">repository</a>' if self.repository else ''
        (self.out / 'mkdocs.yml').write_text(text.replace('@REPOSITORY@', link))


def errors_of(site):
    """What a page of the site loads from the net, and links within it that lead nowhere."""
    errors = []
    for path in sorted(site.rglob('*.html')):
        text = path.read_text(errors='replace')
        name = path.relative_to(site)
        loads = re.findall(r'<(?:script|img|iframe|source|audio|video|embed)\b[^>]*?\bsrc(?:set)?="((?:https?:)?//[^"]+)"', text)
        loads += re.findall(r'<link\b(?=[^>]*\brel="(?:stylesheet|preload|preconnect|icon|shortcut icon)")[^>]*?'
                            r'\bhref="((?:https?:)?//[^"]+)"', text)
        errors += [f'{name} loads {load}' for load in loads]
        for target in re.findall(r'<(?:a|link|img|script|source)\b[^>]*?\b(?:href|src)="([^"#]+)', text):
            if re.match(r'[a-z][a-z0-9+.-]*:|//', target) or path.name == '404.html':
                continue
            there = path.parent / urllib.parse.unquote(target.split('?')[0])
            if not (there.is_file() or (there / 'index.html').is_file()):
                errors.append(f'{name} links to {target}, which is not there')
    for path in sorted(site.rglob('*.css')):
        errors += [f'{path.relative_to(site)} loads {load}'
                   for load in re.findall(r'(?:url\(|@import )[\'"]?((?:https?:)?//[^)\'"]+)', path.read_text())]
    return errors


if __name__ == '__main__':
    if sys.argv[1] == 'stage':
        Stage(pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve(), *sys.argv[4:]).run()
    else:
        sys.exit('\n'.join(errors_of(pathlib.Path(sys.argv[2]))) or None)
