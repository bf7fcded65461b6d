#!/usr/bin/env python3
"""Whether scripts/mutants makes what it should: selftest.py SOURCE_ROOT

On toy sources: which mutants there are, that they keep their names when code moves, and that what is
written compiles in every position.
"""

import pathlib
import sys
import tempfile

import cpp
import equivalent
import lua
import mutant
import run

TOY = '''
#include <algorithm>
namespace toy {
static_assert(1 < 2);
constexpr int most = 7;
constexpr int twice(int a) { return a + a; }
struct box {
    int size = 3;
    bool full(int now) const noexcept { return false; }
    explicit box(int a) : size(a + 1) {}
};
template <typename T>
std::vector<T> f(const box& one, int a, int b, bool c) {
    int x = 0;
    if (a < b && (c || a == b)) {
        x = std::min(a, b);
        g(a, b);
    }
    if (const int y = h(a); y != 0) {
        ++x;
    }
    const auto add = [&](int by) { x += by; };
    switch (a) {
    case 1:
        return {};
    }
    return c ? all(x) : none();
}
} // namespace toy
'''

TOY_MUTANTS = {
    'box::size: int size = 3 -> int size = 4',
    'box::size: int size = 3 -> int size = 2',
    'box::full: return false; -> return true;',
    'box::box: a + 1 -> a - 1',
    'twice: a + a -> a - a',
    'f: int x = 0 -> int x = 1',
    'f: if (a < b && (c || a == b)) -> if (!(a < b && (c || a == b)))',
    'f: a < b -> a <= b',
    'f: a < b -> a >= b',
    'f: a < b && (c || a == b) -> a < b || (c || a == b)',
    'f: c || a == b -> c && a == b',
    'f: a == b -> a != b',
    'f: x = std::min(a, b); -> removed',
    'f: std::min(a, b) -> std::max(a, b)',
    'f: g(a, b); -> removed',
    'f: g(.. a, b ..) -> g(.. b, a ..)',
    'f: if (y != 0) -> if (!(y != 0))',
    'f: ++x; -> removed',
    'f: x += by; -> removed',
    'f: x += by -> x -= by',
    'f: c ? -> !(c) ?',
}

TOY_LUA = '''inline constexpr script_part read{
    R"(local a = redis.call('GET', $))"};
inline constexpr script toy{
    lua::read("KEYS[1]"),
    R"(if a ~= ARGV[1] and ARGV[2] == '0' then redis.call('DEL', KEYS[1]) return {0, 1} end
return math.max(a, 2))"};
'''

TOY_LUA_MUTANTS = {
    "if a ~= ARGV[1] and ARGV[2] == '0' -> if not (a ~= ARGV[1] and ARGV[2] == '0')",
    "a ~= ARGV[1] and ARGV[2] == '0' -> a ~= ARGV[1] or ARGV[2] == '0'",
    'a ~= ARGV[1] -> a == ARGV[1]',
    "ARGV[2] == '0' -> ARGV[2] ~= '0'",
    "ARGV[2] == '0' -> ARGV[2] == '1'",
    "redis.call('DEL', KEYS[1]) -> removed",
    '{0, 1} -> {1, 1}',
    '{0, 1} -> {0, 2}',
    'math.max(a, 2) -> math.min(a, 2)',
    'math.max(a, 2) -> math.max(a, 3)',
    'KEYS[1] -> KEYS[2]',
}

DECISIONS = {  # with what the simulator takes the wrong way, and without
    'if (wrong::a || b) {}': 'if (b) {}',
    'if (!wrong::a && b && c) {}': 'if (b && c) {}',
    'if (a || (!wrong::b && c)) {}': 'if (a || c) {}',
    'x = f(wrong::a ? 1 : g(2), 3);': 'x = f(g(2), 3);',
    'x = wrong::a && b ? c ? 1 : 2 : d ? 3 : 4;': 'x = d ? 3 : 4;',
    'x = wrong::a || wrong::b ? 0 : c;': 'x = c;',
    'x = a ? (wrong::b ? 1 : 2) : 3;': 'x = a ? 2 : 3;',
    'x = a - (wrong::b ? 1 : c + 2);': 'x = a - (c + 2);',
    'wrong::a ? void() : f(b);': 'f(b);',
    'if (wrong::a) {\n    for (auto& one : all) { f(one); }\n}\ng();': '\n\n\ng();',
    'if (wrong::a && b) { f(); }\ng();': '\ng();',
    'if (wrong::a && b) { f(); } else if (c) { g(); }': 'if (c) { g(); }',
}
WRITTEN_OTHERWISE = ('x = wrong::a && b; y = c ? d : e;', 'x = a && wrong::b;', 'if (!wrong::a) { f(); }', 'x = !wrong::a ? 1 : 2;')

