"""The texts in sources: comments, and the strings in C++ that people read."""

import re

TOKEN = re.compile(r'''
    (?P<raw>R"(?P<delimiter>[^(\s]*)\((?P<inside>.*?)\)(?P=delimiter)") |
    (?P<string>"(?:[^"\\\n]|\\.)*") |
    (?P<character>'(?:[^'\\\n]|\\.)') |
    (?P<comment>//[^\n]*) |
    (?P<block>/\*.*?\*/) |
    (?P<directive>^[ ]*\#[ ]*(?:include|define|pragma|if|ifdef|ifndef|error)[^\n]*)
''', re.VERBOSE | re.DOTALL | re.MULTILINE)

# What is read as one word: code in a text.
CODE = re.compile(r'`[^`]*`|\b\w+=[\w$]+|\b[\w.]*(?:::|_)[\w:]*(?:\(\))?|\b\w+\(\)|@\w+(?:\{\w+\})?|\\\w+ ?|%[a-z]+|\{[^{}]*\}|<[^<>]*>|\S*/\S*')


def plain(text):
    return CODE.sub('CODE', text)


def comments(source):
    """(line, text) of each run of line comments, split at empty lines and at items of lists. Blocks of code and
    instructions to tools are left out."""
    found, previous, code = [], None, False
    for match in TOKEN.finditer(source):
        if not match['comment']:
            continue
        line = source.count('\n', 0, match.start()) + 1
        text = re.sub(r'^//[/!]?<?', '', match['comment']).strip()
        alone = not source[source.rfind('\n', 0, match.start()) + 1:match.start()].strip()
        if re.match(r'[@\\](?:end)?(?:code|verbatim)\b', text):
            code = not re.match(r'.end', text)
        if code or re.match(r'NOLINT|clang-format|[@\\](?:endcode|endverbatim|file)|---', text) or not re.search(r'\w', text):
            previous = None
            continue
        item = re.match(r'(?:[-*] |[@\\]\w+ )', text)
        row = re.match(r'\S+ {2,}\S', text)  # of a table
        text = text[item.end():] if item and text[0] in '-*' else text
        if alone and previous is not None and line == previous + 1 and not item and not row:
            found[-1][1] += ' ' + text
        else:
            found.append([line, text])
        previous = line if alone else None
    return [(line, plain(text)) for line, text in found]


def script_comments(source):
    """(line, text) of each paragraph of # comments and docstrings. What is indented further is usage, and left out."""
    found, previous, indent = [], None, None  # indent: that of the docstring, or None outside
    for number, line in enumerate(source.splitlines(), 1):
        stripped, more = line.strip(), len(line) - len(line.lstrip())
        quotes, alone = stripped.count('"""'), True
        if indent is not None or stripped.startswith('"""'):
            begins = indent is None
            indent = more if begins else indent
            text = stripped.replace('"""', '') if begins or more == indent else ''
            indent = None if quotes == (2 if begins else 1) else indent
        else:
            match = re.search(r'(?:^|\s)#(?!!)(?: (?! )(.*))?$', line)
            text, alone = match and match[1] or '', stripped.startswith('#')
        if not text:
            previous = None
        elif alone and previous == number - 1:
            found[-1][1] += ' ' + text
            previous = number
        else:
            found.append([number, text])
            previous = number if alone else None
    return [(line, plain(text)) for line, text in found]


def comments_of(path):
    """Those of a file, by its kind."""
    if path.suffix in ('.cpp', '.hpp', '.js'):
        return comments(path.read_text())
    if path.suffix in ('.py', '.yml', '.yaml', '.conf') or path.name == 'meson.build' or path.is_file() and path.read_bytes()[:2] == b'#!':
        return script_comments(path.read_text())
    return []


def messages(source):
    """(line, text) of each string of three words or more; those that the compiler joins are one."""
    found, end = [], None
    for match in TOKEN.finditer(source):
        if match['comment'] or match['block']:
            continue
        if not match['string']:
            end = None
            continue
        text = re.sub(r'\\n', '\n', match['string'][1:-1])
        text = re.sub(r'\\t', ' ', text).replace('\\"', '"').replace('\\\\', '\\')
        if end is not None and not re.sub(r'//[^\n]*', '', source[end:match.start()]).strip():
            found[-1][1] += text
        else:
            found.append([source.count('\n', 0, match.start()) + 1, text])
        end = match.end()
    for line, text in found:
        for part in re.split(r'\n(?=\s|\n|[-*] )', text):
            if len(re.findall(r'[a-z]{2,}', part)) >= 3 and ' ' in part:
                yield line, plain(' '.join(part.split()))


def messages_of(path):
    return messages(path.read_text()) if path.suffix in ('.cpp', '.hpp') else []
