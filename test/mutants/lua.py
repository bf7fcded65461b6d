"""Makes mutants of the Lua in the headers of lib/core: of each the whole text of the script.

A parser of the part of Lua 5.1 that scripts use; what it does not know it refuses.
"""

import dataclasses
import re

from mutant import Mutant

# A script is its parts, one below the other: lines, or a part of `namespace lua`, perhaps with what '$' stands for.
PART = re.compile(r'R"\((?P<lines>.*?)\)"|lua::(?P<shared>\w+)(?:\("(?P<argument>[^"]*)"\))?', re.S)
SHARED = re.compile(r'inline constexpr script_part (\w+)\{\s*R"\((.*?)\)"\};', re.S)
ONE = r'(?:R"\(.*?\)"|lua::\w+(?:\("[^"]*"\))?)'
SCRIPT = re.compile(
    rf'inline constexpr (?:script (?P<name>\w+)\{{|std::string_view (?P<bare>\w+) =)\s*(?P<parts>{ONE}(?:,\s*{ONE})*)', re.S
)
DECLARED = re.compile(r'inline constexpr (?=script \w+\{|std::string_view \w+ =\s*R")')
TOKEN = re.compile(
    r'''(?P<space>\s+|--[^\n]*)|(?P<number>0[xX][\da-fA-F]+|\d+(?:\.\d+)?)|(?P<string>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")'''
    r'''|(?P<word>[A-Za-z_]\w*)|(?P<mark>\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^\#<>=(){}\[\];:,.])'''
)
BINARY = {'or': (1, 1), 'and': (2, 2), '<': (3, 3), '>': (3, 3), '<=': (3, 3), '>=': (3, 3), '~=': (3, 3), '==': (3, 3),
          '..': (5, 4), '+': (6, 6), '-': (6, 6), '*': (7, 7), '/': (7, 7), '%': (7, 7), '^': (10, 9)}  # fmt: skip
UNARY = 8
RELATIONS = {'<': ('<=', '>='), '<=': ('<', '>'), '>': ('>=', '<='), '>=': ('>', '<'), '==': (None, '~='), '~=': (None, '==')}
MARKS = {'then', 'do', 'else', 'end', 'break', ';'}  # between statements
NAMES = re.compile(r'[A-Za-z_]\w*(\.\w+|\[[\w+ ]+\])*$')


class NotKnown(Exception):
    pass


@dataclasses.dataclass
class Change:
    """`new` in place of the text from `start` to `end`. A name shows it from `first` to `last`, after `keyword`."""

    kind: str
    start: int
    end: int
    new: str
    first: int
    last: int
    keyword: str = ''


