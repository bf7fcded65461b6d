"""What a mutant is, and how it is called.

A mutant is named by its file, the function and the expression before and after, with a number only
where that occurs more than once in the function. So it keeps its name when code moves, and what was
found out about it holds for as long as the code that it changes is the same.
"""

import collections
import dataclasses
import hashlib

NONE, DROPPED, TRACING = 0, 1, 0xFFFFFFFF  # as in mutants.hpp
LONGEST = 110  # of an expression in a name


@dataclasses.dataclass
class Mutant:
    file: str  # under lib
    function: str  # or the name of a script
    kind: str
    line: int
    old: str
    new: str
    key: str = ''
    number: int = NONE
    text: str = ''  # of a script: the whole of it, with the change


def short(text):
    """On one line, and not too long; a digest distinguishes what is left out."""
    text = ' '.join(text.split())
    if len(text) <= LONGEST:
        return text
    digest = hashlib.sha1(text.encode()).hexdigest()[:6]
    half = LONGEST // 2 - 6
    return f'{text[:half]} <{digest}> {text[-half:]}'


def give_names(mutants):
    """In the order of the code, so that what occurs twice is counted the same way each time."""
    seen = collections.Counter()
    taken = {NONE, DROPPED, TRACING}
    for one in mutants:
        name = f'{one.file}: {one.function}: {short(one.old)} -> {short(one.new)}'
        seen[name] += 1
        one.key = name if seen[name] == 1 else f'{name} #{seen[name]}'
        digest = hashlib.sha1(one.key.encode()).digest()
        one.number = int.from_bytes(digest[:4], 'big')
        while one.number in taken:
            one.number = (one.number + 1) % TRACING
        taken.add(one.number)
    return mutants


def rank(seed, one):
    """Those of the smallest rank are the sample: most of it stays when code is added elsewhere."""
    return hashlib.sha1(f'{seed} {one.key}'.encode()).hexdigest()
