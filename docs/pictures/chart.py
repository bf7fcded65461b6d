#!/usr/bin/env python3
"""Draws peers.svg, the chart of the README, from the table "Peers" of docs/benchmarks.md: chart.py [--check]

With --check it only reports, in TAP, whether the picture is that of the table.
"""

import html
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
TITLE = 'Locks acquired and released per second'
NOTE = '64 in flight on five masters, no contention, one process, two cores shared by all'
LEFT, WIDTH, RIGHT, BAR, STEP, TOP = 196, 420, 84, 20, 30, 58

STYLE = '''\
  svg { font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
  text { fill: #1b1f24; } .soft { fill: #57606a; } .panel { fill: #fff; stroke: #d0d7de; } .ours { fill: #c62828; } .theirs { fill: #9da7b3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .soft { fill: #9da7b3; } .panel { fill: #161b22; stroke: #30363d; } .ours { fill: #e5534b; } .theirs { fill: #6e7681; }
  }'''


def rows(page):
    """(client, pairs per second at K = 64), the fastest first, of the tables that have that column."""
    part = page.split('## Peers', 1)[1].split('\n## ', 1)[0]
    found = {}
    for table in re.findall(r'(?:^\|.*\n)+', part, re.MULTILINE):
        lines = [[cell.strip() for cell in line.strip('|').split('|')] for line in table.splitlines()]
        if 'pairs/s' in lines[0]:
            column = len(lines[0]) - 1 - lines[0][::-1].index('pairs/s')
            for row in lines[2:]:
                found.setdefault(row[0], int(row[column].replace(',', '')))
    return sorted(found.items(), key=lambda one: -one[1])


def chart(table):
    height, total = TOP + STEP * len(table) + 30, LEFT + WIDTH + RIGHT
    largest = max(value for _, value in table)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" width="{total}" height="{height}" role="img" '
           'aria-labelledby="peers-title peers-desc">',
           f'<title id="peers-title">{TITLE}</title>',
           f'<desc id="peers-desc">{html.escape("; ".join(f"{name}: {value:,}" for name, value in table))}. {NOTE}.</desc>',
           f'<style>\n{STYLE}\n</style>',
           f'<rect class="panel" x="0.5" y="0.5" width="{total - 1}" height="{height - 1}" rx="6"/>',
           f'<text x="12" y="24" font-weight="600" font-size="15">{TITLE}</text>']
    for i, (name, value) in enumerate(table):
        y, width = TOP + STEP * i - 14, round(WIDTH * value / largest, 1)
        kind = 'ours' if re.match('redlock', name) else 'theirs'
        out += [f'<text x="12" y="{y + 15}">{html.escape(name)}</text>',
                f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{width}" height="{BAR}" rx="3"/>',
                f'<text x="{LEFT + width + 6:.1f}" y="{y + 15}">{value:,}</text>']
    out += [f'<text class="soft" x="12" y="{height - 14}">{NOTE}</text>', '</svg>']
    return '\n'.join(out) + '\n'


def main():
    drawn = chart(rows((HERE.parent / 'benchmarks.md').read_text()))
    path = HERE / 'peers.svg'
    if '--check' not in sys.argv:
        path.write_text(drawn)
        return
    same = path.read_text() == drawn
    print(f'1..1\n{"ok" if same else "not ok"} 1 - peers.svg is that of docs/benchmarks.md; docs/pictures/chart.py draws it')
    sys.exit(not same)


if __name__ == '__main__':
    main()
