#!/usr/bin/env python3
"""Records the demo as demo.svg: record.py PROGRAM [ARGUMENTS...], for example build/test/soak/soak --screen

The program runs on a terminal. The picture shows its screen once a second, then the verdict.
Each run differs, so no test compares the picture.
"""

import fcntl
import html
import os
import pathlib
import pty
import re
import struct
import sys
import termios
import time

ROWS, COLUMNS = 29, 106
CHARACTER, LINE, MARGIN = 7.25, 16, 14
END_S = 8  # for which the last screen stays
COLOURS = {'1': 'b', '2': 'soft', '31': 'red', '32': 'green', '33': 'yellow', '36': 'blue'}

STYLE = '''\
  svg { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
  text { fill: #1b1f24; white-space: pre; } .panel { fill: #fff; stroke: #d0d7de; } .b { font-weight: 600; } .soft { fill: #8c959f; }
  .red { fill: #c62828; } .green { fill: #1a7f37; } .yellow { fill: #9a6700; } .blue { fill: #0969da; } .f { visibility: hidden; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .panel { fill: #161b22; stroke: #30363d; } .soft { fill: #6e7681; }
    .red { fill: #ff7b72; } .green { fill: #56d364; } .yellow { fill: #e3b341; } .blue { fill: #79c0ff; }
  }
  @media (prefers-reduced-motion: reduce) { .f { animation: none !important; } .end { visibility: visible; } }'''


def record(command):
    """(second, text) of each piece that the program wrote to its terminal."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(command[0], command, os.environ | {'TERM': 'xterm-256color'})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', ROWS, COLUMNS, 0, 0))
    found, start = [], time.monotonic()
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # EIO: the program has ended
            break
        found.append((time.monotonic() - start, piece.decode()))
    if os.waitpid(child, 0)[1] != 0:
        sys.exit('the program failed')
    return found


def screens(pieces):
    """The lines of the screen at each second, and those of the verdict. The demo repaints its whole screen."""
    found, text = [], ''
    for second, piece in pieces:
        text += piece
        painted = text.split('\x1b[H')[:-1]
        if painted and second >= len(found):
            found.append(painted[-1])
    found.append('\x1b[1mverdict' + text.rpartition('verdict')[2])
    return [[re.sub(r'\x1b\[(?!\d*m)[?\d]*[A-Za-z]|\r', '', line) for line in screen.strip('\r\n').split('\n')]
            for screen in found[1:]]


def spans(line):
    """The line with its colours: every other part of the split is a code, 0 for none."""
    out, kind = '', None
    for index, part in enumerate(re.split(r'\x1b\[(\d*)m', line)):
        if index % 2:
            kind = COLOURS.get(part)
        elif part:
            text = html.escape(part)
            out += f'<tspan class="{kind}">{text}</tspan>' if kind else text
    return out


def drawing(shown):
    width, height = round(COLUMNS * CHARACTER + 2 * MARGIN), ROWS * LINE + 2 * MARGIN
    total = len(shown) - 1 + END_S
    changes = {}  # (from, until): lines
    for row in range(ROWS):
        begin = 0
        for now in range(1, len(shown) + 1):
            lines = [shown[i][row] if row < len(shown[i]) else '' for i in (begin, min(now, len(shown) - 1))]
            if now == len(shown) or lines[0] != lines[1]:
                until = now if now < len(shown) else total
                if lines[0].strip():
                    changes.setdefault((begin, until), []).append((row, lines[0]))
                begin = now
    lengths = sorted({until - begin for begin, until in changes})
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
           'aria-labelledby="demo-title">',
           '<title id="demo-title">A run of the demo: masters are killed and hung, a worker is frozen, and no two hold a lock at once</title>',
           f'<style>\n{STYLE}']
    out += [f'  @keyframes k{n} {{ 0% {{ visibility: visible; }} {100 * n / total + 0.001:.3f}% {{ visibility: hidden; }} }}' for n in lengths]
    out += ['</style>', f'<rect class="panel" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>']
    for (begin, until), lines in sorted(changes.items()):
        end = ' end' if until == total else ''
        out.append(f'<g class="f{end}" style="animation: k{until - begin} {total}s step-end {begin}s infinite">')
        out += [f'<text x="{MARGIN}" y="{MARGIN + LINE * row + 12}" xml:space="preserve">{spans(line)}</text>' for row, line in lines]
        out.append('</g>')
    return '\n'.join([*out, '</svg>']) + '\n'


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith('-'):
        sys.exit(__doc__)
    (pathlib.Path(__file__).resolve().parent / 'demo.svg').write_text(drawing(screens(record(sys.argv[1:]))))


if __name__ == '__main__':
    main()