failures = []


def check(condition, what):
    if not condition:
        failures.append(what)


def keys(text):
    return [one.key for one in mutant.give_names(cpp.Source('toy.cpp', text).mutants)]


def check_cpp():
    made = {key.removeprefix('toy.cpp: ') for key in keys(TOY)}
    for wanted in TOY_MUTANTS:
        check(any(key == wanted or key.replace('toy::', '') == wanted for key in made), f'no mutant: {wanted}')
    for key in made:
        for never in ('1 < 2', 'most', 'case'):
            check(never not in key, f'this is evaluated by the compiler: {key}')


def check_names():
    before = keys(TOY)
    moved = keys(TOY.replace('\nstruct box', '\n// moved\n\nint other(int b) { return b - 1; }\nstruct box'))
    check(set(before) <= set(moved), f'lost by moving: {set(before) - set(moved)}')
    wrapped = keys(TOY.replace('g(a, b);', 'g(\n            a, b);'))
    check(before == wrapped, 'names depend on line breaks')
    twice = keys(TOY.replace('++x;', '++x;\n        ++x;'))
    check(any(key.endswith('++x; -> removed #2') for key in twice), 'what occurs twice has no number')
    numbers = [one.number for one in mutant.give_names(cpp.Source('toy.cpp', TOY).mutants)]
    check(len(set(numbers)) == len(numbers), 'a number is used twice')


def check_rendering():
    source = cpp.Source('toy.cpp', TOY)
    mutant.give_names(source.mutants)
    text, where = source.render(set())
    check(text.count('\n') == TOY.count('\n'), 'lines move')
    check('case 1:' in text and 'constexpr int most = 7;' in text, 'what the compiler needs is changed')
    one = next(one for one in source.mutants if one.old == '++x;')
    check(f'0x{one.number:08x}U' in text, 'a mutant is not in the text')
    check(any(one is span[2] for span in where[one.line]), 'a mutant is not where it should be')
    text, _ = source.render({one.key})
    check(f'0x{one.number:08x}U' not in text, 'a dropped mutant is in the text')
    text, _ = source.render({one.key for one in source.mutants})
    check(text == TOY, 'without mutants it is not the original')


def check_decisions():
    for text, wanted in DECISIONS.items():
        found = cpp.without_decisions(text)
        check(found.split() == wanted.split() and found.count('\n') == text.count('\n'), f'{text} became {found}')
    for text in WRITTEN_OTHERWISE:
        try:
            check(False, f'{text} became {cpp.without_decisions(text)}')
        except ValueError:
            pass


def check_lua():
    (found,) = lua.find('toy.hpp', TOY_LUA, lua.shared_parts([TOY_LUA]))
    name, text, mutants = found
    check(name == 'toy', f'the script is called {name}')
    check(text.startswith("local a = redis.call('GET', KEYS[1])\nif a"), f'it is {text}')
    lines = {one.line for one in mutants}
    check(lines == {4, 5, 6}, f'its mutants are on the lines {lines}')
    made = {f'{one.old} -> {one.new}' for one in mutants}
    for wanted in TOY_LUA_MUTANTS:
        check(wanted in made, f'no mutant of the script: {wanted}')
    for one in mutants:
        check(one.text != text, f'changes nothing: {one.old} -> {one.new}')
        try:
            lua.Script(one.text)
        except lua.NotKnown as unknown:
            failures.append(f'no Lua any more: {one.text}: {unknown}')


