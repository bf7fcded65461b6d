#!/usr/bin/env python3
"""A style guide as code, for the language of what people read: words.py SOURCE_ROOT | --self-test

That is the PAGES, and of the SOURCES the comments and the messages (errors, log lines, help texts). None may
use the phrases of PHRASES or REPLACED, or a sentence of more than LONGEST words. In pages, blocks, code in
backticks and the targets of links are ignored. Reports in TAP.
"""

import pathlib
import re
import sys
import tempfile

from pages import Page
import tap
import texts

LONGEST = 40  # words in a sentence
MOST = {'README.md': 600}  # words in a page

PAGES = [
    '*.md', 'docs/**/*.md', 'bench/*.md', 'examples/*.md', 'lib/*.md', 'test/**/README.md', '.github/**/*.md',
]

# Sources whose comments are checked, and the strings of the C++ in them.
SOURCES = [
    '.ci/*', '.github/**/*', '.gitlab*', 'bench/**/*', 'deploy/**/*', 'docs/**/*', 'examples/**/*', 'include/**/*',
    'lib/**/*', 'packaging/**/*', 'scripts/*', 'test/**/*', 'testing/**/*', 'tools/*',
]

# The relative pronoun is right after one of these, and lacks its noun elsewhere.
PEOPLE = set('''
    administrator anybody anyone caller client colleague developer everybody everyone holder maintainer nobody
    one operator owner people person process reader somebody someone user waiter
'''.split())

# rule, pattern, what to write instead
PHRASES = [(rule, re.compile(pattern, re.IGNORECASE), advice) for rule, pattern, advice in [
    ('who', r'\b(?:whoever|whom)\b', 'name it: waiter, holder, owner, caller, client, process'),
    ('preposition', r'\bbehind\b(?![,.]| (?:(?:an?|the|one) )?(?:proxy|load balancer|NAT|firewall|gateway|address))', 'after'),
    ('preposition', r'\bbeside\b', 'next to, with, in addition to'),
    ('preposition', r'\bmeanwhile\b', 'during that time'),
    ('preposition', r'\balso where\b', 'even if'),
    ('is no', r'(?<!there )\b(?:is|are|was|were) no (?!longer|more|less|fewer|larger|smaller)', 'not a ...'),
    ('is no', r'(?<!there )\b(?:is|are) none\b', 'unknown ..., invalid ..., there is no ...'),
    ('is no', r'\bone word too many\b', 'unexpected argument'),
    ('is told', r'\b(?:is|are|was|were|be|been|being) told\b', 'is notified, is signalled'),
    ('so many', r'\bso (?:many|long)\b(?! as\b)', 'the number, that long'),
    ('for ever', r'\bfor ever\b', 'indefinitely, without limit, until ...'),
    ('speech', r'\bmasters? (?:say|tell|know|forget|remember|speak|believe)s?\b', 'report, reply, have, lose'),
    ('too', r', too\b(?=\W*$|[.,;:)])', 'also, as well'),
]]

# What the terms of docs/glossary.md have replaced.
REPLACED = [
    ('waiter', ['who waits', 'those who wait']),
    ('holder', ['who has it', 'who holds it']),
    ('supervisor', ['the keeper', '*keeper*']),
    ('ineligible', ['unfit']),
    ('extend', ['prolong', 'prolonged']),
    ('release', ['give back', 'gives back', 'given back', 'gives it back']),
    ('in flight', ['on its way', 'on their way']),
    ('wait queue', ['stand in line', 'waits in line', 'lines of waiters']),
    ('release notification', ['wake-up', 'wake-ups']),
    ('local handoff', ['hand-over', 'hand-overs', 'handed over', 'hands over', 'hand over']),
    ('migrate', ['come over']),
]

def replaced(terms):
    """The rule of each phrase that a term has replaced."""
    return [('glossary', re.compile(rf'\b{re.escape(phrase)}\b', re.IGNORECASE), term)
            for term, phrases in terms for phrase in phrases]


def plain(text):
    """Markdown as it is read: code is one word, a link is its text."""
    text = re.sub(r'`+[^`]*`+', 'CODE', text)
    text = re.sub(r'!?\[([^\]]*)\]\([^)]*\)', r'\1', text)
    return re.sub(r'<[^>]*>|[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}', '', text)


def units(page):
    """(line, text) of each heading, paragraph, item of a list and cell of a table."""
    comment, start, text, previous = False, 0, '', 0
    for number, line in [*page.prose, (len(page.lines) + 2, '')]:
        if comment or line.lstrip().startswith('<!--'):
            comment = '-->' not in line
            line = ''
        line = line.strip()
        begins = re.match(r'(?:[-*+]|\d+\.) +|#+ +|> ?', line)
        if text and (not line or begins or line.startswith('|') or number > previous + 1):
            yield start, plain(text)
            text = ''
        previous = number
        if line.startswith('|'):
            cells = line.strip('|').split(' | ')
            for cell in cells:
                if not re.fullmatch(r'[\s:|-]*', cell):
                    yield number, plain(cell.strip())
            continue
        line = line[begins.end():] if begins else line
        if line.startswith('[') and re.match(r'\[[^\]]+\]:', line):
            continue
        start = start if text else number
        text = f'{text} {line}'.strip()


