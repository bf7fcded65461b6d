"""Makes mutants of the Lua in the headers of lib/core: of each the whole text of the script.

A parser of the part of Lua 5.1 that scripts use; what it does not know it refuses.
"""

import hashlib
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
ENDS = {'end', 'else', 'elseif', 'until', ''}


class NotKnown(Exception):
    pass


class Script:
    """One script. After parsing, `changes` has (kind, old, new, from, to, the text that goes there)."""

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
        self.relations = {}  # (from, to) of a relation -> its negation among the changes
        self.block()
        if self.peek():
            raise NotKnown(self.peek())

    # --- Tokens

    def peek(self, ahead=0):
        return self.tokens[min(self.i + ahead, len(self.tokens) - 1)][1]

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

    def accept(self, text):
        if self.peek() == text:
            self.i += 1
            return True
        return False

    def change(self, kind, start, end, new, shown=None):
        """`shown`: what surrounds it, (from, to)."""
        first, last = shown or (start, end)
        old = self.text[first:last]
        became = self.text[first:start] + new + self.text[end:last]
        self.changes.append((kind, old, became, start, end, new))

    # --- Statements

    def block(self):
        while self.peek() not in ENDS:
            self.statement()
            self.accept(';')

    def condition(self, keyword):
        start = self.start()
        self.expression()
        end = self.done()
        self.relations.pop((start, end), None)  # it is negated here
        shown = self.text[start:end]
        self.changes.append(('condition', f'{keyword} {shown}', f'{keyword} not ({shown})', start, end, f'not ({shown})'))

    def statement(self):
        text = self.peek()
        if text == 'if':
            self.take()
            self.condition('if')
            self.take('then')
            self.block()
            while self.peek() == 'elseif':
                self.take()
                self.condition('elseif')
                self.take('then')
                self.block()
            if self.accept('else'):
                self.block()
            self.take('end')
        elif text == 'for':
            self.take()
            while self.peek() not in ('=', 'in'):
                self.take()
            self.take()
            self.expressions()
            self.take('do')
            self.block()
            self.take('end')
        elif text == 'while':
            self.take()
            self.condition('while')
            self.take('do')
            self.block()
            self.take('end')
        elif text == 'local' and self.peek(1) == 'function':
            self.take()
            self.take()
            self.take()
            self.function()
        elif text == 'local':
            self.take()
            self.take()
            while self.accept(','):
                self.take()
            if self.accept('='):
                self.expressions()
        elif text == 'return':
            self.take()
            start = self.start()
            if self.peek() not in ENDS and self.peek() != ';':
                self.expressions()
            if self.text[start : self.done()] in ('true', 'false'):
                other = 'false' if self.text[start : self.done()] == 'true' else 'true'
                self.change('return', start, self.done(), other)
        elif text == 'break':
            self.take()
        elif text in ('repeat', 'function', 'goto'):
            raise NotKnown(text)
        else:
            start = self.start()
            self.suffixed()
            kind = 'call'
            if self.peek() in (',', '='):
                kind = 'assignment'
                while self.accept(','):
                    self.suffixed()
                self.take('=')
                self.expressions()
            shown = self.text[start : self.done()]
            self.changes.append((kind, shown, 'removed', start, self.done(), ''))

    def function(self):
        self.take('(')
        while not self.accept(')'):
            self.take()
        self.block()
        self.take('end')

    # --- Expressions

    def expressions(self):
        first, start = len(self.changes), self.start()
        self.expression()
        while self.accept(','):
            self.expression()
        self.widen(first, start)

    def expression(self, limit=0):
        start = self.start()
        if self.peek() in ('not', '-', '#'):
            self.take()
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
                self.relations[whole] = (at, after, opposite)
                # Flags are texts: '0' and '1'.
                digit = re.fullmatch(r"'(\d)'", self.text[begins : self.done()])
                if digit and operator in ('==', '~='):
                    self.change('constant', begins, self.done(), f"'{int(digit[1]) + 1}'", whole)
            elif operator in ('+', '-'):
                self.change('arithmetic', at, after, '-' if operator == '+' else '+', whole)
            elif operator in ('and', 'or'):
                self.change('logic', at, after, 'or' if operator == 'and' else 'and', whole)

    def operand(self):
        kind, text = self.kind(), self.peek()
        if kind == 'number':
            at = self.start()
            self.take()
            value = int(text, 0)
            for step in (1, -1):
                if value + step >= 0:
                    self.change('constant', at, self.done(), str(value + step))
        elif kind == 'string' or text in ('nil', 'true', 'false', '...'):
            self.take()
        elif text == '{':
            first, start = len(self.changes), self.start()
            self.take()
            while not self.accept('}'):
                if self.peek(1) == '=':
                    self.take()
                    self.take()
                self.expression()
                self.accept(',')
            self.widen(first, start)
        elif text == 'function':
            self.take()
            self.function()
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
                self.take()
                first = len(self.changes)
                self.expression()
                self.take(']')
                self.widen(first, start)
            elif self.peek() == '(':
                callee = self.text[start : self.start()]
                self.arguments(start)
                if callee in ('math.min', 'math.max'):
                    at = start + len('math.')
                    other = 'max' if callee.endswith('min') else 'min'
                    self.change('min and max', at, at + 3, other, (start, self.done()))
            elif self.kind() == 'string':
                self.take()
            else:
                break

    def widen(self, first, start):
        """A number alone says little: the changes since `first` are shown with what they index."""
        for i in range(first, len(self.changes)):
            kind, old, _, at, end, new = self.changes[i]
            if kind == 'constant' and old.isdigit():
                shown = (start, self.done())
                self.changes[i] = (
                    kind,
                    self.text[shown[0] : shown[1]],
                    self.text[shown[0] : at] + new + self.text[end : shown[1]],
                    at, end, new,
                )  # fmt: skip

    def arguments(self, start):
        first = len(self.changes)
        self.take('(')
        parts = []
        while not self.accept(')'):
            at = self.start()
            self.expression()
            parts.append((at, self.done()))
            self.accept(',')
        self.widen(first, start)
        name = re.compile(r'[A-Za-z_]\w*(\.\w+|\[[\w+ ]+\])*$')
        for (a, b), (c, d) in zip(parts, parts[1:]):
            one, other = self.text[a:b], self.text[c:d]
            if one != other and name.match(one) and name.match(other):
                self.change('arguments', a, d, other + self.text[b:c] + one, (start, self.done()))


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
        changes = script.changes
        for (start, end), (at, after, opposite) in script.relations.items():
            changes.append(
                ('relation', text[start:end], text[start:at] + opposite + text[after:end], at, after, opposite)
            )
        mutants = []
        for kind, old, new, at, end, replacement in sorted(changes, key=lambda one: (one[3], one[4])):
            made = Mutant(file, name, f'Lua {kind}', places[text.count('\n', 0, at)], old, new)
            made.text = script.text[:at] + replacement + script.text[end:]
            mutants.append(made)
        found.append((name, text, mutants))
    return found


def digest(text):
    return hashlib.sha1(text.encode()).hexdigest()
