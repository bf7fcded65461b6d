"""Makes mutants of C++, all of them at once: each place asks at run time whether its mutant is on.

This is not a compiler. It knows tokens, matching brackets, and what is a body of a function, a
statement or an operand. It relies on the layout by clang-format: a binary operator has space on both
sides, an angle bracket of a template has none before it.
What it makes and does not compile is found by the compiler, and left out (see tree.py).
"""

import bisect
import collections
import dataclasses
import re

from mutant import DROPPED, Mutant

TOKEN = re.compile(
    r'''
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<directive>^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)
  | (?P<string>(?:u8|[uUL])?R"(?P<tag>[^()\s]*)\(.*?\)(?P=tag)"|(?:u8|[uUL])?"(?:\\.|[^"\\])*"\w*)
  | (?P<char>'(?:\\.|[^'\\])+')
  | (?P<number>\.?\d(?:'?[\w.]|[eEpP][+-])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<mark><=>|<<=|>>=|->\*|\.\.\.|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
    ''',
    re.X | re.S | re.M,
)
INTEGER = re.compile(r"(0[xXbB])?[\d'a-fA-F]+?([uUlLzZ]*|h|min|s|ms|us|ns)$")
OPEN, CLOSE = '([{', ')]}'
PRECEDENCE = {
    '*': 12, '/': 12, '%': 12, '+': 11, '-': 11, '<<': 10, '>>': 10, '<=>': 9.5,
    '<': 9, '>': 9, '<=': 9, '>=': 9, '==': 8, '!=': 8, '&': 7, '^': 6, '|': 5, '&&': 4, '||': 3,
}  # fmt: skip
ASSIGNMENTS = {'=', '+=', '-=', '*=', '/=', '%=', '&=', '|=', '^=', '<<=', '>>='}
COMPARISONS = {  # name, with the limit moved, negated
    '<': ('less', '<=', '>='),
    '<=': ('less_equal', '<', '>'),
    '>': ('greater', '>=', '<='),
    '>=': ('greater_equal', '>', '<'),
    '==': ('equal', None, '!='),
    '!=': ('differ', None, '=='),
}
CHANGES = {'+': ('plus', '-'), '-': ('minus', '+'), '+=': ('add', '-='), '-=': ('subtract', '+=')}
CONTROL = {'if', 'while', 'for', 'switch', 'catch'}
NO_OPERAND = CONTROL | {'return', 'co_return', 'case', 'else', 'do', 'throw', 'co_await', 'co_yield', 'operator', 'new', 'delete'}
NO_EXPRESSION = {'auto', 'return', 'co_return', 'throw', 'break', 'continue'}  # no statement that may be removed begins so
LEFT_OUT = ('static_assert', 'assert', 'sizeof', 'alignas', 'alignof', 'decltype', 'requires', 'noexcept')


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    start: int
    line: int
    spaced: bool  # space before it
    match: int = -1  # the index of the other bracket


@dataclasses.dataclass
class Function:
    name: str
    begin: int  # the tokens between its braces, or of an initialiser
    end: int
    statements: bool = True


@dataclasses.dataclass
class Wrap:
    """Text before the token `first` and after the token `last`."""

    first: int
    last: int
    before: str
    after: str


@dataclasses.dataclass
class Site:
    mutants: list
    wraps: object  # of their numbers


DECISION = re.compile(r'(?P<no>!?)\bwrong::\w+\s*(?P<then>\|\||&&|.)\s*')