def sentences(text):
    """The sentences of a unit: each ends at a full stop, a question mark or an exclamation mark."""
    return [part for part in re.split(r'(?<=[.!?])["\')]*\s+(?=["\'(]*[A-Z0-9])', text) if part]


def findings_of(line, text, phrases):
    """(line, rule, text, what to do) of each finding in one unit."""
    for match in re.finditer(r"(?:([\w'-]+),? +)?\bwho\b", text, re.IGNORECASE):
        before = (match[1] or '').lower()
        if not {before, before.removesuffix('s'), before.removesuffix('es')} & PEOPLE:
            yield line, 'who', match[0], 'name it: waiter, holder, owner, caller, client, process'
    for rule, pattern, advice in phrases:
        for match in pattern.finditer(text):
            yield line, rule, text[match.start():match.end() + 20], advice
    for sentence in sentences(text):
        words = [word for word in sentence.split() if re.search(r'\w', word)]
        if len(words) > LONGEST:
            yield line, 'length', f'{len(words)} words: {" ".join(words[:6])} ...', f'at most {LONGEST}'


def findings(page, phrases):
    for line, text in units(page):
        yield from findings_of(line, text, phrases)


# What breaks each rule, which it must find. What it must not find is in the pages and the sources themselves.
TEXTS = [
    ('nobody', 'A release wakes who waits.', 'who'),
    ('nobody in particular', 'Whoever waits is first.', 'who'),
    ('after', 'It comes behind the release.', 'preposition'),
    ('over two lines', 'A replica is\nno master.', 'is no'),
    ('in a cell', '| a | b |\n|---|---|\n| x | That is none. |', 'is no'),
    ('in a link', 'Read [what is no lock](a.md).', 'is no'),
    ('in an item', '- one\n- that is no lock', 'is no'),
    ('a message', 'The holder is told of it.', 'is told'),
    ('an amount', 'So many masters vote.', 'so many'),
    ('at the end', 'It is renewed, too.', 'too'),
    ('without an end', 'It waits for ever.', 'for ever'),
    ('a master that speaks', 'The masters say that it is free.', 'speech'),
    ('replaced', 'The lease is handed over.', 'glossary'),
    ('a long sentence', 'word ' * LONGEST + 'more.', 'length'),
]

# (about, source, kind, rule)
TEXTS_IN_SOURCES = [
    ('a comment of a script', '# A replica is\n# no master.', 'script_comments', 'is no'),
    ('a docstring', 'def f():\n    """A replica is no master."""', 'script_comments', 'is no'),
    ('a comment over two lines', '// A replica is\n// no master.', 'comments', 'is no'),
    ('a comment after code', 'int a; // who asks', 'comments', 'who'),
    ('a message in parts', 'f("it is "\n  "no option");', 'messages', 'is no'),
]


def self_test():
    """Each rule fails on a sentence that breaks it, and lets right ones pass."""
    phrases = PHRASES + replaced([('hand off', ['handed over'])])
    report = tap.Report()

    def check(about, found, expected):
        rules = {rule for _, rule, _, _ in found}
        report.point(about, None if rules == {expected} else f'found {rules}, not {expected}')

    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / 'page.md'
        for about, text, expected in TEXTS:
            path.write_text(text + '\n')
            check(about, findings(Page(path.parent, path), phrases), expected)
    for about, source, kind, expected in TEXTS_IN_SOURCES:
        check(about, (one for line, text in getattr(texts, kind)(source) for one in findings_of(line, text, phrases)), expected)
    report.end()


def main():
    if sys.argv[1] == '--self-test':
        self_test()
    root = pathlib.Path(sys.argv[1]).resolve()
    phrases = PHRASES + replaced(REPLACED)
    report = tap.Report()

    def show(name, found):
        report.point(name, '\n'.join(f'{line}: {rule}: {text!r}; write: {advice}' for line, rule, text, advice in found))

    for path in sorted({path for name in PAGES for path in root.glob(name)}):
        page = Page(root, path)
        words, found = sum(len(text.split()) for _, text in units(page)), list(findings(page, phrases))
        if words > MOST.get(page.name, words):
            found.append((1, 'length', f'{words} words', f'at most {MOST[page.name]}'))
        show(page.name, found)
    for name in SOURCES:
        for kind, read in (('comments', texts.comments_of), ('messages', texts.messages_of)):
            show(f'{kind} of {name}', [(f'{path.relative_to(root)}:{line}', *rest) for path in sorted(root.glob(name))
                                       for line, text in read(path) for _, *rest in findings_of(line, text, phrases)])
    report.end()


if __name__ == '__main__':
    main()
