#!/usr/bin/env python3
"""Draws the timelines of docs/algorithm.md: draw.py PROGRAM [--check]

PROGRAM is the built `timelines`. Writes one SVG for each of its runs next to this file; with --check it only
says, in TAP, whether the pictures that are there are those.
"""

import difflib
import html
import pathlib
import re
import subprocess
import sys

PICTURES = ['acquire', 'rollback', 'loss', 'fenced']

LEFT, WIDTH, RIGHT = 82, 600, 28  # of the names, of the time, after it
LETTER = 6.9  # the width of one in a label, roughly
LABEL = 17  # the height of one line of labels
BAR = 16
BARS = ['due', 'held', 'waits', 'paused', 'key-a', 'key-b', 'hung', 'fence']
LEGEND = {'held': 'held() is true', 'waits': 'waits', 'due': 'without the removal', 'paused': 'the process stands still', 'key-a': "A's key is there",
          'key-b': "B's key is there", 'hung': 'the master hangs', 'fence': 'has seen token b'}

STYLE = '''\
  svg { font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
  text { fill: #1b1f24; } .soft { fill: #57606a; } .axis { stroke: #8c959f; } .row { stroke: #d0d7de; }
  .panel { fill: #fff; stroke: #d0d7de; }
  .held { fill: #2da44e; } .waits { fill: #9da7b3; } .due { fill: none; stroke: #57a6dd; stroke-dasharray: 3 3; } .key-a { fill: #7fc8f8; } .key-b { fill: #f4b860; } .paused { fill: url(#stripes); }
  .hung { fill: url(#stripes); } .fence { fill: #c8a2e8; } .stripes { stroke: #57606a; }
  .ask { stroke: #57606a; } .yes { stroke: #1a7f37; } .no { stroke: #cf222e; } .undo { stroke: #bc4c00; stroke-dasharray: 4 3; }
  .mark { stroke: #57606a; } .span { stroke: #57606a; } .head-ask { fill: #57606a; } .head-yes { fill: #1a7f37; }
  .head-no { fill: #cf222e; } .head-undo { fill: #bc4c00; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .soft { fill: #9da7b3; } .axis { stroke: #6e7681; } .row { stroke: #30363d; }
    .panel { fill: #161b22; stroke: #30363d; }
    .held { fill: #2ea043; } .waits { fill: #6e7681; } .due { stroke: #1f6feb; } .key-a { fill: #1f6feb; } .key-b { fill: #9e6a03; } .fence { fill: #8957e5; } .stripes { stroke: #adbac7; }
    .ask { stroke: #9da7b3; } .yes { stroke: #3fb950; } .no { stroke: #ff7b72; } .undo { stroke: #f0883e; } .mark { stroke: #9da7b3; }
    .span { stroke: #9da7b3; } .head-ask { fill: #9da7b3; } .head-yes { fill: #3fb950; } .head-no { fill: #ff7b72; }
    .head-undo { fill: #f0883e; }
  }'''


class Run:
    """What the program printed."""

    def __init__(self, text):
        self.rows, self.bars, self.lines, self.marks, self.spans = [], [], [], [], []
        for line in text.splitlines():
            kind, _, rest = line.partition(' ')
            words = rest.split('|')
            if kind == 'row':
                self.rows.append(rest)
            elif kind == 'bar':
                self.bars.append((words[0], float(words[1]), float(words[2]), words[3]))
            elif kind == 'line':
                self.lines.append((words[0], float(words[1]), words[2], float(words[3]), words[4]))
            elif kind == 'mark':
                self.marks.append((words[0], float(words[1]), words[2]))
            elif kind == 'span':
                self.spans.append((words[0], float(words[1]), float(words[2]), words[3]))
            elif kind == 'time':
                self.begin, self.end = map(float, words)
            else:
                setattr(self, kind, rest)  # title, desc


def number(value):
    return f'{value:.1f}'.rstrip('0').rstrip('.')


