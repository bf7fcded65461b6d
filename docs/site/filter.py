#!/usr/bin/env python3
"""Doxygen's view of a header: filter.py FILE

The first comment is the file's. The inline namespace is left out, as nobody writes it. And where clang-format has joined lines, a paragraph's
title gets its line back: to Doxygen the title of a \\par is all that stands beside it.
"""

import pathlib
import re
import sys

TITLES = ['Completion signature', 'Errors', 'Cancellation', 'Executors', 'Thread safety', 'Object lifetimes',
          'Blocking use', 'Blocking', 'Names', 'Sizes', 'Protocol']
GAP = r'(?:[ \t]*\n[ \t]*///)?[ \t]+'  # between two words of a comment
TITLE = re.compile(GAP + r'\\par' + GAP + '(' + '|'.join(title.replace(' ', GAP) for title in TITLES) + ')' + GAP)
PARAM = re.compile(GAP + r'(?=\\param )')


def on_lines(pattern, text, words):
    """With a new line before each of these words for a match, as deep as the comment is."""
    def lines(match):
        line = text[text.rfind('\n', 0, match.start()) + 1:match.start()]
        start = '\n' + re.match(r'\s*', line)[0] + '/// '
        return ''.join(start + word for word in words(match))
    return pattern.sub(lines, text)


def title(match):
    return '\\par ' + ' '.join(word for word in match[1].split() if word != '///')


text = pathlib.Path(sys.argv[1]).read_text().replace('::inline REDLOCK_ABI', '')
first = re.match(r'(?://.*\n)*', text)[0]
text = '/// \\file\n' + first.replace('// ', '/// ').replace('//\n', '///\n') + text[len(first):]
text = on_lines(TITLE, text, lambda match: [title(match), ''])
sys.stdout.write(on_lines(PARAM, text, lambda match: ['']))
