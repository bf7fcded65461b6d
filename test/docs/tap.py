"""The report of a check, for scripts/summarize: a line for each point, with what is wrong after it."""

import sys


class Report:
    def __init__(self):
        self.results = []

    def point(self, name, wrong):
        """What is wrong: lines, or nothing."""
        self.results.append(not wrong)
        print(f'{"not ok" if wrong else "ok"} {len(self.results)} - {name}')
        print(''.join(f'# {line}\n' for line in (wrong or '').splitlines()), end='', flush=True)

    def end(self):
        print(f'1..{len(self.results)}')
        sys.exit(0 if all(self.results) else 1)
