#!/usr/bin/env python3
"""Checks the language of what people read: words.py SOURCE_ROOT [--count | --self-test] [PAGE...]

That is the PAGES, the comments of the sources in COMMENTS, and the messages (errors, log lines, help
texts) of those in MESSAGES. None may use the phrases of PHRASES or REPLACED, or a sentence of more than
LONGEST words. No file of NAMES may use a name of REPLACED_NAMES. In pages,
blocks, code in backticks and the targets of links are ignored.
--count prints the number of findings per page, directory and rule, and always succeeds. Reports in TAP.
"""

import collections
import pathlib
import re
import sys
import tempfile

from pages import Page
import texts

LONGEST = 40  # words in a sentence
MOST = {'README.md': 600}  # words in a page

PAGES = [
    '*.md', 'docs/**/*.md', 'bench/*.md', 'examples/*.md', 'lib/*.md', 'test/**/README.md', '.github/**/*.md',
]

# Sources whose comments are checked, and C++ sources whose strings are. Add more when they pass.
COMMENTS = [
    '.ci/*', '.github/**/*', '.gitlab*', 'bench/**/*', 'deploy/**/*', 'docs/**/*', 'examples/**/*', 'include/**/*',
    'lib/**/*', 'packaging/**/*', 'scripts/*', 'test/**/*', 'testing/**/*', 'tools/*',
]
MESSAGES = [
    'bench/**/*', 'docs/**/*', 'examples/**/*', 'include/**/*', 'lib/**/*', 'test/**/*',
    'testing/**/*', 'tools/*',
]
# Files that may not use a public name that was replaced, code included.
NAMES = [
    'README.md', 'bench/**/*', 'deploy/**/*', 'docs/**/*', 'examples/**/*', 'include/**/*', 'lib/**/*', 'test/**/*',
    'testing/**/*', 'tools/*',
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

# What the terms of docs/glossary.md have replaced: phrases in all texts, and public names in code.
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
REPLACED_NAMES = [
    ('owner', ['vote::foreign', 'loss_reason::foreign']),
    ('ineligible', ['unfit', 'means_unfit']),
    ('memory record', ['epoch_key']),
    ('validity', ['too_slow']),
    ('pending removal', ['redlock_debts', 'debts_paid']),
    ('release notification', ['wake_up', 'wake_ups', 'redlock_pushes_total', 'push_connections']),
    ('local handoff', ['hand_overs', 'redlock_hand_overs_total', 'redis_lock::hand_on']),
]


def replaced(terms):
    """The rule of each phrase that a term has replaced."""
    return [('glossary', re.compile(rf'\b{re.escape(phrase)}\b', re.IGNORECASE), term)
            for term, phrases in terms for phrase in phrases]


def replaced_names(terms):
    """(pattern, name, term) of each public name that a term has replaced."""
    return [(re.compile(rf'\b{re.escape(name)}\b'), name, term) for term, names in terms for name in names]


def old_names(text, names):
    """(line, rule, name, what to write) of each replaced name in a source, a page or a configuration."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, name, term in names:
            if pattern.search(line):
                yield number, 'name', name, term


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


TEXTS = [
    ('a waiter', 'The waiter who comes first gets the lock.', None),
    ('several waiters', 'It notifies the waiters, who try again.', None),
    ('nobody', 'A release wakes who waits.', 'who'),
    ('nobody in particular', 'Whoever waits is first.', 'who'),
    ('a question', 'Say who holds it.', 'who'),
    ('after', 'It comes behind the release.', 'preposition'),
    ('a real place', 'A master behind a proxy has no address.', None),
    ('at the same time', 'Another holder may, meanwhile, write.', 'preposition'),
    ('a negation', 'A replica is no master.', 'is no'),
    ('over two lines', 'A replica is\nno master.', 'is no'),
    ('in a cell', '| a | b |\n|---|---|\n| x | That is none. |', 'is no'),
    ('in a link', 'Read [what is no lock](a.md).', 'is no'),
    ('in a heading', '# What is no lock', 'is no'),
    ('in an item', '- one\n- that is no lock', 'is no'),
    ('an absence', 'There is no master, there is none; it is no longer up, and no more than one is.', None),
    ('in code', 'It prints `who is no master`.', None),
    ('in a block', '```text\nwho is no master\n```', None),
    ('in a comment', '<!-- not run: who is\nno master -->\n\nGood.', None),
    ('a message', 'The holder is told of it.', 'is told'),
    ('an amount', 'So many masters vote.', 'so many'),
    ('a condition', 'So long as it is held, it is renewed.', None),
    ('at the end', 'It is renewed, too.', 'too'),
    ('an excess', 'It is renewed too late, too often.', None),
    ('without an end', 'It waits for ever.', 'for ever'),
    ('a master that speaks', 'The masters say that it is free.', 'speech'),
    ('replaced', 'The lease is handed over.', 'glossary'),
    ('not replaced', 'The lease is handed off.', None),
    ('a long sentence', 'word ' * LONGEST + 'more.', 'length'),
    ('as long as possible', 'word ' * (LONGEST - 1) + 'last.', None),
    ('two short ones', 'Word' + ' word' * 20 + '. Word' + ' word' * 20 + '.', None),
    ('one per cell', f'| {"word " * 20}| {"word " * 20}|', None),
    ('one per item', f'- {"word " * 20}\n- {"word " * 20}', None),
    ('two paragraphs', f'{"word " * 20}\n\n{"word " * 20}', None),
]


# (about, source, kind, rule)
SOURCES = [
    ('a comment of a script', '# A replica is\n# no master.', 'script_comments', 'is no'),
    ('a docstring', 'def f():\n    """A replica is no master."""', 'script_comments', 'is no'),
    ('a long docstring', '"""About.\n\nA replica is\nno master.\n"""', 'script_comments', 'is no'),
    ('usage', '"""About:\n\n    who is no master\n"""\n#   who is no master', 'script_comments', None),
    ('a script', 'who = "who is no master"', 'script_comments', None),
    ('a comment', '/// Returns who holds it.', 'comments', 'who'),
    ('a comment over two lines', '// A replica is\n// no master.', 'comments', 'is no'),
    ('two parameters', '/// \\param a ' + 'word ' * 20 + '\n/// \\param b ' + 'word ' * 20, 'comments', None),
    ('a table', '//   a.cpp   a replica is\n//   b.cpp   no master', 'comments', None),
    ('two comments', '// A replica is\n\n// no master', 'comments', None),
    ('a comment after code', 'int a; // who asks', 'comments', 'who'),
    ('a block of code', '/// \\code\n/// who is no master\n/// \\endcode', 'comments', None),
    ('a name in a comment', '// Calls who_is_no_master(), and who::asks.', 'comments', None),
    ('a comment in a string', 'f("// who is no master");', 'comments', None),
    ('a message', 'f("it is no option");', 'messages', 'is no'),
    ('a message in parts', 'f("it is "\n  "no option");', 'messages', 'is no'),
    ('a message that a value parts', 'f("it is " + a + "no option");', 'messages', None),
    ('a script in a string', 'f(R"(who is no master)");', 'messages', None),
    ('a message in a comment', '// "it is no option"', 'messages', None),
    ('a file that is included', '#include "who is no master.hpp"', 'messages', None),
    ('lines of a help text', 'f("' + 'word ' * 20 + '\\n  ' + 'word ' * 20 + '");', 'messages', None),
]


class Report:
    def __init__(self):
        self.results = []

    def point(self, name, errors):
        self.results.append(not errors)
        print(f'{"not ok" if errors else "ok"} {len(self.results)} - {name}')
        print(''.join(f'#   {error}\n' for error in errors), end='')

    def end(self):
        print(f'1..{len(self.results)}')
        sys.exit(0 if all(self.results) else 1)


def self_test():
    """Each rule fails on a sentence that breaks it, and lets right ones pass."""
    phrases = PHRASES + replaced([('hand off', ['handed over'])])
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / 'page.md'
        for about, text, expected in TEXTS:
            path.write_text(text + '\n')
            found = {rule for _, rule, _, _ in findings(Page(path.parent, path), phrases)}
            report.point(about, [f'found {found}, not {expected}'] if found != {expected} - {None} else [])
    for about, source, kind, expected in SOURCES:
        found = {rule for line, text in getattr(texts, kind)(source)
                 for _, rule, _, _ in findings_of(line, text, phrases)}
        report.point(about, [f'found {found}, not {expected}'] if found != {expected} - {None} else [])
    names = replaced_names([('new_name', ['old_name'])])
    for about, text, expected in [('a replaced name', 'x::old_name();', 1), ('part of a name', 'my_old_name', 0)]:
        report.point(about, [] if len(list(old_names(text, names))) == expected else ['found another number'])
    report.end()


def main():
    arguments = sys.argv[1:]
    if '--self-test' in arguments:
        self_test()
    counting = '--count' in arguments
    root, *names = (argument for argument in arguments if argument != '--count')
    root = pathlib.Path(root).resolve()
    phrases = PHRASES + replaced(REPLACED)
    report = Report()

    def show(name, words, found):
        if counting:
            rules = collections.Counter(rule for _, rule, _, _ in found)
            print(f'{name}: {words} words, {len(found)} findings {dict(rules)}')
        else:
            report.point(name, [f'{line}: {rule}: {text!r}; write: {advice}' for line, rule, text, advice in found])

    for name in names or sorted({str(path.relative_to(root)) for name in PAGES for path in root.glob(name)}):
        page = Page(root, root / name)
        words, found = sum(len(text.split()) for _, text in units(page)), list(findings(page, phrases))
        if words > MOST.get(name, words):
            found.append((1, 'length', f'{words} words', f'at most {MOST[name]}'))
        show(name, words, found)
    for kind, patterns, read in [] if names else [('comments', COMMENTS, texts.comments_of),
                                                  ('messages', MESSAGES, texts.messages_of)]:
        for name in patterns:
            words, found = 0, []
            for path in sorted(root.glob(name)):
                for line, text in read(path):
                    words += len(text.split())
                    found += [(f'{path.relative_to(root)}:{line}', *rest)
                              for _, *rest in findings_of(line, text, phrases)]
            show(f'{kind} of {name}', words, found)
    names_replaced = replaced_names(REPLACED_NAMES)
    for name in [] if names else NAMES:
        found = []
        for path in sorted(path for path in root.glob(name) if path.is_file() and path.name != 'words.py'):
            found += [(f'{path.relative_to(root)}:{line}', *rest)
                      for line, *rest in old_names(path.read_text(errors='replace'), names_replaced)]
        show(f'names of {name}', 0, found)
    if not counting:
        report.end()


if __name__ == '__main__':
    main()