def without_decisions(text):
    """The protocol without the decisions that the simulator takes the wrong way, whose place and form
    lib/core/base/decisions.hpp tells. No line moves."""

    def closing(at, wanted):
        """Where `wanted` stands outside of what opens from `at` on."""
        opens, closes = (OPEN + '?', CLOSE + ':') if wanted == ':' else (OPEN, CLOSE)
        deep = 0
        while at < len(text):
            match = TOKEN.match(text, at)
            one = match[0] if match.lastgroup == 'mark' else ' '
            if deep == 0 and one == wanted:
                return at
            if deep == 0 and (one in CLOSE or (one == ';' and wanted != '}')):
                break
            deep += (one in opens) - (one in closes)
            at = match.end()
        raise ValueError('a decision is not written as lib/core/base/decisions.hpp tells')

    def cut(begin, end):
        return text[:begin] + '\n' * text.count('\n', begin, end) + text[end:]

    while found := DECISION.search(text):
        begin, before = found.start(), text[: found.start()]
        statement = re.search(r'\bif \($', before)
        inside = re.search(r'(\|\||&&|[?:=,]) \($', before)
        if statement and not found['no'] and found['then'] in ('&&', ')'):
            brace = closing(closing(begin, ')') + 1, '{')
            end = closing(brace + 1, '}') + 1
            text = cut(statement.start(), re.compile(r'( else )?').match(text, end).end())
        elif bool(found['no']) == (found['then'] == '&&') and found['then'] in ('||', '&&'):
            text = cut(begin, found.end())
        elif not found['no'] and found['then'] in ('?', '&&'):
            choice = found.end() if found['then'] == '?' else closing(begin, '?') + 1
            text = cut(begin, re.compile(r'\s*').match(text, closing(choice, ':') + 1).end())
        else:
            raise ValueError(f'a decision is not written as lib/core/base/decisions.hpp tells: {found[0]}')
        if inside:  # the brackets were for the decision
            end = closing(begin, ')')
            if re.match(r'\s*(\|\||&&|[:;,)])', text[end + 1 :]) and not re.search(r'\|\||[?]', text[begin:end]):
                text = text[: begin - 1] + text[begin:end] + text[end + 1 :]
    return text