class Drawing:
    def __init__(self, name, run):
        self.name, self.run, self.out = name, run, []
        self.place_rows()

    def x(self, moment):
        share = (moment - self.run.begin) / (self.run.end - self.run.begin)
        return LEFT + WIDTH * min(max(share, 0), 1)

    def place_rows(self):
        """Each row is as high as its labels need; those of marks stand above the bar, of spans below."""
        self.middle, self.levels = {}, {}
        y = 44
        for row in self.run.rows:
            taken = []  # of each level the labels: where they begin and end
            # From the last to the first, as the line of a mark goes up next to the labels after it.
            for mark in sorted((mark for mark in self.run.marks if mark[0] == row), reverse=True):
                start = self.start(mark)
                end = start + LETTER * len(mark[2])
                level = next((i for i, labels in enumerate(taken)
                              if all(end + 8 < other or other_end + 8 < start for other, other_end in labels)),
                             len(taken))
                if level == len(taken):
                    taken.append([])
                taken[level].append((start, end))
                self.levels[mark] = level
            y += 8 + LABEL * len(taken)
            self.middle[row] = y + BAR / 2
            y += BAR + (LABEL + 6) * sum(1 for span in self.run.spans if span[0] == row) + 6
        self.axis = y + 6
        self.run.bars = [bar for bar in self.run.bars if bar[0] in self.middle]
        kinds = {bar[3] for bar in self.run.bars}
        self.legend = [kind for kind in BARS if kind in kinds]
        self.height = self.axis + 48 + 22

    def start(self, mark):
        """Where its label begins: after the moment, or before it where the picture ends or a line comes from above."""
        width = LETTER * len(mark[2])
        at = self.x(mark[1]) + 4
        above = self.run.rows[:self.run.rows.index(mark[0])]
        crossed = any(one in above and other == mark[0] and at < self.x(end) < at + width
                      for one, _, other, end, _ in self.run.lines)
        return at if at + width < LEFT + WIDTH + RIGHT and not crossed else self.x(mark[1]) - 4 - width

    def add(self, text):
        self.out.append(text)

    def line(self, x1, y1, x2, y2, kind, head=False):
        marker = f' marker-end="url(#{self.name}-{kind})"' if head else ''
        self.add(f'<line class="{kind}" x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"{marker}/>')

    def text(self, x, y, words, more=''):
        self.add(f'<text x="{number(x)}" y="{number(y)}"{more}>{html.escape(words)}</text>')

    def draw(self):
        run, total = self.run, LEFT + WIDTH + RIGHT
        self.add(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {number(self.height)}" '
                 f'width="{total}" height="{number(self.height)}" role="img" aria-labelledby="{self.name}-title {self.name}-desc">')
        self.add(f'<title id="{self.name}-title">{html.escape(run.title)}</title>')
        self.add(f'<desc id="{self.name}-desc">{html.escape(run.desc)}</desc>')
        self.add(f'<style>\n{STYLE}\n</style>')
        self.add('<defs>')
        self.add('<pattern id="stripes" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
                 '<line class="stripes" x1="0" y1="0" x2="0" y2="6" stroke-width="3"/></pattern>')
        for kind in ('ask', 'yes', 'no', 'undo'):
            self.add(f'<marker id="{self.name}-{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                     f'orient="auto"><path class="head-{kind}" d="M0 0L8 4L0 8z"/></marker>')
        self.add('</defs>')
        self.add(f'<rect class="panel" x="0.5" y="0.5" width="{total - 1}" height="{number(self.height - 1)}" rx="6"/>')
        self.text(12, 24, run.title, ' font-weight="600" font-size="15"')
        for row in run.rows:
            self.text(12, self.middle[row] + 4.5, row)
            self.line(LEFT, self.middle[row], LEFT + WIDTH, self.middle[row], 'row')
        for bar in sorted(run.bars, key=lambda bar: BARS.index(bar[3])):
            self.draw_bar(*bar)
        for one, begin, other, end, kind in run.lines:
            down = self.middle[other] > self.middle[one]
            shift = BAR / 2 if down else -BAR / 2
            self.line(self.x(begin), self.middle[one] + shift, self.x(end), self.middle[other] - shift, kind, True)
        for mark in run.marks:
            self.draw_mark(mark)
        self.draw_spans()
        self.draw_axis()
        self.draw_legend()
        self.add('</svg>')
        return '\n'.join(self.out) + '\n'

    def draw_bar(self, row, begin, end, kind):
        height = {'paused': BAR / 2, 'hung': BAR / 2, 'waits': 4}.get(kind, BAR)
        self.add(f'<rect class="{kind}" x="{number(self.x(begin))}" y="{number(self.middle[row] - height / 2)}" '
                 f'width="{number(max(self.x(end) - self.x(begin), 1))}" height="{number(height)}" rx="2"/>')

    def draw_mark(self, mark):
        row, at, words = mark
        y = self.middle[row] - BAR / 2
        label = y - 5 - LABEL * self.levels[mark]
        self.line(self.x(at), label - 10, self.x(at), self.middle[row] + BAR / 2, 'mark')
        self.text(self.start(mark), label, words)

    def draw_spans(self):
        for index, (row, begin, end, words) in enumerate(self.run.spans):
            y = self.middle[row] + BAR / 2 + 9 + (LABEL + 6) * index
            for x in (begin, end):
                self.line(self.x(x), y - 5, self.x(x), y + 5, 'span')
            self.line(self.x(begin), y, self.x(end), y, 'span')
            width = LETTER * len(words)
            if self.x(end) - self.x(begin) > 2 * width:
                self.text((self.x(begin) + self.x(end)) / 2, y + 14, words, ' text-anchor="middle" class="soft"')
            else:
                self.text(self.x(end) + 6, y + 4, words, ' class="soft"')

    def draw_axis(self):
        self.line(LEFT, self.axis, LEFT + WIDTH, self.axis, 'axis')
        length = self.run.end - self.run.begin
        step = next(step for step in (10, 20, 50, 100, 200, 500) if length / step <= 8)
        moment = 0
        while moment <= length:
            x = self.x(self.run.begin + moment)
            self.line(x, self.axis, x, self.axis + 5, 'axis')
            self.text(x, self.axis + 18, f'{moment} ms' if moment else '0', ' text-anchor="middle" class="soft"')
            moment += step

    def draw_legend(self):
        x, y = 12, self.axis + 44
        for kind in self.legend:
            self.add(f'<rect class="{kind}" x="{number(x)}" y="{number(y - 10)}" width="18" height="11" rx="2"/>')
            self.text(x + 24, y, LEGEND[kind], ' class="soft"')
            x += 24 + LETTER * len(LEGEND[kind]) + 12


def draw(program, name):
    done = subprocess.run([program, name], stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    return Drawing(name, Run(done.stdout)).draw()


def main():
    program, here = sys.argv[1], pathlib.Path(__file__).resolve().parent
    failed = False
    if sys.argv[2:] == ['--check']:
        print(f'1..{len(PICTURES)}')
    for index, name in enumerate(PICTURES, 1):
        path, text = here / f'{name}.svg', draw(program, name)
        if sys.argv[2:] != ['--check']:
            path.write_text(text)
            continue
        there = path.read_text() if path.exists() else ''
        print(f'{"ok" if there == text else "not ok"} {index} - {name}.svg is what the run gives')
        for line in list(difflib.unified_diff(there.splitlines(), text.splitlines(), lineterm=''))[:20]:
            print('#', re.sub(r'\s+', ' ', line))
        failed |= there != text
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
