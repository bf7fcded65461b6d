#!/usr/bin/env python3
"""Draws a run of the demo as demo.svg: record.py PROGRAM [ARGUMENTS...], for example build/test/soak/soak --screen

The program runs on a terminal. The picture shows the first holder, the holder after each fault, and the verdict:
masters are squares. It does not move, so that every viewer shows it. Each run differs, so no test compares it.
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
LEFT, SIDE, GAP, STEP, TOP, WIDTH = 14, 26, 8, 44, 62, 600
LEGEND = [('key', "has the holder's key"), ('free', 'does not have it'), ('new', 'in quarantine'), ('away', 'killed or hung')]

STYLE = '''\
  svg { font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
  text { fill: #1b1f24; } .soft { fill: #57606a; } .b { font-weight: 600; } .panel { fill: #fff; stroke: #d0d7de; } .good { fill: #1a7f37; } .bad { fill: #c62828; }
  .key { fill: #7fc8f8; } .free { fill: #eaeef2; } .new { fill: #f4b860; } .away { fill: #f3a6a0; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .soft { fill: #9da7b3; } .panel { fill: #161b22; stroke: #30363d; } .good { fill: #56d364; } .bad { fill: #ff7b72; }
    .key { fill: #1f6feb; } .free { fill: #30363d; } .new { fill: #9e6a03; } .away { fill: #8e2a25; }
  }'''


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
    found.append('verdict' + text.rpartition('verdict')[2])
    return [re.sub(r'\x1b\[[?\d]*[A-Za-z]|\r', '', screen).strip('\n').split('\n') for screen in found[1:]]


class Scene:
    """What one screen shows: the seconds, the state of each master, the holder, the last fault."""

    def __init__(self, lines):
        text = '\n'.join(lines)
        self.second = re.search(r'([\d.]+) s$', lines[0])[1]
        states = dict(re.findall(r'^([A-E]) \S+ (.*)$', text, re.MULTILINE))
        lock = re.search(r'^soak +(worker \d+|-) +(\S(?: \S){4})', text, re.MULTILINE)
        self.holder = lock[1] if lock and lock[1] != '-' else None
        marks = lock[2].split() if lock else '-----'
        self.masters = [(name, 'new' if 'quarantined' in state else 'free' if state == 'votes' and mark != '#' else
                         'key' if state == 'votes' else 'away') for (name, state), mark in zip(sorted(states.items()), marks)]
        faults = re.findall(r'FAULT: (?:master|worker) (.*): (\w+ \w+)', text)
        self.fault = faults[-1] if faults else None


def scenes(shown):
    """The first screen with a holder, and after each fault the first one with a holder that the fault did not hit."""
    found = {}
    for scene in map(Scene, shown[:-1]):
        if scene.holder and (not scene.fault or scene.fault[1] != scene.holder):
            found.setdefault(scene.fault, scene)
    return list(found.values())


def drawing(shown):
    picked = scenes(shown)
    verdict = '\n'.join(shown[-1])
    count = lambda pattern: re.search(pattern, verdict)[1]
    height = TOP + STEP * len(picked) + 58
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
           'aria-labelledby="demo-title">',
           '<title id="demo-title">A run of the demo: masters are killed and hung, a worker is frozen, and no two hold a lock at once</title>',
           f'<style>\n{STYLE}\n</style>', f'<rect class="panel" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>',
           f'<text x="{LEFT}" y="28" class="b" font-size="15">A run of the demo: six workers want one lock on five masters</text>']

    def text(x, y, words, kind=''):
        out.append(f'<text x="{x}" y="{y}"' + (f' class="{kind}"' if kind else '') + f'>{html.escape(words)}</text>')

    for row, scene in enumerate(picked):
        y = TOP + STEP * row
        text(LEFT, y + 4, f'{scene.second} s', 'soft')
        for index, (name, state) in enumerate(scene.masters):
            x = 72 + (SIDE + GAP) * index
            out.append(f'<rect class="{state}" x="{x}" y="{y - SIDE / 2:g}" width="{SIDE}" height="{SIDE}" rx="3"/>')
            text(x + 8, y + 5, name)
        x = 72 + (SIDE + GAP) * 5 + 14
        if scene.fault:
            text(x, y - 4, f'fault: {scene.fault[1]} {scene.fault[0]}', 'bad')
        text(x, y + 13 if scene.fault else y + 4, f'{"next " if row else ""}holder: {scene.holder}', 'b')
    y = TOP + STEP * len(picked) + 4
    text(LEFT, y, f'overlaps {count("OVERLAPS +([0-9]+)")}', 'b good')
    text(LEFT + 92, y, f'{count("acquisitions +([0-9]+)")} acquisitions, {count("LOST UPDATES +([0-9]+)")} lost updates, '
         f'{count("stale writes refused +([0-9]+)")} stale write refused')
    x, y = LEFT, y + 36
    seen = {state for scene in picked for _, state in scene.masters}
    for state, words in LEGEND:
        if state not in seen:
            continue
        out.append(f'<rect class="{state}" x="{x}" y="{y - 11}" width="14" height="14" rx="2"/>')
        text(x + 20, y, words, 'soft')
        x += 40 + 7 * len(words)
    return '\n'.join([*out, '</svg>']) + '\n'


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith('-'):
        sys.exit(__doc__)
    (pathlib.Path(__file__).resolve().parent / 'demo.svg').write_text(drawing(screens(record(sys.argv[1:]))))


if __name__ == '__main__':
    main()
