#!/usr/bin/env python3
"""Whether the machine stood still: a processor that ran nobody, or a disk that took no file.

A shared machine does so now and then, for longer than the leases of the tests last. A
holder rightly loses its lock then: a test that failed during that time has shown nothing, and is
repeated.

    standstill.py SCRIPT ARGUMENT...   does so with a script of Python
"""

import os
import subprocess
import sys
import tempfile
import threading
import time

GLANCE_S = 0.02
NOTABLE_S = 0.3  # the shortest leases of the tests are some three times as long
SKIPPED = 77


class Witness:
    """Its threads end with the process."""

    def __init__(self):
        self.over = []  # (end, how long, where)
        self.looking = {}  # where, and since when: a standstill that goes on is seen as well
        for cpu in os.sched_getaffinity(0):
            self._watch(f'processor {cpu}', lambda: None, cpu)
        directory = tempfile.gettempdir()
        self._watch(directory, lambda: tempfile.TemporaryFile(dir=directory).close())

    def _watch(self, place, step, cpu=None):
        def run():
            if cpu is not None:
                os.sched_setaffinity(threading.get_native_id(), {cpu})
            while True:
                began = self.looking[place] = time.monotonic()
                time.sleep(GLANCE_S)
                step()
                end = time.monotonic()
                if end - began >= NOTABLE_S:
                    self.over.append((end, end - began, place))

        self.looking[place] = time.monotonic()
        threading.Thread(target=run, daemon=True).start()

    def since(self, moment):
        """What stood still longest since that moment of the monotonic clock; nothing if none did."""
        now = time.monotonic()
        seen = [(lasted, place) for end, lasted, place in self.over if end >= moment]
        seen += [(now - began, place) for place, began in self.looking.items() if now - began >= NOTABLE_S]
        return '{1} stood still for {0:.1f} s'.format(*max(seen)) if seen else ''

    def again(self, attempt, failed, tell):
        """The result of an attempt. One that failed while the machine stood still is made again."""
        for left in (2, 1, 0):
            began = time.monotonic()
            result = attempt()
            reason = failed(result) and left and self.since(began)
            if not reason:
                return result
            tell(f'again, as {reason}', result)


def main(words):
    result = Witness().again(
        lambda: subprocess.run([sys.executable, *words], check=False).returncode,
        lambda status: status not in (0, SKIPPED),
        lambda reason, _: print(reason, file=sys.stderr, flush=True))
    sys.exit(result if result >= 0 else 128 - result)


if __name__ == '__main__':
    main(sys.argv[1:])