class Script:
    """One script, and its `changes`. It is known to be Lua, so which block a statement is in does not matter."""

    def __init__(self, text):
        self.text = text
        self.tokens = []  # (kind, text, start, end)
        at = 0
        while at < len(text):
            match = TOKEN.match(text, at)
            if not match:
                raise NotKnown(text[at : at + 20])
            if match.lastgroup != 'space':
                self.tokens.append((match.lastgroup, match[0], at, match.end()))
            at = match.end()
        self.tokens.append(('end', '', len(text), len(text)))
        self.i = 0
        self.changes = []
        self.negations = {}  # (from, to) of a relation -> what negates it
        while self.peek():
            self.statement()
        self.changes += self.negations.values()

    # --- Tokens

    def peek(self):
        return self.tokens[self.i][1]

    def kind(self):
        return self.tokens[self.i][0]

    def start(self):
        return self.tokens[self.i][2]

    def done(self):
        """Where the last token ended."""
        return self.tokens[self.i - 1][3]

    def take(self, *expected):
        text = self.peek()
        if expected and text not in expected:
            raise NotKnown(f'{text} in place of {expected}')
        self.i += 1
        return text

    def accept(self, *expected):
        return self.peek() in expected and bool(self.take())

    def change(self, kind, start, end, new, shown=None, keyword=''):
        """`shown`: what surrounds it, (from, to)."""
        self.changes.append(Change(kind, start, end, new, *(shown or (start, end)), keyword))

    def shown(self, one):
        """A change before and after."""
        before, after = self.text[one.first : one.start], self.text[one.end : one.last]
        old, new = before + self.text[one.start : one.end] + after, before + one.new + after
        return (f'{one.keyword} {old}', f'{one.keyword} {new}') if one.keyword else (old, new or 'removed')

    # --- Statements

    def statement(self):
        text, start = self.peek(), self.start()
        if self.accept(*MARKS):
            return
        if self.accept('if', 'elseif', 'while'):
            start = self.start()
            self.expression()
            self.negations.pop((start, self.done()), None)  # it is negated here
            self.change('condition', start, self.done(), f'not ({self.text[start : self.done()]})', keyword=text)
        elif self.accept('local', 'for'):
            self.take()
            while self.accept(','):
                self.take()
            if self.accept('=', 'in'):
                self.expressions()
        elif self.accept('return'):
            if self.peek() not in MARKS | {''}:
                self.expressions()
        elif text in ('repeat', 'until', 'function', 'goto'):
            raise NotKnown(text)
        else:
            kind = 'call'
            self.suffixed()
            if self.peek() in (',', '='):
                kind = 'assignment'
                while self.accept(','):
                    self.suffixed()
                self.take('=')
                self.expressions()
            self.change(kind, start, self.done(), '')

    # --- Expressions

    def expressions(self):
        first, start = len(self.changes), self.start()
        self.expression()
        while self.accept(','):
            self.expression()
        self.widen(first, start)

    def expression(self, limit=0):
        start = self.start()
        if self.accept('not', '-', '#'):
            self.expression(UNARY)
        else:
            self.operand()
        while self.peek() in BINARY and BINARY[self.peek()][0] > limit:
            at, after = self.tokens[self.i][2], self.tokens[self.i][3]
            operator = self.take()
            begins = self.start()
            self.expression(BINARY[operator][1])
            whole = (start, self.done())
            if operator in RELATIONS:
                boundary, opposite = RELATIONS[operator]
                if boundary:
                    self.change('relation', at, after, boundary, whole)
                self.negations[whole] = Change('relation', at, after, opposite, *whole)
                # Flags are texts: '0' and '1'.
                digit = re.fullmatch(r"'(\d)'", self.text[begins : self.done()])
                if digit and operator in ('==', '~='):
                    self.change('constant', begins, self.done(), f"'{int(digit[1]) + 1}'", whole)
            elif operator in ('+', '-'):
                self.change('arithmetic', at, after, '-' if operator == '+' else '+', whole)
            elif operator in ('and', 'or'):
                self.change('logic', at, after, 'or' if operator == 'and' else 'and', whole)

    def operand(self):
        start, text = self.start(), self.peek()
        if self.kind() == 'number':
            self.take()
            for value in (int(text, 0) + 1, int(text, 0) - 1):
                if value >= 0:
                    self.change('constant', start, self.done(), str(value))
        elif self.kind() == 'string' or text in ('nil', 'true', 'false', '...'):
            self.take()
        elif text == '{':
            self.listed('}', start)
        else:
            self.suffixed()

    def suffixed(self):
        start = self.start()
        if self.accept('('):
            self.expression()
            self.take(')')
        elif self.kind() == 'word':
            self.take()
        else:
            raise NotKnown(self.peek())
        while True:
            if self.accept('.'):
                self.take()
            elif self.peek() == '[':
                self.listed(']', start)
            elif self.peek() == '(':
                callee = self.text[start : self.start()]
                parts = self.listed(')', start)
                for (a, b), (c, d) in zip(parts, parts[1:]):
                    one, other = self.text[a:b], self.text[c:d]
                    if one != other and NAMES.match(one) and NAMES.match(other):
                        self.change('arguments', a, d, other + self.text[b:c] + one, (start, self.done()))
                if callee in ('math.min', 'math.max'):
                    at = start + len('math.')
                    other = 'max' if callee.endswith('min') else 'min'
                    self.change('min and max', at, at + 3, other, (start, self.done()))
            else:
                break

    def listed(self, closing, start):
        """What is between brackets: (from, to) of each. A number in it is shown from `start` on."""
        first, parts = len(self.changes), []
        self.take()
        while not self.accept(closing):
            at = self.start()
            self.expression()
            parts.append((at, self.done()))
            self.accept(',')
        self.widen(first, start)
        return parts

    def widen(self, first, start):
        """A number alone says little: the changes since `first` are shown with what they index."""
        for one in self.changes[first:]:
            if one.kind == 'constant' and self.text[one.first : one.last].isdigit():
                one.first, one.last = start, self.done()


def shared_parts(sources):
    """Name -> lines, of the parts in `namespace lua`."""
    return dict(part for source in sources for part in SHARED.findall(source))


def composed(source, match, shared):
    """The text of a script, and for each of its lines the line of the source."""
    lines, places = [], []
    for part in PART.finditer(source, match.start('parts'), match.end('parts')):
        at = source.count('\n', 0, part.start())
        if part['shared']:
            text = shared[part['shared']]
            text = text.replace('$', part['argument']) if part['argument'] else text
        else:
            text = part['lines']
        lines += text.split('\n')
        places += [at + 1 + (0 if part['shared'] else i) for i in range(text.count('\n') + 1)]
    return '\n'.join(lines), places


def find(file, source, shared):
    """[(name, text, its mutants)] of the scripts in a header."""
    found = []
    for match in SCRIPT.finditer(source):
        name = match['name'] or match['bare']
        text, places = composed(source, match, shared)
        script = Script(text)
        mutants = []
        for one in sorted(script.changes, key=lambda one: (one.start, one.end)):
            old, new = script.shown(one)
            made = Mutant(file, name, f'Lua {one.kind}', places[text.count('\n', 0, one.start)], old, new)
            made.text = text[: one.start] + one.new + text[one.end :]
            mutants.append(made)
        found.append((name, text, mutants))
    return found
