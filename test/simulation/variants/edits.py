"""What a variant is made of.

An edit names a file of lib/core and a text that occurs in it exactly once: when the code moves on,
the generator stops, and the table is mended rather than left to rot. `%ON` in a new text stands
for "this variant is on".
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Edit:
    file: str
    old: str  # what is replaced; empty in an insertion
    before: str  # what must stand in front of it, and stays
    after: str  # what must stand behind it, and stays
    new: str


def either(file, old, wrong, before='', after=''):
    """The expression `old`, or `wrong` while the variant is on."""
    return Edit(file, old, before, after, f'(%ON ? {wrong} : {old})')


def instead(file, old, new, before='', after=''):
    """`new` whether or not the variant is on: it says itself when."""
    return Edit(file, old, before, after, new)


def at(file, before='', after='', new=''):
    """Text between `before` and `after`: fields, or code that says itself when."""
    return Edit(file, '', before, after, new)


def when(file, statements, before='', after=''):
    """Statements between `before` and `after` that are executed while the variant is on."""
    return Edit(file, '', before, after, f'if (%ON) {{ {statements} }}\n')


@dataclasses.dataclass(frozen=True)
class Script:
    """Another text of a script: its name, and pairs of what is in it once and what is there
    instead."""

    name: str
    changes: tuple


def script(name, *changes):
    return Script(name, changes)


@dataclasses.dataclass(frozen=True)
class Variant:
    number: int  # in the list of the protocol's known bugs
    name: str
    sentence: str  # what is wrong
    profile: str  # in which it is known to die
    first: int  # seed
    seeds: int  # within so many it must die
    edits: tuple = ()
    scripts: tuple = ()
    misuse: bool = False  # of the library, not in it: a `mistake` of the simulator of that name
