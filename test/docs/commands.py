"""Commands of `redlock` that no block runs: in the prose, and in blocks that need what a test machine lacks.

Each is given to the tool with a configuration that cannot be read, so it ends before it does anything. What it must
not say is that a command, an option or a word is wrong.
"""

import itertools
import os
import re
import shlex
import subprocess

OPERATORS = re.compile(r'[|&;<>()]+[0-9]*')
SPAN = re.compile(r'`(redlock [^`]+)`')
WRONG = ('unknown option', 'unknown command', 'unexpected argument', 'is an option of', 'takes nothing after',
         'takes no value', 'cannot be combined with')


def words_of(line):
    """The words of a line of a shell, without a comment; [] if it is incomplete."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.commenters = '#'
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # a quotation that goes on in the next line
        return []


def commands_in(line):
    """The words after each `redlock` of a line, up to the end of its command."""
    words = words_of(line)
    for index, word in enumerate(words):
        if word != 'redlock' and not word.endswith('/redlock'):
            continue
        command = list(itertools.takewhile(lambda one: not OPERATORS.fullmatch(one), words[index + 1:]))
        if command and re.fullmatch(r'[a-z-]+', command[0]):
            yield command


def error_of(tool, command):
    """What the tool says of a wrong command line, or None."""
    env = {'PATH': os.environ['PATH'], 'REDLOCK_CONFIG': '/dev/null/none'}
    done = subprocess.run([tool, *command], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=30, check=False)
    return done.stderr.strip() if any(said in done.stderr for said in WRONG) else None


def of_blocks(page):
    """(line, command) of the blocks that are not run."""
    for block in page.blocks:
        if block.kind == 'not run':
            text = re.sub(r'\\\n', ' ', '\n'.join(re.sub(r'^Exec\w*=', '', line) for line in block.lines))
            for line in text.splitlines():
                for command in commands_in(line):
                    yield block.line, command


def of_prose(page):
    """(line, command) of the prose, where a placeholder is in upper case or in brackets."""
    for number, line in page.prose:
        for span in SPAN.findall(line):
            if '...' not in span and '[' not in span:
                for command in commands_in(span):
                    yield number, command


def errors(page, tool):
    """Of one page, a line each."""
    found = []
    for line, command in [*of_blocks(page), *of_prose(page)]:
        error = error_of(tool, command)
        if error:
            found.append(f'line {line}: redlock {" ".join(command)}: {error}')
    return found
