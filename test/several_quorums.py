#!/usr/bin/env python3
"""Computes the tables of docs/primitives.md: several_quorums.py SOURCE_ROOT

The placement of resources is written here once more, in another language than the library's. The
documentation must show what comes out.
"""

import math
import pathlib
import sys

MASK = (1 << 64) - 1


def placement_weight(quorum, resource):
    h = 0xcbf29ce484222325
    for byte in quorum.encode() + b'\0' + resource.encode():
        h = ((h ^ byte) * 0x100000001b3) & MASK
    h = (h + 0x9e3779b97f4a7c15) & MASK
    h = ((h ^ (h >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    h = ((h ^ (h >> 27)) * 0x94d049bb133111eb) & MASK
    return h ^ (h >> 31)


def place(quorums, resource):
    return min(quorums, key=lambda name: (-placement_weight(name, resource), name))


def rows(head, body):
    line = lambda cells: '| ' + ' | '.join(str(cell) for cell in cells) + ' |'
    return '\n'.join([line(head), '|' + '---|' * len(head)] + [line(one) for one in body]) + '\n'


def weights():
    quorums = ['east', 'west', 'north']
    return rows(
        ['resource'] + quorums + ['home'],
        [[f'`{resource}`']
         + [f'`{placement_weight(name, resource):016x}`' for name in quorums]
         + [place(quorums, resource)]
         for resource in ('jobs/nightly', 'orders/4711', 'straße', 'a', 'b')])


def down(masters, p):
    """The probability that a quorum has no majority, if each master is away for the share p of the time."""
    needed = masters // 2 + 1
    return sum(math.comb(masters, up) * (1 - p) ** up * p ** (masters - up)
               for up in range(needed))


def availability():
    body = []
    for p in (0.01, 0.001):
        for masters in (3, 5):
            one = down(masters, p)
            body.append([f'{p:.1%}'.replace('%', ' %'), masters, f'{one:.1e}']
                        + [f'{-math.expm1(k * math.log1p(-one)):.1e}' for k in (2, 4, 16)])
    return rows(['one master away', 'masters (N)', 'a given resource', 'any of 2 quorums',
                 'any of 4', 'any of 16'], body)


TABLES = {'weights': weights, 'availability': availability}


def main():
    page = pathlib.Path(sys.argv[1], 'docs', 'primitives.md')
    text = page.read_text(encoding='utf-8')
    for name, table in TABLES.items():
        if f'<!-- {name} -->\n{table()}<!-- end -->' not in text:
            sys.exit(f'{page} does not show this as its table {name}:\n{table()}')


if __name__ == '__main__':
    main()