class Source:
    """A file, its tokens, and the places at which it can be changed."""

    def __init__(self, name, text):
        self.name = name
        self.text = without_decisions(text)
        self.tokens = self.read()
        self.match_brackets()
        self.functions = []
        self.find_functions(0, len(self.tokens), '')
        self.sites = []
        for one in self.functions:
            FunctionBody(self, one).find()

    def read(self):
        tokens, space = [], True
        lines = [0] + [match.end() for match in re.finditer('\n', self.text)]
        at = 0
        while at < len(self.text):
            match = TOKEN.match(self.text, at)
            at = match.end()
            if match.lastgroup == 'space' or match['directive'] is not None:
                space = True
                continue
            kind = 'string' if match['string'] is not None else match.lastgroup
            tokens.append(
                Token(kind, match[0], match.start(), bisect.bisect(lines, match.start()), space)
            )
            space = False
        return tokens

    def match_brackets(self):
        stack = []
        for i, one in enumerate(self.tokens):
            before = self.tokens[i - 1] if i else None
            if one.text in OPEN:
                stack.append(i)
            elif one.text in CLOSE:
                while self.tokens[stack[-1]].text == '<':
                    self.tokens[stack.pop()].match = -1
                self.pair(stack.pop(), i)
            elif one.text == '<' and before and (
                before.text == 'template' or (before.kind == 'word' and not one.spaced)
            ) and before.text != 'operator':
                stack.append(i)
            elif one.text in ('>', '>>') and not one.spaced and stack:
                for _ in one.text:
                    if stack and self.tokens[stack[-1]].text == '<':
                        self.pair(stack.pop(), i)

    def pair(self, a, b):
        self.tokens[a].match = b
        self.tokens[b].match = a

    def word(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ''

    def show(self, first, last):
        """The tokens first..last (inclusive) on one line."""
        parts = []
        for i in range(first, last + 1):
            if parts and self.tokens[i].spaced and parts[-1] not in '([' and self.tokens[i].text not in ')]':
                parts.append(' ')
            parts.append(self.tokens[i].text)
        return ''.join(parts)

    def skip(self, i):
        """Over a whole bracket, if one opens here."""
        one = self.tokens[i]
        return one.match + 1 if one.match > i else i + 1

    # --- Which functions there are -------------------------------------------------------------

    def find_functions(self, i, end, owner):
        while i < end:
            i = self.declaration(i, end, owner)

    def declaration(self, i, end, owner):
        """One declaration of a namespace or class. Where the next begins."""
        begin, first_paren, name, assigned, words = i, -1, '', False, set()
        if self.word(i) in ('public', 'private', 'protected') and self.word(i + 1) == ':':
            return i + 2
        while i < end:
            one = self.tokens[i]
            if one.text == ';':
                if owner is not None and assigned and first_paren < 0 and not words & {'constexpr', 'using', 'static', 'enum'}:
                    self.initialiser(begin, i, owner)
                return i + 1
            words.add(one.text)
            if one.text == '=' and first_paren < 0:
                assigned = True
            if one.text == 'operator' and first_paren < 0:
                # Up to the parameters: `operator()(int)`, `operator bool()`.
                paren = i + 1
                while self.word(paren) != '(' or (paren == i + 1 and self.word(i + 2) == ')'):
                    paren += 2 if self.word(paren) == '(' else 1
                name, first_paren = self.show(i, paren - 1), paren
                i = self.skip(paren)
                continue
            if one.text == '(' and first_paren < 0 and not assigned and self.tokens[i - 1].kind == 'word' and self.word(i - 1) not in LEFT_OUT:
                first_paren = i
                name = self.name_before(i)
            if one.text == ':' and first_paren >= 0 and self.word(i - 1) != ':' and not assigned:
                i = self.constructor(i + 1, name, owner)
                continue
            if one.text == '{':
                inside = (i + 1, one.match)
                if 'enum' in words:
                    pass
                elif first_paren >= 0 and not assigned:
                    self.add_function(owner, name, *inside)
                    return one.match + 1
                elif 'namespace' in words or 'extern' in words:
                    self.find_functions(*inside, '')
                    return one.match + 1
                elif words & {'class', 'struct', 'union'} and not assigned:
                    key = next(at for at in range(begin, i) if self.word(at) in ('class', 'struct', 'union'))
                    self.find_functions(*inside, self.word(key + 1))
                    i = one.match + 1
                    continue
            i = self.skip(i)
        return i

    def add_function(self, owner, name, *where):
        self.functions.append(Function(f'{owner}::{name}' if owner and '::' not in name else name, *where))

    def name_before(self, paren):
        i = paren - 1
        while i >= 2 and self.word(i - 1) in ('::', '~'):
            i -= 1 if self.word(i - 1) == '~' else 2
        return self.show(i, paren - 1)

    def constructor(self, i, name, owner):
        """The initialisers after `:`. Returns where the body is."""
        begin = i
        while True:
            while self.word(i) not in '({':
                i = self.skip(i)
            i = self.skip(i)
            if self.word(i) != ',':
                self.add_function(owner, name, begin, i, False)
                return i
            i += 1

    def initialiser(self, begin, end, owner):
        """A member's, such as `int x = 5;`."""
        if self.word(end - 2) == '=' and self.tokens[end - 3].kind == 'word' and self.word(end - 3) not in ('const', 'noexcept', 'override', 'final'):
            self.add_function(owner, self.word(end - 3), begin, end, False)

    # --- What it becomes -----------------------------------------------------------------------

    def render(self, dropped):
        """The text with all mutants but those whose key is in `dropped`, and for each line of it
        which mutants are written there: [(column from, column to, mutant)]."""
        wraps = []
        for site in self.sites:
            numbers = [DROPPED if one is None or one.key in dropped else one.number for one in site.mutants]
            if any(number != DROPPED for number in numbers):
                wraps += [(wrap, site) for wrap in site.wraps(*numbers)]
        opening, closing = collections.defaultdict(list), collections.defaultdict(list)
        for wrap, site in sorted(wraps, key=lambda pair: (pair[0].first, -pair[0].last)):
            opening[wrap.first].append((wrap.before, site))
            closing[wrap.last].insert(0, (wrap.after, site))
        out, where = [], collections.defaultdict(list)
        line, column, at = 1, 1, 0

        def put(text, site=None):
            nonlocal line, column
            if site:
                for one in site.mutants:
                    if one is not None:
                        where[line].append((column, column + len(text), one))
            out.append(text)
            if '\n' in text:
                line += text.count('\n')
                column = len(text) - text.rindex('\n')
            else:
                column += len(text)

        for i, one in enumerate(self.tokens):
            put(self.text[at : one.start])
            for piece in opening[i]:
                put(*piece)
            put(one.text)
            at = one.start + len(one.text)
            for piece in closing[i]:
                put(*piece)
        put(self.text[at:])
        return ''.join(out), where

    @property
    def mutants(self):
        return [one for site in self.sites for one in site.mutants if one is not None]


class FunctionBody:
    """The places in one function."""

    def __init__(self, source, function):
        self.source = source
        self.tokens, self.word, self.skip, self.show = source.tokens, source.word, source.skip, source.show
        self.function = function
        self.braces = {}
        self.out = bytearray(len(source.tokens))  # tokens that are left as they are
        self.conditions = {}  # (first, last) -> what negating it says

    def site(self, wraps, *variants, at):
        """Variants are (kind, old, new), or None."""
        made = [
            variant and Mutant(self.source.name, self.function.name, variant[0], self.tokens[at].line, variant[1], variant[2])
            for variant in variants
        ]
        self.source.sites.append(Site(made, wraps))

    def find(self):
        begin, end = self.function.begin, self.function.end
        self.classify(begin, end)
        self.leave_out(begin, end)
        self.statements(begin, end)
        for i in range(begin, end):
            if self.braces.get(i) == 'lambda':
                self.statements(i + 1, self.tokens[i].match)
        for i in range(begin, end):
            if not self.out[i]:
                self.expression(i, begin, end)

    # --- Structure -----------------------------------------------------------------------------

    def classify(self, begin, end):
        """What the braces are: block, lambda or init."""
        stack = []
        for i in range(begin, end):
            if self.word(i) == '}' and self.tokens[i].kind == 'mark' and stack and self.tokens[i].match >= begin:
                stack.pop()
            if self.word(i) != '{' or self.tokens[i].kind != 'mark':
                continue
            kind = self.kind_of_brace(i, stack[-1] if stack else None)
            if not self.function.statements and not any(one == 'lambda' for one in [*stack, kind]):
                kind = 'init'
            self.braces[i] = kind
            stack.append(kind)

    def kind_of_brace(self, i, outer):
        before = self.word(i - 1)
        if before == ')':
            opens = self.tokens[i - 1].match
            if self.word(opens - 1) == ']':
                return 'lambda'
            return 'block' if self.word(opens - 1) in CONTROL | {'constexpr'} else 'init'
        if before in (']', 'mutable', 'noexcept'):
            return 'lambda'
        if outer == 'init':
            return 'init'
        if before in ('else', 'do', 'try', ';', '{', '}', ':') or i == self.function.begin:
            return 'block'
        # `[](int x) -> T {`
        at = i - 1
        while at > self.function.begin and (self.tokens[at].kind == 'word' or self.word(at) in ('::', '*', '&', '>')):
            at = self.tokens[at].match if self.word(at) == '>' and self.tokens[at].match >= 0 else at
            at -= 1
        if self.word(at) == '->' and self.word(at - 1) in (')', 'mutable', 'noexcept'):
            return 'lambda'
        return 'init'

    def cut(self, first, last):
        for i in range(first, last + 1):
            self.out[i] = 1

    def leave_out(self, begin, end):
        i = begin
        while i < end:
            one = self.tokens[i]
            if one.text == '<' and one.match > i:
                self.cut(i, one.match)
            elif one.text in LEFT_OUT and self.word(i + 1) == '(':
                self.cut(i, self.tokens[i + 1].match)
            elif one.text == 'requires' and self.word(i + 1) == '{':
                self.cut(i, self.tokens[i + 1].match)
            elif one.text == 'if' and self.word(i + 1) == 'constexpr':
                self.cut(i, self.tokens[i + 2].match)
            elif one.text in ('constexpr', 'using') and self.word(i - 1) != 'if':
                at = i
                while at < end and self.word(at) != ';':
                    at = self.skip(at)
                self.cut(i, at)
            elif one.text == 'case':
                at = i
                while self.word(at) != ':':
                    at += 1
                self.cut(i, at)
            elif one.text == '[' and one.match > i and self.is_capture_or_bound(i):
                self.cut(i, one.match)
            i += 1

    def is_capture_or_bound(self, i):
        before = self.tokens[i - 1]
        if before.kind != 'word' and before.text not in (')', ']'):
            return True  # captures of a lambda, a structured binding, or an attribute
        if before.text in ('return', 'auto'):
            return True
        # `char text[32];`
        return before.kind == 'word' and (self.tokens[i - 2].kind == 'word' and self.word(i - 2) not in NO_OPERAND)

    def ends_operand(self, i):
        one = self.tokens[i]
        if one.kind in ('number', 'string', 'char'):
            return True
        if one.kind == 'word':
            return one.text not in NO_OPERAND
        return one.text in (')', ']', '}') or (one.text in ('>', '>>') and one.match >= 0)

    def is_binary(self, i):
        one = self.tokens[i]
        return (
            one.kind == 'mark'
            and one.spaced
            and i + 1 < len(self.tokens)
            and self.tokens[i + 1].spaced
            and self.ends_operand(i - 1)
            and one.match < 0
            and self.word(i + 1) not in ('{', ';', 'noexcept', 'const', '=')
        )

    def left_of(self, i, precedence):
        """The first token of the operand that ends before token i."""
        at = i
        while at > self.function.begin:
            before = self.tokens[at - 1]
            if before.kind == 'mark':
                if before.text in CLOSE or (before.text in ('>', '>>') and before.match >= 0):
                    if before.text == '}' and self.braces.get(before.match) == 'block':
                        break
                    if 0 <= before.match < at - 1:
                        at = before.match
                        continue
                if before.text in OPEN or before.text in ';,?:' or before.text in ASSIGNMENTS:
                    break
                if before.text in PRECEDENCE and self.is_binary(at - 1) and PRECEDENCE[before.text] < precedence:
                    break
            elif before.text in NO_OPERAND and before.text not in ('new', 'delete', 'co_await'):
                break
            at -= 1
        return at

    def right_of(self, i, precedence):
        """The last token of the operand that begins after token i."""
        at = i + 1
        while at < self.function.end:
            one = self.tokens[at]
            if one.kind == 'mark' and at > i + 1:
                if one.text in CLOSE or one.text in ';,?:' or one.text in ASSIGNMENTS:
                    break
                if one.text in PRECEDENCE and self.is_binary(at) and PRECEDENCE[one.text] <= precedence:
                    break
            at = self.skip(at)
        return at - 1

    # --- Statements ----------------------------------------------------------------------------

    def statements(self, i, end):
        while i < end:
            i = self.statement(i, end)

    def statement(self, i, end):
        text = self.word(i)
        if text == '{' and self.braces.get(i) in ('block', None):
            self.statements(i + 1, self.tokens[i].match)
            return self.tokens[i].match + 1
        if text in ('case', 'default'):
            while self.word(i) != ':':
                i += 1
            return i + 1
        if text in ('else', 'do', 'try'):
            return i + 1
        if text in CONTROL:
            paren = i + 2 if self.word(i + 1) == 'constexpr' else i + 1
            if text in ('if', 'while'):
                self.condition(paren + 1, self.tokens[paren].match - 1, text)
            return self.tokens[paren].match + 1
        last = i
        while last < end and self.word(last) != ';':
            last = self.skip(last)
        if last < end and not self.out[i]:
            self.simple(i, last)
        return last + 1

    def condition(self, first, last, keyword):
        if self.out[first]:
            return
        at, declares = first, False
        while at <= last:
            if self.word(at) == ';':
                first, declares = at + 1, False
            elif self.word(at) == '=':
                declares = True
            at = self.skip(at)
        if not declares:
            self.negate(first, last, f'{keyword} (%)')

    def negate(self, first, last, form):
        shown = self.show(first, last)
        self.conditions[first, last] = True
        self.site(
            lambda number: [Wrap(first, last, f'mutants::flip(0x{number:08x}U, static_cast<bool>(', '))')],
            ('condition', form.replace('%', shown), form.replace('%', f'!({shown})')),
            at=first,
        )

    def simple(self, first, semicolon):
        """`x = y;`, `f(x);`, `++x;`, which may be left out."""
        if self.word(first) in NO_EXPRESSION or first == semicolon:
            return
        kind, at = 'call', first
        if self.word(first) in ('++', '--') or self.word(semicolon - 1) in ('++', '--'):
            kind = 'step'
        while at < semicolon:
            one, after = self.tokens[at], self.tokens[at + 1]
            if one.text in ASSIGNMENTS:
                kind = 'assignment'
                break
            # Two names in a row: a declaration. So are `T& x`, `T* x`, `T<U> x`.
            if at > first and one.kind == 'word' and (
                self.tokens[at - 1].kind == 'word'
                or (self.word(at - 1) in ('&', '*', '&&', '>', '>>') and not self.tokens[at - 1].spaced and one.spaced)
            ):
                return
            if one.text == '?' and after is not None:
                break
            at = self.skip(at)
        shown = self.show(first, semicolon)
        self.site(
            lambda number: [Wrap(first, semicolon, f'{{ if (!mutants::on(0x{number:08x}U)) {{ ', ' } }')],
            (kind, shown, 'removed'),
            at=first,
        )

    # --- Expressions ---------------------------------------------------------------------------

    def expression(self, i, begin, end):
        one = self.tokens[i]
        if one.kind == 'number':
            self.constant(i, begin, end)
        elif one.kind == 'word':
            self.named(i, begin, end)
        elif one.text in OPEN and one.match > i:
            self.arguments(i)
        elif one.text == '?':
            self.choice(i)
        elif one.text in ('+=', '-='):
            self.change(i, self.show(self.left_of(i, 0), i), self.show(i + 1, self.right_of(i, 0)))
        elif self.is_binary(i):
            if one.text in COMPARISONS:
                self.comparison(i)
            elif one.text in ('+', '-'):
                if 'string' not in (self.tokens[i - 1].kind, self.tokens[i + 1].kind):
                    first, last = self.left_of(i, 11), self.right_of(i, 11)
                    self.change(i, self.show(first, i), self.show(i + 1, last))
            elif one.text in ('&&', '||'):
                self.logic(i)

    def comparison(self, i):
        text = self.word(i)
        name, boundary, opposite = COMPARISONS[text]
        first, last = self.left_of(i, PRECEDENCE[text]), self.right_of(i, PRECEDENCE[text])
        left, right = self.show(first, i - 1), self.show(i + 1, last)
        old = f'{left} {text} {right}'
        # The whole of a condition is negated there.
        whole = (first, last) in self.conditions
        self.site(
            lambda b, o: [Wrap(i, i, '', f' mutants::{name}(0x{b:08x}U, 0x{o:08x}U) {text}')],
            boundary and ('relation', old, f'{left} {boundary} {right}'),
            None if whole else ('relation', old, f'{left} {opposite} {right}'),
            at=i,
        )

    def change(self, i, left, right):
        text = self.word(i)
        name, instead = CHANGES[text]
        old = f'{left} {right}'
        new = f'{left[: len(left) - len(text)]}{instead} {right}'
        self.site(
            lambda number: [Wrap(i, i, '', f' mutants::{name}<0x{number:08x}U>() {text}')],
            ('arithmetic', old, new),
            at=i,
        )

    def logic(self, i):
        text = self.word(i)
        other = '||' if text == '&&' else '&&'
        precedence = PRECEDENCE[text]
        first, last = self.left_of(i, precedence), self.right_of(i, precedence)
        left, right = self.show(first, i - 1), self.show(i + 1, last)

        def wraps(number):  # by De Morgan: both are negated, and the result
            on = f'mutants::on(0x{number:08x}U)'
            return [
                Wrap(first, last, '((', f') != {on})'),
                Wrap(first, i - 1, '(static_cast<bool>(', f') != {on})'),
                Wrap(i + 1, last, '(static_cast<bool>(', f') != {on})'),
            ]

        self.site(wraps, ('logic', f'{left} {text} {right}', f'{left} {other} {right}'), at=i)

    def choice(self, i):
        self.negate(self.left_of(i, 3), i - 1, '% ?')

    def named(self, i, begin, end):
        text = self.word(i)
        if text in ('true', 'false') and self.word(i - 1) == 'return' and self.word(i + 1) == ';':
            other = 'false' if text == 'true' else 'true'
            self.site(
                lambda number: [Wrap(i, i, f'mutants::flip(0x{number:08x}U, ', ')')],
                ('return', f'return {text};', f'return {other};'),
                at=i,
            )
        elif text in ('min', 'max') and self.word(i - 1) == '::' and self.word(i - 2) == 'std':
            typed = self.word(i + 1) == '<'
            paren = self.skip(i + 1) if typed else i + 1
            if self.word(paren) != '(' or paren + 1 == self.tokens[paren].match:
                return
            name, other = ('least', 'max') if text == 'min' else ('most', 'min')
            rest = self.show(i + 1, self.tokens[paren].match)
            begins, ends = ('', ', ') if typed else ('>', '')
            self.site(
                lambda number: [Wrap(i - 2, i + typed, f'mutants::{name}<0x{number:08x}U{begins}/*', f'*/{ends}')],
                ('min and max', f'std::{text}{rest}', f'std::{other}{rest}'),
                at=i,
            )

    def constant(self, i, begin, end):
        text = self.word(i)
        found = INTEGER.match(text)
        if not found:
            return
        first, last = self.surroundings(i, begin, end)
        fits = (
            self.word(i - 1) == '='
            and self.word(i - 3) == '.'
            and self.word(i + 1) in ',}'
        )
        off = 'fitting_off' if fits else 'off'
        before, after = self.show(first, i)[: -len(text)], self.show(i, last)[len(text) :]
        if self.tokens[i].spaced and i > first and not before.endswith(' '):
            before += ' '
        variants = []
        unit = re.sub(r'^(0[xX][\da-fA-F\']+|[\d\']+)', '', text)
        value = int(text[: len(text) - len(unit)].replace("'", ''), 0) if not re.fullmatch(r"0[\d']+\w*", text) else 0
        for step in (1, -1):
            if value + step < 0:
                variants.append(None)
            else:
                variants.append(('constant', f'{before}{text}{after}', f'{before}{value + step}{unit}{after}'))
        self.site(
            lambda up, down: [Wrap(i, i, f'mutants::{off}(0x{up:08x}U, 0x{down:08x}U, ', ')')],
            *variants,
            at=i,
        )

    def surroundings(self, i, begin, end):
        """The expression around a token, up to the next comma or bracket."""
        first = i
        while first > begin:
            before = self.tokens[first - 1]
            if before.text in CLOSE and before.kind == 'mark' and begin <= before.match:
                if before.text == '}' and self.braces.get(before.match) != 'init':
                    break
                first = before.match
            elif before.kind == 'mark' and (before.text in ';,' or before.text in '({'):
                break
            elif before.text == '[' and first - 1 > begin:
                first -= 2
            else:
                first -= 1
        last = i
        while last + 1 < end:
            after = self.tokens[last + 1]
            if after.kind == 'mark' and (after.text in ';,' or after.text in ')}'):
                break
            if after.text == '{' and self.braces.get(last + 1) != 'init':
                break
            last = self.skip(last + 1) - 1
        return first, last

    def arguments(self, i):
        """Two that stand next to each other and are names may change places."""
        before = self.tokens[i - 1]
        calls = before.kind == 'word' and before.text not in CONTROL | {'return', 'decltype'}
        if not (calls or (before.text == '>' and before.match >= 0)) or self.word(i) == '[':
            return
        parts, first, at = [], i + 1, i + 1
        while at <= self.tokens[i].match:
            if self.word(at) == ',' or at == self.tokens[i].match:
                parts.append((first, at - 1))
                first = at + 1
            at = self.skip(at)
        for one, other in zip(parts, parts[1:]):
            a, b = self.show(*one), self.show(*other)
            if a != b and self.is_name(*one) and self.is_name(*other):
                self.swap(i, one, other, a, b)

    def is_name(self, first, last):
        return first <= last and all(
            (self.tokens[i].kind == 'word' and not self.out[i] and self.word(i) not in ('true', 'false', 'nullptr', 'this'))
            if (i - first) % 2 == 0
            else self.word(i) in ('.', '->', '::')
            for i in range(first, last + 1)
        ) and (last - first) % 2 == 0

    def swap(self, i, one, other, a, b):
        called = self.show(self.left_of(i, 13), i - 1)
        self.site(
            lambda number: [
                Wrap(*one, f'mutants::either<0x{number:08x}U>(', f', {b})'),
                Wrap(*other, f'mutants::either<0x{number:08x}U>(', f', {a})'),
            ],
            ('arguments', f'{called}(.. {a}, {b} ..)', f'{called}(.. {b}, {a} ..)'),
            at=one[0],
        )