def check_list():
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as out:
        path = pathlib.Path(out.name)
        path.write_text('# a comment\na: b -> c\n    because\n    of this\n\nd: e -> f\n    so\n')
        check(equivalent.read(path) == {'a: b -> c': 'because of this', 'd: e -> f': 'so'}, 'the list is misread')
        for wrong in ('a: b -> c\n', 'a: b -> c\nd: e -> f\n    so\n', '    why\n', 'a\n    x\na\n    y\n'):
            path.write_text(wrong)
            try:
                equivalent.read(path)
                failures.append(f'this list is accepted: {wrong!r}')
            except equivalent.Malformed:
                pass


class ToyCoverage:
    """Cases, which a process runs in this order."""

    state = 'toy'
    cases = {name: {'seconds': 0} for name in ('a', 'b & c', 'd', 'e', 'f', 'g')} | {'slow': {'seconds': 9}}
    program_of = dict.fromkeys(cases, 'unit') | {'g': 'net'}

    def of(self, _):
        return list(self.cases), []


def toy_process(command, _processor, **_environment):
    """Of `unit`, "b & c" fails, "d" ends the process, "e" hangs. "net" ends before its first case."""
    listed = [line.strip('"') for line in pathlib.Path(command[2]).read_text().splitlines()]
    ends = {'b & c': ('false', ''), 'd': ('false', 'crashes (SIGABRT)'), 'e': (None, 'hangs')}
    if command[0] == 'net':
        return run.Ended(-6, 0, '', 'crashes (SIGABRT)')
    output = ''
    for name in listed:
        good, why = ends.get(name, ('true', ''))
        output += '<TestCase name="' + name.replace('&', '&amp;') + '" line="1">'
        output += f'<OverallResult success="{good}"/></TestCase>' if good else ''
        if why:
            return run.Ended(-6, 0, output, why)
    return run.Ended(0, 0, output, '')


def check_matrix():
    with tempfile.TemporaryDirectory() as place:
        toy = run.Matrix(ToyCoverage(), pathlib.Path(place) / 'matrix.jsonl', 1, toy_process)
        one = mutant.give_names(cpp.Source('toy.cpp', TOY).mutants)[0]
        found = toy.row(one)
        check(found['cases'] == ['b & c', 'd', 'e', 'g'], f'these cases fail: {found["cases"]}')
        again = run.Matrix(ToyCoverage(), pathlib.Path(place) / 'matrix.jsonl', 1, None)
        check(again.row(one) == found, 'a row of the matrix is not kept')
        path = pathlib.Path(place) / 'toy.cpp'
        path.write_text('\n' * 9)
        places = {'a': (path, 2), 'b': (path, 3), 'c': (path, 7)}
        check(run.lengths(places) == {'a': 1, 'b': 4, 'c': 3}, f'lines of cases: {run.lengths(places)}')
    rows = [['a'], ['a', 'b', 'c'], ['b', 'c', 'd'], ['c', 'd', 'e'], ['a', 'c']]
    costs = {'a': 9, 'b': 9, 'c': 1, 'd': 2, 'e': 5}
    check(run.chosen_cases(rows, costs) == (['a'], ['c', 'd']), f'chosen: {run.chosen_cases(rows, costs)}')


def check_project(root):
    """Every file is understood, and each script."""
    paths = sorted((root / 'lib/core').rglob('*.?pp'))
    shared = lua.shared_parts(path.read_text() for path in paths)
    count = 0
    for path in paths:
        text = path.read_text()
        source = cpp.Source(path.name, text)
        mutant.give_names(source.mutants)
        rendered, _ = source.render({one.key for one in source.mutants})
        check(rendered == cpp.without_decisions(text), f'{path.name} is not read right')
        try:
            count += len(lua.find(path.name, text, shared))
        except lua.NotKnown as unknown:
            failures.append(f'{path.name}: a script is not understood: {unknown}')
    check(count >= 20, f'{count} scripts are found')
    equivalent.read(root / 'test/mutants/equivalent.txt')


def main(root):
    check_cpp()
    check_names()
    check_rendering()
    check_decisions()
    check_lua()
    check_list()
    check_matrix()
    check_project(pathlib.Path(root))
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
